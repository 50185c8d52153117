"""What the outside may ask of a running daemon."""

from __future__ import annotations

from enum import Enum


class Request(Enum):
    STOP = "stop"  # finish what runs, then end
    STOP_NOW = "stop_now"  # end at once
    RELOAD = "reload"

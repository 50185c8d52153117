"""Facts: what happened, told by the engine, written down by whoever listens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from .models import Response


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Fact:
    """One event: a stable lower-case name such as `command_settled`, and plain values.

    `root` is the root's name; None for what concerns the whole daemon. `response` is set where
    the fact is a final response (it goes to the results log as well).
    """

    event: str
    level: Level = Level.INFO
    root: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    response: Response | None = None


class Listener(Protocol):
    """Takes facts. Must not raise: a log that cannot be written never fails a command."""

    def __call__(self, fact: Fact, /) -> None: ...

"""The client: submit, wait, call, cancel. Uses the protocol and the spool, never the engine."""

from __future__ import annotations

from .client import Client

__all__ = ["Client"]

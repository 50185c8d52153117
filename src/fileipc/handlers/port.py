"""What a handler is, and what it may know of its root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..executors.port import Call, Isolation


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a handler works: absolute paths of the root (`.ipc`) and of the project."""

    root: str
    project: str


class Handler(Protocol):
    """Turns arguments into a call; must itself neither block nor touch what it was not given.

    `alias` is the argument that the seed's `target` stands for. `timeout` in seconds.
    """

    @property
    def name(self) -> str: ...
    @property
    def isolation(self) -> Isolation: ...
    @property
    def idempotent(self) -> bool: ...
    @property
    def timeout(self) -> float: ...
    def prepare(self, args: Mapping[str, Any], scope: Scope) -> Call:
        """Validate, confine, and describe the work.

        Raises:
            CommandFailure: with outcome `not_started`.
        """
        ...


class RootControl(Protocol):
    """What `ping` and `cancel` ask of the root they run in."""

    def describe(self) -> dict[str, Any]:
        """Version, instance, uptime in seconds, counts of waiting and running commands."""
        ...

    def cancel(self, command_id: str) -> str:
        """Stop a command; returns "cancelled", "cancelling", "finished" or "unknown"."""
        ...

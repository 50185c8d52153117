"""`cancel {target}`: stop a command that waits or runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec import Struct

from ..errors import InvalidArgs, NotFound
from ..executors.port import InlineCall, Isolation
from ..protocol.args import validate
from ..protocol.names import parse_id
from .confine import shown
from .port import RootControl, Scope


class CancelArgs(Struct, frozen=True, kw_only=True):
    """`target`: the id of the command to stop."""

    target: str


@dataclass(frozen=True, slots=True)
class CancelHandler:
    """Answers `{"target": id, "state": "cancelled" | "cancelling" | "finished"}`.

    "cancelling": it was running and is being stopped; its own response says how it ended.
    An id that the root does not know is `not_found`.
    """

    control: RootControl
    name: str = "cancel"
    isolation: Isolation = Isolation.INLINE
    idempotent: bool = True
    timeout: float = 10.0

    def prepare(self, args: Mapping[str, Any], scope: Scope) -> InlineCall:  # noqa: ARG002
        target = validate(args, CancelArgs).target
        command_id = parse_id(target)
        if command_id is None:
            raise InvalidArgs(f"target is not the id of a command (a UUID): {shown(target)}")
        return InlineCall(partial(self._cancel, command_id))

    def _cancel(self, command_id: str) -> dict[str, Any]:
        state = self.control.cancel(command_id)
        if state == "unknown":
            raise NotFound(f"no command {command_id} waits, runs or has ended here")
        return {"target": command_id, "state": state}

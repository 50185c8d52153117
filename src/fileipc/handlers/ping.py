"""`ping`: is anybody there?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..executors.port import InlineCall, Isolation
from .port import RootControl, Scope


@dataclass(frozen=True, slots=True)
class PingHandler:
    """Answers `{"pong": true, ...}` with what the root says of itself; arguments are ignored."""

    control: RootControl
    name: str = "ping"
    isolation: Isolation = Isolation.INLINE
    idempotent: bool = True
    timeout: float = 10.0

    def prepare(self, args: Mapping[str, Any], scope: Scope) -> InlineCall:  # noqa: ARG002
        return InlineCall(self._pong)

    def _pong(self) -> dict[str, Any]:
        return {"pong": True, **self.control.describe()}

"""What `ping` and `cancel` ask of the root they run in."""

from __future__ import annotations

import time
from typing import Any

from ..protocol.identity import Identity
from ..protocol.names import parse_id
from ..spool.store import Spool
from .feeder import Feeder
from .running import Running


class Control:
    """The root's side of the inline handlers.

    Made before the feeder, which needs the handlers that need this: `feeder` is set after.
    """

    feeder: Feeder

    def __init__(self, root: str, identity: Identity, spool: Spool, running: Running) -> None:
        self._root = root
        self._identity = identity
        self._spool = spool
        self._running = running

    def describe(self) -> dict[str, Any]:
        return {
            "version": self._identity.version,
            "instance": self._identity.instance,
            "uptime_s": round(time.monotonic() - self._identity.started, 3),
            "root": self._root,
            "waiting": self.feeder.waiting,
            "running": max(0, len(self._running) - 1),  # without the ping itself
        }

    def cancel(self, command_id: str) -> str:
        target = parse_id(command_id)
        if target is None:
            return "unknown"
        if self._running.stop(target, "cancelled"):
            return "cancelling"
        if self.feeder.cancel_waiting(target):
            return "cancelled"
        if self._running.stop(target, "cancelled"):  # a worker took it in the meantime
            return "cancelling"
        return "unknown" if self._spool.find_final(target) is None else "finished"

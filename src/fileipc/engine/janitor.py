"""Keeps a root tidy and its heartbeat going; called from the root's own thread."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..config.settings import Retention
from ..protocol.facts import Fact, Level, Listener
from ..spool.retention import Ages, sweep
from ..spool.store import Spool
from .feeder import Feeder
from .health import Health
from .running import Running

_SWEEP_EVERY = 300.0
_ENDED_EVERY = 1.0


class Janitor:
    """Sweeps one root: what expired while waiting, old responses, archive days, leftovers."""

    def __init__(
        self,
        spool: Spool,
        feeder: Feeder,
        running: Running,
        health: Health,
        retention: Retention,
        *,
        root: str,
        tell: Listener,
        shrink: Callable[[], None],
    ) -> None:
        self._spool = spool
        self._feeder = feeder
        self._running = running
        self._health = health
        self._ages = Ages(
            responses=retention.responses,
            archive=retention.archive,
            rejected=retention.rejected,
            temporaries=retention.temporaries,
        )
        self._root = root
        self._tell = tell
        self._shrink = shrink
        self._next_sweep = 0.0
        self._next_ended = 0.0

    def tick(self) -> None:
        """Do what is due."""
        self._shrink()
        now = time.monotonic()
        if now >= self._next_ended and self._feeder.waiting:
            self._next_ended = now + _ENDED_EVERY
            self._feeder.sweep_ended()
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_EVERY
            self._sweep()

    def _sweep(self) -> None:
        try:
            swept = sweep(
                self._spool,
                self._ages,
                now=time.time(),
                is_claimed=self._running.__contains__,
            )
        except OSError as error:
            self._health.trouble("sweep", f"cannot tidy up: {error.strerror}")
            return
        self._health.clear("sweep")
        if swept.total:
            fields = {
                "responses": swept.responses,
                "days": swept.days,
                "rejected": swept.rejected,
                "temporaries": swept.temporaries,
            }
            self._tell(Fact("root_swept", Level.INFO, self._root, fields))

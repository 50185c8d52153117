"""The heartbeat of a root: `status.json`."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from ..protocol.identity import Identity
from ..protocol.models import RootStatus
from ..protocol.times import iso
from ..spool.store import Spool
from .feeder import Feeder
from .health import Health
from .running import Running
from .settle import Tally

IDLE_INTERVAL = 30.0  # seconds between heartbeats of an idle root
BUSY_INTERVAL = 1.0


class Heartbeat:
    """Tells on disk how a root is doing."""

    def __init__(
        self,
        spool: Spool,
        feeder: Feeder,
        running: Running,
        tally: Tally,
        health: Health,
        identity: Identity,
        *,
        workers: int,
        observer: str,
        types: Sequence[str],
    ) -> None:
        self._spool = spool
        self._feeder = feeder
        self._running = running
        self._tally = tally
        self._health = health
        self._identity = identity
        self._workers = workers
        self._observer = observer
        self._types = list(types)

    def beat(self, state: str | None = None, *, waiting: int | None = None) -> None:
        """Write the status.

        Args:
            state: None: serving, or degraded where there is trouble.
            waiting: commands in the folder, where the feeder no longer counts them.
        """
        now = time.time()
        oldest = self._feeder.oldest_arrival()
        reason = self._health.broken or self._health.reason
        status = RootStatus(
            state=state or ("degraded" if reason else "serving"),
            reason=reason,
            instance=self._identity.instance,
            pid=self._identity.pid,
            pid_started=self._identity.pid_started,
            host=self._identity.host,
            boot_id=self._identity.boot_id,
            version=self._identity.version,
            started_at=self._identity.started_at,
            timestamp=iso(now),
            interval=IDLE_INTERVAL,
            waiting=self._feeder.waiting if waiting is None else waiting,
            running=len(self._running),
            completed=self._tally.completed,
            failed=self._tally.failed,
            rejected=self._tally.rejected,
            oldest_age=round(max(0.0, now - oldest), 1) if oldest is not None else 0.0,
            workers=self._workers,
            observer=self._observer,
            types=self._types,
        )
        try:
            self._spool.write_status(msgspec.json.encode(status))
        except OSError as error:
            self._health.trouble("status", f"cannot write status.json: {error.strerror}")
        else:
            self._health.clear("status")

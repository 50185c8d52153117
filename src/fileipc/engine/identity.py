"""Who this daemon is; written into claims, the lock's holder and the heartbeat."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """One run of the daemon.

    `started` is on the monotonic clock; `pid_started` (seconds since boot or 1970, as psutil
    gives it) and `boot_id` tell a living pid from one that was used again.
    """

    instance: str
    pid: int
    pid_started: float | None
    host: str
    boot_id: str | None
    version: str
    started_at: str
    started: float

"""Who a daemon is; written into claims, the lock's holder and the heartbeat."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """One run of the daemon.

    `pid_started` (seconds since 1970) and `boot_id` (None outside Linux) guard against a pid
    that was given out again. `started` is on the monotonic clock.
    """

    instance: str
    pid: int
    pid_started: float
    host: str
    boot_id: str | None
    version: str
    started_at: str
    started: float

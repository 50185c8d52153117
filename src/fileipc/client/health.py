"""How a root is doing, from its files alone: works with the daemon down, stopped or hung."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from enum import StrEnum

import msgspec
from msgspec import Struct

from ..errors import InvalidCommand
from ..protocol.models import RootStatus
from ..protocol.names import command_stem, parse_id
from ..protocol.times import parse_timestamp
from ..spool.holder import Holder, read_holder
from ..spool.layout import LOCK_SUFFIX, Layout
from ..spool.mailbox import Mailbox
from .lookout import serves

_MISSED = 3  # heartbeats in a row
_START = 10.0  # seconds a daemon may take from the lock to its first heartbeat
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class State(StrEnum):
    """What to expect of the daemon."""

    SERVING = "serving"
    DEGRADED = "degraded"
    NOT_RESPONDING = "not_responding"
    NOT_RUNNING = "not_running"


class Health(Struct, frozen=True):
    """The state, and why, where it is not simply `serving` or `not_running`."""

    state: State
    reason: str | None = None

    def __str__(self) -> str:
        words = {
            State.SERVING: "the daemon is serving",
            State.DEGRADED: "the daemon is serving with trouble",
            State.NOT_RESPONDING: "the daemon does not respond",
            State.NOT_RUNNING: "no daemon is running",
        }[self.state]
        return f"{words} ({self.reason})" if self.reason else words


class Survey(Struct, frozen=True, kw_only=True):
    """All that the files of a root tell. `oldest_age` in seconds; None where nothing waits.

    `holder` is None while nobody serves; `heartbeat` is the last one, whoever wrote it.
    `waiting` and `running` are counted from the files themselves.
    """

    root: str
    state: State
    reason: str | None
    holder: Holder | None
    heartbeat: RootStatus | None
    waiting: int
    running: int
    oldest_age: float | None


def examine(layout: Layout) -> Health:
    """The daemon's state at this moment."""
    return _examine(layout, _heartbeat(layout))


def survey(layout: Layout) -> Survey:
    """Look at everything; takes a while where many commands wait."""
    heartbeat = _heartbeat(layout)
    health = _examine(layout, heartbeat)
    claims = _claims(layout)
    waiting, oldest = _waiting(layout, claims)
    return Survey(
        root=layout.path,
        state=health.state,
        reason=health.reason,
        holder=None if health.state is State.NOT_RUNNING else read_holder(layout),
        heartbeat=heartbeat,
        waiting=waiting,
        running=len(claims),
        oldest_age=None if oldest is None else max(0.0, time.time() - oldest),
    )


def _examine(layout: Layout, heartbeat: RootStatus | None) -> Health:
    if not serves(layout):
        return Health(State.NOT_RUNNING)
    holder = read_holder(layout)
    if heartbeat is None or (holder is not None and heartbeat.instance != holder.instance):
        if holder is None or _age(holder.started_at) < _START:
            return Health(State.SERVING, "it has just started")
        return Health(State.NOT_RESPONDING, "no heartbeat since it started")
    if _is_stopped(heartbeat):
        return Health(State.NOT_RESPONDING, f"process {heartbeat.pid} is suspended")
    age = _age(heartbeat.timestamp)
    if age > _MISSED * heartbeat.interval:
        return Health(State.NOT_RESPONDING, f"no heartbeat for {age:.0f} s")
    if heartbeat.state == "serving":
        return Health(State.SERVING)
    return Health(State.DEGRADED, heartbeat.reason or f"it says: {heartbeat.state}")


def _heartbeat(layout: Layout) -> RootStatus | None:
    try:
        raw = Mailbox(layout).status()
        return None if raw is None else msgspec.json.decode(raw, type=RootStatus)
    except (OSError, ValueError, RecursionError):
        return None


def _age(moment: str) -> float:
    """Seconds since an ISO 8601 time, never negative; endless where it is none."""
    try:
        return max(0.0, time.time() - parse_timestamp(moment))
    except InvalidCommand:
        return float("inf")


def _is_stopped(heartbeat: RootStatus) -> bool:
    """Whether the daemon's process is suspended; only to be known on its own machine."""
    if heartbeat.host != os.uname().nodename or heartbeat.boot_id != _text(_BOOT_ID).strip():
        return False
    # The name in parentheses may hold anything; what follows the last one is the state.
    _, _, rest = _text(f"/proc/{heartbeat.pid}/stat").rpartition(")")
    return rest[1:2] in ("T", "t")


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096)
    except OSError:
        return ""


def _claims(layout: Layout) -> set[str]:
    found: set[str] = set()
    with suppress(OSError), os.scandir(layout.locks) as entries:
        for entry in entries:
            stem = entry.name.removesuffix(LOCK_SUFFIX)
            if stem != entry.name and parse_id(stem) == stem:
                found.add(stem)
    return found


def _waiting(layout: Layout, claims: set[str]) -> tuple[int, float | None]:
    """How many commands wait, and since when the oldest does (seconds since 1970)."""
    count, oldest = 0, None
    with suppress(OSError), os.scandir(layout.commands) as entries:
        for entry in entries:
            stem = command_stem(entry.name)
            if stem is None or stem.lower() in claims:
                continue
            with suppress(OSError):
                arrived = entry.stat(follow_symlinks=False).st_ctime
                oldest = arrived if oldest is None else min(oldest, arrived)
                count += 1
    return count, oldest

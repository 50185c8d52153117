"""Who this daemon is, in a way that a later one can tell apart."""

from __future__ import annotations

import os
import socket
import time
import uuid

import psutil

from ..protocol.identity import Identity
from ..protocol.times import iso

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def identify(version: str, *, started: float | None = None) -> Identity:
    """The identity of this process; to be taken once, after detaching, where the pid changes.

    Args:
        started: when it began, on the monotonic clock; None: now.
    """
    return Identity(
        instance=str(uuid.uuid4()),
        pid=os.getpid(),
        pid_started=psutil.Process().create_time(),
        host=socket.gethostname(),
        boot_id=_boot_id(),
        version=version,
        started_at=iso(time.time()),
        started=time.monotonic() if started is None else started,
    )


def _boot_id() -> str | None:
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip() or None
    except OSError:
        return None

"""Whether somebody serves a root: what every client asks first, so it imports nothing heavy."""

from __future__ import annotations

import errno
import fcntl
import os
import time

from .layout import Layout


def is_served(layout: Layout) -> bool:
    """Whether a daemon holds the root's lock at this moment.

    Takes a shared lock for an instant where nobody holds it; `DaemonLock` waits that out.
    """
    try:
        fd = os.open(layout.daemon_lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return True
        raise
    finally:
        os.close(fd)
    return False


def wait_until_served(layout: Layout, timeout: float) -> bool:
    """Poll until some daemon serves the root; False after `timeout` seconds."""
    end = time.monotonic() + timeout
    while not is_served(layout):
        if time.monotonic() >= end:
            return False
        time.sleep(0.02)
    return True

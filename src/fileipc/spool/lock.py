"""One daemon per root: a `filelock` held for the daemon's life.

The lock file is never removed: a lock on a removed file would let a second holder in. Who holds
it stands in `daemon.json` beside it, for people and for the second daemon's message.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from ..errors import RootError, RootHeld
from .atomic import Writer
from .layout import Layout

_PATIENCE = 1.0  # seconds; longer than any client's momentary look at the lock


class Holder(Struct, frozen=True, kw_only=True):
    """Who serves a root."""

    instance: str
    pid: int
    host: str
    started_at: str


class DaemonLock:
    """The right to serve one root; kept until `release` or the process's death."""

    def __init__(self, layout: Layout, writer: Writer) -> None:
        self._layout = layout
        self._writer = writer
        self._inode: tuple[int, int] | None = None
        self._lock = FileLock(
            layout.daemon_lock,
            mode=writer.modes.file,
            thread_local=False,
            fallback_to_soft=False,
            on_acquired=self._remember,
        )

    def acquire(self, holder: Holder) -> None:
        """Take the lock now.

        Raises:
            RootHeld: another daemon has it; the message names it.
        """
        try:
            self._lock.acquire(timeout=_PATIENCE, poll_interval=0.02)
        except Timeout:
            raise RootHeld(self._layout.path, describe_holder(self._layout)) from None
        except OSError as error:
            raise RootError(f"cannot lock {self._layout.daemon_lock}: {error.strerror}") from error
        try:
            self._writer.replace(self._layout.daemon_holder, msgspec.json.encode(holder))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        self._lock.release()

    def intact(self) -> bool:
        """Whether the path still leads to the file that is locked.

        False after someone removed it: a second daemon could lock a new one, so the root must
        be given up and taken anew.
        """
        try:
            found = os.stat(self._layout.daemon_lock, follow_symlinks=False)
        except OSError:
            return False
        return self._lock.is_locked and (found.st_dev, found.st_ino) == self._inode

    def _remember(self, fd: int) -> None:
        found = os.fstat(fd)
        self._inode = (found.st_dev, found.st_ino)


def read_holder(layout: Layout) -> Holder | None:
    """Who holds (or last held) the root's lock, as far as is known."""
    try:
        with open(layout.daemon_holder, "rb") as file:
            return msgspec.json.decode(file.read(64 * 1024), type=Holder)
    except (OSError, ValueError):
        return None


def describe_holder(layout: Layout) -> str:
    holder = read_holder(layout)
    if holder is None:
        return "another daemon"
    return f"pid {holder.pid} on {holder.host} since {holder.started_at}"


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

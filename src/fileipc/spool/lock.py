"""One daemon per root: a `filelock` held for the daemon's life.

The lock file is never removed: a lock on a removed file would let a second holder in. Who holds
it stands in `daemon.json` beside it, for people and for the second daemon's message.
"""

from __future__ import annotations

import os

import msgspec
from filelock import FileLock, Timeout

from ..errors import RootError, RootHeld
from .atomic import Writer
from .holder import Holder, describe_holder
from .layout import Layout

__all__ = ["DaemonLock", "Holder"]

_PATIENCE = 1.0  # seconds; longer than any client's momentary look at the lock


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

"""File notification for waiting threads: one inotify watch for all, and no thread of its own.

One of the waiting threads reads the watch and wakes the others as their answers appear; when it
has its own it hands the reading over. Where there is no inotify, a waiter just sleeps: whoever
waits looks now and then anyway.
"""

from __future__ import annotations

import errno
import math
import os
import select
import struct
import sys
import threading
import time
from types import TracebackType

_MASK = 0x00000008 | 0x00000080 | 0x01000000  # IN_CLOSE_WRITE, IN_MOVED_TO, IN_ONLYDIR
_LOST = 0x00002000 | 0x00004000 | 0x00008000  # IN_UNMOUNT, IN_Q_OVERFLOW, IN_IGNORED
_BLIND = 0x00002000 | 0x00008000
_HEAD = struct.Struct("iIII")


class Watch:
    """Names that appear in one folder, by rename or by the end of a write.

    Raises:
        OSError: no inotify on this system, none left for this user, or no such folder.
    """

    def __init__(self, folder: str) -> None:
        self._fd = -1
        if not sys.platform.startswith("linux"):
            raise OSError(errno.ENOSYS, "no inotify on this system")
        import ctypes  # costs more than a short wait

        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0 or libc.inotify_add_watch(self._fd, os.fsencode(folder), _MASK) < 0:
            code = ctypes.get_errno()
            self.close()
            raise OSError(code, os.strerror(code))
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self.blind = False

    def read(self, seconds: float) -> set[str] | None:
        """Names that appeared, after at most `seconds`; None: events were lost, any may have.

        `blind` is set once the folder itself is gone.
        """
        if not self._poll.poll(math.ceil(seconds * 1000)):
            return set()
        try:
            data = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return set()
        names: set[str] | None = set()
        at = 0
        while at < len(data):
            _, mask, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            self.blind = self.blind or bool(mask & _BLIND)
            if mask & _LOST:
                names = None
            elif names is not None:
                names.add(os.fsdecode(data[at : at + length].rstrip(b"\0")))
            at += length
        return names

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


class Waiter:
    """One thread's wait for one name; a context manager, entered before the first look."""

    def __init__(self, bell: Bell, name: str) -> None:
        self.name = name
        self.rung = threading.Event()
        self._bell = bell

    def wait(self, seconds: float) -> None:
        """Return when the name may have appeared, or after `seconds`, or earlier for no reason."""
        self._bell.wait(self, seconds)

    def __enter__(self) -> Waiter:
        self._bell.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bell.remove(self)


class Bell:
    """Wakes each waiting thread of this process when its file appears in `folder`."""

    def __init__(self, folder: str, *, watch: bool = True) -> None:
        self._folder = folder
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waiters: dict[str, list[Waiter]] = {}
        self._reader: Waiter | None = None
        self._identity = _identity(folder)  # before the watch: a swap in between shows later
        self._watch: Watch | None = None
        if watch:
            try:
                self._watch = Watch(folder)
            except OSError:
                self._watch = None

    def fits(self) -> bool:
        """Whether it still watches the folder of that name, on behalf of this very process."""
        return (
            self._watch is not None
            and not self._watch.blind
            and self._pid == os.getpid()
            and self._identity == _identity(self._folder)
        )

    def waiter(self, name: str) -> Waiter:
        """For the file called `name`."""
        return Waiter(self, name)

    def add(self, waiter: Waiter) -> None:
        with self._lock:
            self._waiters.setdefault(waiter.name, []).append(waiter)

    def remove(self, waiter: Waiter) -> None:
        with self._lock:
            same = self._waiters[waiter.name]
            same.remove(waiter)
            if not same:
                del self._waiters[waiter.name]
            self._appoint()

    def wait(self, waiter: Waiter, seconds: float) -> None:
        end = time.monotonic() + seconds
        with self._lock:
            watch = self._watch
            reads = watch is not None and not watch.blind and self._reader is None
            if reads:
                self._reader = waiter
        if not reads or watch is None:
            waiter.rung.wait(seconds)
            waiter.rung.clear()
            return
        try:
            while not (waiter.rung.is_set() or watch.blind):
                left = end - time.monotonic()
                if left <= 0:
                    break
                self._ring(watch.read(left))
        finally:
            waiter.rung.clear()
            with self._lock:
                self._reader = None
                self._appoint(waiter)

    def _ring(self, names: set[str] | None) -> None:
        with self._lock:
            for name in self._waiters if names is None else names & self._waiters.keys():
                for waiter in self._waiters[name]:
                    waiter.rung.set()

    def _appoint(self, leaving: Waiter | None = None) -> None:
        """Wake some waiter, so that it becomes the reader; the lock is held."""
        if self._reader is None and self._watch is not None:
            for same in self._waiters.values():
                for waiter in same:
                    if waiter is not leaving:
                        waiter.rung.set()
                        return


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return (found.st_dev, found.st_ino)

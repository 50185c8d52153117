"""inotify through watchdog: one shared kernel instance and one reader thread for all roots.

watchdog's emitter and observer threads are not used. They hand each event from queue to queue
(the first of which holds back what it hopes to pair with a move), and a root would keep two
threads for it. A watch group registers itself with the shared reader, which calls it directly.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field

from watchdog.observers.inotify import InotifyWatchGroup
from watchdog.observers.inotify_c import (
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from ..protocol.names import command_stem
from .port import Hints

# No IN_MOVED_FROM: nothing is to be learned from a command that leaves the folder.
MASK = Mask(
    InotifyConstants.IN_MOVED_TO
    | InotifyConstants.IN_CLOSE_WRITE
    | InotifyConstants.IN_CREATE
    | InotifyConstants.IN_DELETE_SELF
    | InotifyConstants.IN_MOVE_SELF
    | InotifyConstants.IN_ONLYDIR
)
_GONE = {
    InotifyConstants.IN_DELETE_SELF: "the watched folder was removed",
    InotifyConstants.IN_MOVE_SELF: "the watched folder was moved away",
    InotifyConstants.IN_UNMOUNT: "the watched folder's file system was unmounted",
}
_ANY_GONE = Mask(sum(_GONE))


@dataclass(kw_only=True, eq=False)
class CommandGroup(InotifyWatchGroup):
    """The watch of one folder; adds it when made.

    Its methods run in the reader thread that all roots share, so nothing may leave them.
    """

    hints: Hints
    blind: bool = field(default=False, init=False)
    _stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        # watchdog passes over EACCES and keeps a watch that does not exist.
        if -1 in self._active_callbacks_by_watch:
            self.stop()
            folder = os.fsdecode(self.path)
            raise PermissionError(errno.EACCES, "may not be read, so cannot be watched", folder)

    def stop(self) -> None:
        self._stopped = True
        self.deactivate()

    def on_event(self, event: InotifyEvent) -> None:
        try:
            if event.mask & _ANY_GONE:
                self._lose(next(text for bit, text in _GONE.items() if event.mask & bit))
            elif not self._stopped and not event.mask & InotifyConstants.IN_ISDIR:
                name = os.fsdecode(event.name)
                if command_stem(name) is not None and self._is_ready(event):
                    self.hints.hint(name)
        except Exception as error:  # noqa: BLE001 the top of the reader thread, which must live
            self._make_good(error)

    def on_queue_overflow(self) -> None:
        try:
            if not self._stopped:
                self.hints.rescan("overflow")
        except Exception as error:  # noqa: BLE001 the top of the reader thread, which must live
            self._make_good(error)

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        super().on_watch_deleted(wd)
        try:
            self._lose("the kernel dropped the watch")
        except Exception as error:  # noqa: BLE001 the top of the reader thread, which must live
            self._make_good(error)

    def _is_ready(self, event: InotifyEvent) -> bool:
        if not event.mask & InotifyConstants.IN_CREATE:
            return True
        # A file written in place follows with its close. A hard link never does, nor does what
        # is no regular file and is to be refused.
        try:
            status = os.lstat(os.path.join(self.path, event.name))
        except OSError:
            return False  # gone again, or seen by the next scan
        return status.st_nlink > 1 or not stat.S_ISREG(status.st_mode)

    def _lose(self, reason: str) -> None:
        if not self.blind and not self._stopped:
            self.blind = True
            self.hints.lost(reason)

    def _make_good(self, error: Exception) -> None:
        # Whatever that hint was about, a look at the whole folder finds it.
        with suppress(Exception):
            self.hints.rescan(f"a hint failed: {type(error).__name__}: {error}")


class InotifyObserver:
    """Watches one folder; costs no thread of its own."""

    kind = "inotify"

    def __init__(self, folder: str, hints: Hints) -> None:
        self._folder = os.path.abspath(folder)
        self._hints = hints
        self._reader: InotifyFD | None = None
        self._group: CommandGroup | None = None
        self._identity: tuple[int, int] | None = None

    def start(self) -> None:
        reader = shared_reader()
        path = os.fsencode(self._folder)
        self._group = CommandGroup(reader, path, event_mask=MASK, hints=self._hints)
        self._reader = reader
        self._identity = _identity(self._folder)

    def stop(self) -> None:
        if self._group is not None:
            self._group.stop()

    def healthy(self) -> bool:
        if self._group is None or self._reader is None or not self._reader.is_alive():
            return False
        if self._group.blind or not self._group.is_active:
            return False
        # A mount on top of the folder, or a parent moved away, is not told to anybody.
        return self._identity is not None and _identity(self._folder) == self._identity


def probe(folder: str) -> OSError | None:
    """Try to watch the folder for a moment; the error says what stands against it."""
    try:
        reader = shared_reader()
        group = CommandGroup(
            reader, os.fsencode(os.path.abspath(folder)), event_mask=MASK, hints=_Nobody()
        )
    except OSError as error:
        return error
    group.stop()
    return None


def shared_reader() -> InotifyFD:
    """The reader thread of this process; a new one where the last one died.

    Raises:
        OSError: EMFILE where the user has too many inotify instances.
    """
    # `rescan` tells of an overflow already.
    logging.getLogger("watchdog.observers.inotify_c").addFilter(_not_of_overflow)
    dead: InotifyFD | None = None
    with InotifyFD._global_lock:
        last = InotifyFD._instance
        if last is not None and not last.is_alive():
            dead, InotifyFD._instance = last, None
    if dead is not None:
        # It may have died while it read; nobody reads now, so `stop` closes the descriptors.
        dead._is_reading = False
        dead.stop()
    reader = InotifyFD.get_instance()
    reader.name = "fileipc-inotify"
    os.set_inheritable(reader._inotify_fd, False)  # watchdog makes it without IN_CLOEXEC
    return reader


def _not_of_overflow(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Inotify queue overflowed")


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class _Nobody:
    def hint(self, name: str) -> None: ...
    def rescan(self, reason: str) -> None: ...
    def lost(self, reason: str) -> None: ...

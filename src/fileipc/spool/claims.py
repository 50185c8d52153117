"""Claims: the files in `locks/` that say which command runs, for whom, in which attempt.

A claim appears whole or not at all: its content is written to a spare file first, and the claim
is a hard link to it, which fails where there is one already. The spare is used again and again,
for making and freeing an inode is the dearest step of the whole walk on some file systems
(170 µs on an ext4 without journal, against 10 µs for link and unlink).
"""

from __future__ import annotations

import errno
import itertools
import os
import threading
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from ..protocol.codec import decode_claim
from ..protocol.models import Claim
from ..protocol.names import parse_id
from .atomic import READ, Writer
from .layout import DAEMON_LOCK, LOCK_SUFFIX, Layout

_SPARE = "spare-"
_SIZE = 512  # bytes; shorter claims are padded with spaces, so that no file is ever truncated
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})


@dataclass(slots=True)
class _Spare:
    path: str
    fd: int
    size: int = 0


class Claims:
    """The claims of one root; all methods may be called from any thread."""

    def __init__(self, layout: Layout, writer: Writer) -> None:
        self._layout = layout
        self._writer = writer
        self._lock = threading.Lock()
        self._free: list[_Spare] = []
        self._used: dict[str, _Spare] = {}
        self._names = itertools.count()

    def take(self, command_id: str, claim: Claim) -> bool:
        """Make the claim; False where one is there already."""
        data = msgspec.json.encode(claim).ljust(_SIZE)
        for fresh in (False, True):
            spare = self._spare(fresh)
            try:
                self._fill(spare, data)
                os.link(spare.path, self._layout.claim(command_id), follow_symlinks=False)
            except FileExistsError:
                self._give_back(spare)
                return False
            except FileNotFoundError:
                self._close(spare)  # somebody tidied it away
                if fresh:
                    raise
            except OSError as error:
                self._close(spare)
                if error.errno in _NO_LINKS:
                    return self._create(command_id, data)
                raise
            else:
                self._writer.sync_folder(self._layout.locks)
                with self._lock:
                    self._used[command_id] = spare
                return True
        raise AssertionError("a fresh spare is there or raises")

    def retake(self, command_id: str, claim: Claim) -> None:
        """Take over the claim of a dead daemon for a further attempt."""
        self._writer.replace(self._layout.claim(command_id), msgspec.json.encode(claim))

    def release(self, command_id: str) -> None:
        """Remove the claim; quietly where it is gone already."""
        self._writer.remove(self._layout.claim(command_id))
        with self._lock:
            spare = self._used.pop(command_id, None)
        if spare is not None:
            self._give_back(spare)

    def read(self, command_id: str) -> Claim | None:
        """The claim's content; None where there is none, or none that can be read."""
        try:
            fd = os.open(self._layout.claim(command_id), READ)
        except OSError:
            return None
        try:
            return decode_claim(os.read(fd, 64 * 1024))
        except OSError:
            return None
        finally:
            os.close(fd)

    def exists(self, command_id: str) -> bool:
        return os.path.lexists(self._layout.claim(command_id))

    def ids(self) -> list[str]:
        """The ids of all claims."""
        with os.scandir(self._layout.locks) as entries:
            stems = [
                entry.name.removesuffix(LOCK_SUFFIX)
                for entry in entries
                if entry.name.endswith(LOCK_SUFFIX) and entry.name != DAEMON_LOCK
            ]
        return [stem for stem in stems if parse_id(stem) == stem]

    def tidy(self) -> None:
        """Remove the spares of a daemon that died; to be called while nothing is claimed."""
        for name in os.listdir(self._layout.locks):
            if name.startswith(f".{_SPARE}"):
                with suppress(OSError):
                    os.unlink(f"{self._layout.locks}/{name}")

    def close(self) -> None:
        """Remove the spares; claims that are left keep their content."""
        with self._lock:
            spares = [*self._free, *self._used.values()]
            self._free.clear()
            self._used.clear()
        for spare in spares:
            self._close(spare)

    def _create(self, command_id: str, data: bytes) -> bool:
        """Without hard links: an exclusive create, which a crash may leave empty."""
        try:
            self._writer.create(self._layout.claim(command_id), data)
        except FileExistsError:
            return False
        return True

    def _spare(self, fresh: bool) -> _Spare:
        with self._lock:
            if self._free and not fresh:
                return self._free.pop()
            number = next(self._names)
        path = self._writer.temporary(f"{self._layout.locks}/{_SPARE}{number}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(path, flags, self._writer.modes.file)
        os.fchmod(fd, self._writer.modes.file)
        return _Spare(path, fd)

    def _fill(self, spare: _Spare, data: bytes) -> None:
        data = data.ljust(spare.size)
        if os.pwrite(spare.fd, data, 0) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        spare.size = len(data)
        if self._writer.durable:
            os.fsync(spare.fd)

    def _give_back(self, spare: _Spare) -> None:
        with self._lock:
            self._free.append(spare)

    def _close(self, spare: _Spare) -> None:
        os.close(spare.fd)
        with suppress(OSError):
            os.unlink(spare.path)

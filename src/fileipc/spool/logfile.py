"""An append-only file of lines that rotates itself and survives what others do to it."""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
import time
from contextlib import suppress

import msgspec

from ..errors import InvalidCommand
from ..protocol.times import parse_timestamp

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_HEAD = 64 * 1024
_RETRY_ROTATION = 60.0
_LEADING_TIME = re.compile(rb"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d)")


class _Stamped(msgspec.Struct):
    timestamp: str


class LogFile:
    """Lines in `path`; older ones in `path.1` (the newest) to `path.{keep}`.

    Each line goes out in one write to the end of the file, so several processes may share it
    and a file that another program truncates goes on at its start. A file that was moved or
    removed is made again, and so is its folder (but not that folder's parent).

    Rotation happens before a line that would make the file larger than `max_size` bytes, and
    once its first line is older than `max_age` seconds (the time that line tells; where it
    tells none, the file's last change before it was opened). An idle file stays as it is.
    `keep` 0 keeps no older file. Safe to use from several threads.
    """

    def __init__(
        self,
        path: str,
        mode: int = 0o600,
        *,
        max_size: int,
        max_age: float,
        keep: int,
        folder_mode: int = 0o700,
    ) -> None:
        self.path = path
        self._mode = mode
        self._folder_mode = folder_mode
        self._max_size = max_size
        self._max_age = max_age
        self._keep = keep
        self._lock = threading.Lock()
        self._fd = -1
        self._inode: tuple[int, int] | None = None
        self._born = 0.0
        self._torn = False
        self._next_rotation = 0.0

    def write(self, line: bytes) -> None:
        """Append one line, given without its end.

        Raises:
            OSError: it was not written, or only in part (the next line then starts on a line
                of its own); or the file could not be rotated, though the line was written.
        """
        with self._lock:
            self._write(line)

    def close(self) -> None:
        """Let go of the file; the next `write` opens it again."""
        with self._lock:
            self._close()

    def _write(self, line: bytes) -> None:
        now = time.time()
        size = self._ready(now)
        trouble: OSError | None = None
        length = len(line) + 1
        if size and (size + length > self._max_size or now - self._born >= self._max_age):
            trouble = self._rotate(now)
            self._ready(now)
        data = line + b"\n"
        if self._torn:
            data = b"\n" + data
        written = 0
        try:
            while written < len(data):  # more than one turn only where the disk is full
                written += os.write(self._fd, data[written:])
        finally:
            # With nothing written the end of the file is as it was.
            if written:
                self._torn = written < len(data)
        if trouble is not None:
            raise trouble

    def _ready(self, now: float) -> int:
        """Have the file that lies at the path open; returns its size."""
        if self._fd >= 0:
            try:
                found = os.stat(self.path, follow_symlinks=False)
            except FileNotFoundError:
                found = None
            if found is not None and (found.st_dev, found.st_ino) == self._inode:
                if not found.st_size:
                    self._born = now
                    self._torn = False
                return found.st_size
            self._close()
        self._fd = self._open()
        try:
            status = os.fstat(self._fd)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", self.path)
            self._inode = (status.st_dev, status.st_ino)
            self._born = min(now, self._first_time(status) if status.st_size else now)
            self._torn = bool(status.st_size) and os.pread(self._fd, 1, status.st_size - 1) != b"\n"
        except BaseException:
            self._close()
            raise
        return status.st_size

    def _open(self) -> int:
        for _ in range(10):
            try:
                return os.open(self.path, _FLAGS)
            except FileNotFoundError:
                pass
            try:
                fd = os.open(self.path, _FLAGS | os.O_CREAT | os.O_EXCL, self._mode)
            except FileExistsError:
                continue  # another process was faster
            except FileNotFoundError:
                self._make_folder()
                continue
            if self._mode != 0o600:  # whatever the umask took away
                os.fchmod(fd, self._mode)
            return fd
        raise OSError(errno.EBUSY, "comes and goes", self.path)

    def _make_folder(self) -> None:
        folder = os.path.dirname(self.path)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            return
        os.chmod(folder, self._folder_mode)

    def _first_time(self, status: os.stat_result) -> float:
        head = os.pread(self._fd, _HEAD, 0).split(b"\n", 1)[0]
        leading = _LEADING_TIME.match(head)
        with suppress(ValueError, RecursionError, InvalidCommand):
            if leading:
                return parse_timestamp(leading[0].decode())
            return parse_timestamp(msgspec.json.decode(head, type=_Stamped).timestamp)
        return status.st_mtime

    def _rotate(self, now: float) -> OSError | None:
        if now < self._next_rotation:
            return None
        try:
            for number in range(self._keep - 1, 0, -1):
                with suppress(FileNotFoundError):
                    os.rename(f"{self.path}.{number}", f"{self.path}.{number + 1}")
            if self._keep > 0:
                os.rename(self.path, f"{self.path}.1")
            else:
                os.unlink(self.path)
        except FileNotFoundError:
            return None  # somebody else rotated it
        except OSError as error:
            # Something in the way must cost neither this line nor time at every line.
            self._next_rotation = now + _RETRY_ROTATION
            return error
        return None

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._inode = None

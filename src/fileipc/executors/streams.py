"""What a waiting executor holds: pipes, streams cut to size, and a way to be woken."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

_TAIL = 4096  # bytes of a stream's end that go into an error's details


class Kept:
    """The first `limit` bytes of a stream, the last few KiB of it, and its whole length."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = b""
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self._limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
        self._tail = (self._tail + chunk)[-_TAIL:] if len(chunk) < _TAIL else chunk[-_TAIL:]

    @property
    def head(self) -> bytes:
        return bytes(self._head)

    def tail_text(self) -> str:
        """The end of the stream for a human reader."""
        return self._tail.decode("utf-8", "replace")


class Pipe:
    """A pipe whose ends are closed with the block, the writer perhaps earlier."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def __enter__(self) -> Pipe:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close_writer()
        os.close(self.reader)

    def close_writer(self) -> None:
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1


class Waker:
    """A descriptor for `poll` that any thread can make readable, until the block ends.

    `wake` after that does nothing: the number may belong to somebody else's file by then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipe = Pipe()
        os.set_blocking(self._pipe.reader, False)
        os.set_blocking(self._pipe.writer, False)

    def __enter__(self) -> Waker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        with self._lock:
            self._pipe.__exit__(kind, error, where)

    def fileno(self) -> int:
        return self._pipe.reader

    def wake(self) -> None:
        with self._lock:
            if self._pipe.writer >= 0:
                with contextlib.suppress(BlockingIOError):  # it is readable already
                    os.write(self._pipe.writer, b"x")

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._pipe.reader, 4096)


@contextmanager
def memory_file(data: bytes) -> Iterator[int]:
    """A descriptor from which `data` can be read; nothing is left on disk."""
    if not data:
        fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    elif hasattr(os, "memfd_create"):
        fd = os.memfd_create("stdin", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    try:
        if data:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)

"""What a worker's handlers print: read at once, its end kept, the rest forgotten.

It does not go to the daemon's own output, where it could fill a disk or pass for a line of the
log, and a full pipe would stop a handler that prints much.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from multiprocessing.connection import Connection
from typing import Any

from .streams import Kept

_CHUNK = 1 << 16
_PIPE = 1 << 20  # bytes that can stand in a pipe when a call is over


class Output:
    """Drains a pipe with a thread of its own. `writer` is for the worker."""

    def __init__(self, reader: Connection[Any, Any], writer: Connection[Any, Any]) -> None:
        self._reader = reader
        self.writer = writer
        os.set_blocking(reader.fileno(), False)
        self._lock = threading.Lock()
        self._kept = Kept(0)
        self._closed = False
        self._thread = threading.Thread(target=self._drain, name="fileipc-output", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Forget what was printed so far: a call begins."""
        self._take()
        self._kept = Kept(0)

    def tail(self) -> str:
        """The end of what was printed since then."""
        self._take()
        return self._kept.tail_text()

    def close(self) -> None:
        self._closed = True
        os.set_blocking(self.writer.fileno(), False)  # the worker is dead by now
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes the thread as well
            os.write(self.writer.fileno(), b"\n")
        self._thread.join()
        self._reader.close()
        self.writer.close()

    def _take(self) -> None:
        for _ in range(_PIPE // _CHUNK):
            if not self._read():
                return

    def _drain(self) -> None:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        while not self._closed:
            poll.poll()
            self._read()

    def _read(self) -> bool:
        with self._lock:
            try:
                chunk = os.read(self._reader.fileno(), _CHUNK)
            except BlockingIOError:
                return False
            self._kept.add(chunk)
            return bool(chunk)

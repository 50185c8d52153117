"""One program under a minder: its output, its end, and the reasons to end it early."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Any

from ..errors import CommandFailure, Crashed, Interrupted
from .attempt import Attempt
from .edge import signal_name
from .minder import KILL_LIMIT
from .minders import Ended, MinderGone, MinderProcess, NotStarted
from .port import ChildCall, ChildEnd
from .start_failure import start_failure
from .streams import Kept, Pipe, Waker

_CHUNK = 1 << 16
_LAST_WORDS = 1 << 20  # bytes still read of a stream once all is over: what its pipe can hold
_SLACK = 1.0  # seconds beyond the minder's own limits after which the minder is given up
_LOOK = 0.1  # seconds between two looks whether the minder was made to stand still


class Program:
    """Watches one program. `over`: the minder has said that nothing of it runs any more."""

    def __init__(
        self, call: ChildCall, attempt: Attempt, taken: MinderProcess, out: Pipe, err: Pipe
    ) -> None:
        self._call = call
        self._attempt = attempt
        self._minder = taken
        self._out, self._stdout = out.reader, Kept(call.capture)
        self._stderr = Kept(call.capture)
        self._streams = {out.reader: self._stdout, err.reader: self._stderr}
        self._poll = select.poll()
        for pipe in (out, err):
            pipe.close_writer()
            os.set_blocking(pipe.reader, False)
            self._poll.register(pipe.reader, select.POLLIN)
        self._poll.register(taken, select.POLLIN)
        self._enough = False
        self._failure: CommandFailure | None = None
        self._give_up: float | None = None  # when to wait no longer; None: nothing was asked
        self.over = False

    def watch(self, waker: Waker, closed: Callable[[], bool]) -> ChildEnd:
        """Drain, wait, and end it where the deadline, a stop or the sink asks for that."""
        self._poll.register(waker, select.POLLIN)
        ended: Ended | None = None
        while ended is None:
            ready = [fd for fd, _event in self._poll.poll(self._patience())]
            for fd in ready:
                if fd in self._streams:
                    self._read(fd)
                elif fd == waker.fileno():
                    waker.clear()
            if self._minder.fileno() in ready:
                ended = self._hear()
            elif self._give_up is None:
                self._judge(closed())
            elif self._minder.stopped() or time.monotonic() >= self._give_up:
                self._minder.kill()
                ended = Ended(None)
        self._drain()
        return self._end(ended)

    def _patience(self) -> float:
        """Milliseconds to wait for the next event."""
        if self._give_up is None:
            seconds = self._attempt.timeout()
        else:
            seconds = min(_LOOK, max(0.0, self._give_up - time.monotonic()))
        return seconds * 1000 + 1

    def _judge(self, closed: bool) -> None:
        failure = self._attempt.verdict()
        if failure is None and closed:
            failure = Interrupted("the daemon stopped while it ran")
        if failure is not None:
            self._failure = failure
            self._ask_end()

    def _ask_end(self) -> None:
        self._give_up = time.monotonic() + self._call.grace + KILL_LIMIT + _SLACK
        self._minder.end()

    def _hear(self) -> Ended | None:
        try:
            heard = self._minder.hear()
        except MinderGone as error:
            if self._failure is not None:
                return Ended(None)
            raise Crashed(
                f"{error}, and the program's process group was killed; what had left that group "
                "may still run",
                details=self._last_words(),
            ) from None
        if heard is None:
            return None
        self.over = True
        if isinstance(heard, NotStarted):
            raise start_failure(self._call, heard.errno, heard.text, heard.at_cwd)
        return heard

    def _read(self, fd: int) -> bool:
        """Take what a stream has to say; False: nothing more for now."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._poll.unregister(fd)
            del self._streams[fd]
            return False
        sink = self._call.sink if fd == self._out else None
        kept = self._streams[fd]
        if sink is None:
            kept.add(chunk)
            return True
        kept.total += len(chunk)
        if not self._enough and not sink.feed(chunk):
            self._enough = True
            if self._give_up is None and not self.over:
                self._ask_end()
        return True

    def _drain(self) -> None:
        for fd in list(self._streams):
            for _ in range(_LAST_WORDS // _CHUNK):
                if not self._read(fd):
                    break

    def _end(self, ended: Ended) -> ChildEnd:
        if self._failure is not None:
            self._failure.details.update(self._last_words())
            raise self._failure
        if ended.code is None:
            raise Crashed("the program had to be killed with its minder, and has no exit code")
        return ChildEnd(
            exit_code=ended.code if ended.code >= 0 else None,
            signal=signal_name(-ended.code) if ended.code < 0 else None,
            stdout=self._stdout.head,
            stderr=self._stderr.head,
            stdout_bytes=self._stdout.total,
            stderr_bytes=self._stderr.total,
            duration=time.monotonic() - self._attempt.started,
            enough=self._enough,
        )

    def _last_words(self) -> dict[str, Any]:
        return {
            "stdout": self._stdout.tail_text(),
            "stderr": self._stderr.tail_text(),
            "stdout_bytes": self._stdout.total,
            "stderr_bytes": self._stderr.total,
        }

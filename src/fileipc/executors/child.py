"""Programs: started without a shell, drained, ended in time, and nothing of them left behind.

Each program runs under a minder (see `minder`), which ends what the program leaves behind: a
script's background processes live no longer than the script. stdin is a file in memory, so a
program that never reads it blocks nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from ..errors import Crashed, HandlerError, Interrupted, Outcome
from .attempt import Attempt, refuse_if_over
from .edge import describe, guarded
from .idle import Idle
from .minder import MAX_FDS
from .minders import MinderGone, MinderProcess
from .port import ChildCall, ChildEnd, Job
from .program import Program
from .streams import Pipe, Waker, memory_file

_CLOSE_TIMEOUT = 30.0  # seconds; a program has its grace first


class ChildExecutor:
    """Runs ChildCalls; `run` may be called from many threads at once.

    Minders start on demand; `shrink` lets go those that were idle for `idle_timeout` seconds.
    """

    def __init__(self, *, idle_timeout: float = 30.0) -> None:
        self._idle: Idle[MinderProcess] = Idle()
        self._idle_timeout = idle_timeout
        self._changed = threading.Condition()
        self._wakers: set[Waker] = set()
        self._closed = False

    def run(self, call: ChildCall, job: Job) -> msgspec.Raw:
        """Run the program to its end; see `Executor.run`.

        Raises:
            ScriptFailed: it could not be started (`details.reason` says why; `not_started`).
            CommandFailure: Timeout, Cancelled, Interrupted (`details` hold the last output);
                what `call.finish` raises.
        """
        refuse_if_over(job)
        return guarded(lambda: call.finish(self._run(call, job)), job.result_limit)

    def shrink(self) -> None:
        """End the minders that have been idle for long."""
        for item in self._idle.expired(self._idle_timeout):
            item.close()

    def close(self) -> None:
        """End every program and every minder; calls under way raise Interrupted."""
        with self._changed:
            self._closed = True
            wakers = list(self._wakers)
        for waker in wakers:
            waker.wake()
        for item in self._idle.expired(0):
            item.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._wakers, _CLOSE_TIMEOUT)

    def _run(self, call: ChildCall, job: Job) -> ChildEnd:
        attempt = Attempt(job)
        with self._waker(job) as waker, Pipe() as out, Pipe() as err:
            with memory_file(call.stdin) as stdin:
                taken = self._start(call, (stdin, out.writer, err.writer, *call.pass_fds))
            program = Program(call, attempt, taken, out, err)
            try:
                return program.watch(waker, lambda: self._closed)
            finally:
                self._give_back(taken, program.over)

    def _start(self, call: ChildCall, fds: tuple[int, ...]) -> MinderProcess:
        """Hand the call to an idle minder, or to a new one."""
        if len(fds) > MAX_FDS:
            raise HandlerError("too many descriptors to pass on", outcome=Outcome.NOT_STARTED)
        while True:
            taken = self._idle.take()
            fresh = taken is None
            try:
                taken = taken or MinderProcess()
                taken.start(call, fds)
            except (OSError, MinderGone) as error:
                if taken is not None:
                    taken.close()
                if fresh:
                    raise Crashed(
                        f"no process could be started: {describe(error)}",
                        outcome=Outcome.NOT_STARTED,
                    ) from None
            except BaseException:
                if taken is not None:
                    taken.close()
                raise
            else:
                return taken

    def _give_back(self, taken: MinderProcess, over: bool) -> None:
        with self._changed:
            if over and taken.reusable and not self._closed:
                self._idle.put(taken)
                return
        if over and taken.reusable:
            taken.close()
        else:
            taken.kill()

    @contextmanager
    def _waker(self, job: Job) -> Iterator[Waker]:
        with Waker() as waker:
            with self._changed:
                if self._closed:
                    raise Interrupted("the daemon is stopping", outcome=Outcome.NOT_STARTED)
                self._wakers.add(waker)
            try:
                job.stop.on_request(waker.wake)
                yield waker
            finally:
                with self._changed:
                    self._wakers.discard(waker)
                    self._changed.notify_all()

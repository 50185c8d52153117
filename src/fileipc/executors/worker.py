"""The daemon's end of a worker: a pebble pool of one process.

One process a pool, because a kill may leave a pool's locks and pipes in any state: with a pool
goes one call, and no other is disturbed. pebble's own timeout is not used; it counts on the wall
clock, and a clock that is set would kill what has time left.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from concurrent.futures import Future
from typing import Any

import psutil
from pebble import ProcessPool

from . import sweep
from .edge import describe
from .fork_server import Late, preload, turn
from .output import Output
from .start_process import UNKNOWN_EXIT, OneProcess
from .worker_process import Setup, begin, execute, hello

_FORGET = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
_STATUS_WAIT = 2.0  # seconds in which the exit code of a process that broke off becomes known
_PRELOAD = [
    "pebble.pool.process",
    f"{__package__}.forkserver_setup",
    execute.__module__,
    OneProcess.__module__,
]


class WorkerStartError(Exception):
    """A worker process could not be started."""


def prepare() -> None:
    """To be called once before the first worker."""
    preload(_PRELOAD)


class Worker:
    """One process for handlers. Not to be used by two threads at once, but for `give_up`.

    `path` goes in front of its `sys.path`; `main`: it has loaded the program's main module;
    `wake` is set by whoever wants its user to look up; `output`: what its handlers print.
    """

    def __init__(self, path: tuple[str, ...], *, main: bool) -> None:
        self.path = path
        self.main = main
        self.calls = 0
        self.wake = threading.Event()
        self._process: psutil.Process | None = None
        self._last: Future[Any] | None = None
        self._given_up = False
        self._context = OneProcess()
        self._tied, self._lifeline = self._context.Pipe(duplex=False)
        self.output = Output(*self._context.Pipe(duplex=False))
        forget = _FORGET if sys.flags.safe_path else (*_FORGET, "PYTHONSAFEPATH")
        self._pool: Any = ProcessPool(
            max_workers=1,
            initializer=begin,
            initargs=(Setup(self._tied, self.output.writer, path, forget),),
            context=self._context,
        )

    def launch(self, until: float) -> None:
        """Start it and wait until it answers; `until` on the monotonic clock. `close` follows.

        Raises:
            WorkerStartError: it did not.
        """
        try:
            try:
                with turn(until, main=self.main):
                    greeting = self._pool.schedule(hello)
            finally:
                pid = self._context.pid
                self._process = None if pid is None else psutil.Process(pid)
            greeting.add_done_callback(lambda _greeting: self.wake.set())
            self.wake.wait(max(0.0, until - time.monotonic()))
            if self._given_up or not greeting.done():
                raise WorkerStartError("it did not answer in time")
            greeting.result()
        except WorkerStartError:
            raise
        except Late as error:
            raise WorkerStartError(str(error)) from None
        except Exception as error:
            raise WorkerStartError(describe(error)) from error
        finally:
            self._tied.close()

    def give_up(self) -> None:
        """Let `launch` end, from another thread."""
        self._given_up = True
        self.wake.set()

    def alive(self) -> bool:
        return self._process is not None and sweep.alive(self._process)

    def start(self, order: bytes) -> Future[Any]:
        """Hand it a call: a pickled Order.

        Raises:
            RuntimeError: the worker is dead.
        """
        self.calls += 1
        self.output.begin()
        self._last = self._pool.schedule(execute, (order,))
        return self._last

    def exit_code(self) -> int | None:
        """How the process of a broken pool ended (negative: a signal).

        None: it runs, and so broke off by itself; UNKNOWN_EXIT: there is nobody who knows.
        """
        process = self._context.process
        if process is None or process.pid is None:
            return UNKNOWN_EXIT
        process.join(_STATUS_WAIT)
        return process.exitcode

    def kill(self) -> None:
        """End the process and all it started, now; `close` must follow."""
        self._pool.stop()
        if self._process is not None:
            sweep.kill_tree(self._process)

    def close(self) -> None:
        """Kill it and let go of everything it used; takes a few tenths of a second."""
        self.kill()
        self._pool.join()
        self._lifeline.close()
        self.output.close()
        if self._last is not None and self._last.done():
            _release(self._last.exception())


def _release(error: BaseException | None) -> None:
    """Let go of the frames that an error of pebble's threads holds.

    A half-sent message among them would stay in memory in a circle, and Python 3.13 complains
    on stderr when its garbage collector meets it.
    """
    while isinstance(error, BaseException):
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__

"""The daemon's end of a worker: a pebble pool of one process.

One process a pool, because a kill may leave a pool's locks and pipes in any state: with a pool
goes one call, and no other is disturbed. pebble's own timeout is not used; it counts on the wall
clock, and a clock that is set would kill what has time left.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from typing import Any

import psutil
from pebble import ProcessPool

from . import sweep
from .edge import describe
from .worker_process import Answer, Setup, begin, execute, hello

_SAFE_PATH = "PYTHONSAFEPATH"
_FORGET = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
_PRELOAD = ["pebble.pool.process", f"{__package__}.forkserver_setup", execute.__module__]
_METHOD = "forkserver" if sys.platform.startswith("linux") else "spawn"
_launching = threading.Lock()
"""One launch at a time: the fork server, the environment and `__main__` are the process's own."""


class WorkerStartError(Exception):
    """A worker process could not be started."""


def context() -> BaseContext:
    """How workers are started: never by fork, for the daemon has threads."""
    multiprocessing.set_forkserver_preload(_PRELOAD)
    return multiprocessing.get_context(_METHOD)


class Worker:
    """One process for handlers. Not to be used by two threads at once.

    `path` goes in front of its `sys.path`; `main`: it has loaded the program's main module;
    `wake` is set by whoever wants its user to look up.
    """

    def __init__(
        self, ctx: BaseContext, path: tuple[str, ...], *, main: bool, timeout: float
    ) -> None:
        """Start it and wait, `timeout` seconds at most, until it answers.

        Raises:
            WorkerStartError: it did not.
        """
        self.path = path
        self.main = main
        self.calls = 0
        self.wake = threading.Event()
        self._process: psutil.Process | None = None
        self._last: Future[Answer] | None = None
        reader, self._lifeline = ctx.Pipe(duplex=False)
        forget = _FORGET if sys.flags.safe_path else (*_FORGET, _SAFE_PATH)
        self._pool: Any = ProcessPool(
            max_workers=1,
            initializer=begin,
            initargs=(Setup(reader, path, forget),),
            context=ctx,
        )
        try:
            with _launching, _launch(main):
                greeting = self._pool.schedule(hello)
            self._process = psutil.Process(greeting.result(timeout))
        except BaseException as error:
            self.close()
            if isinstance(error, Exception):
                raise WorkerStartError(describe(error)) from error
            raise
        finally:
            # Without this end pebble cannot start a successor, which would be one unknown to
            # us: a worker that dies, with whatever exit code, breaks its pool at once.
            reader.close()

    def alive(self) -> bool:
        return self._process is not None and sweep.alive(self._process)

    def start(self, order: bytes) -> Future[Answer]:
        """Hand it a call: a pickled Order.

        Raises:
            RuntimeError: the worker is dead.
        """
        self.calls += 1
        self._last = self._pool.schedule(execute, (order,))
        return self._last

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
        if self._last is not None and self._last.done():
            _release(self._last.exception())


def _release(error: BaseException | None) -> None:
    """Let go of the frames that an error of pebble's threads holds.

    A half-sent message among them would stay in memory in a circle, and Python 3.13 complains
    on stderr when its garbage collector meets it.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__


@contextmanager
def _launch(main: bool) -> Iterator[None]:
    """Start helpers without running code of the current folder or, unasked, the main module.

    multiprocessing starts its servers with `python -c`, which puts the current folder in front
    of the path: a `socket.py` in a project would run. And each child loads the program's main
    module anew, unless that is a package's `__main__`.
    """
    before = os.environ.get(_SAFE_PATH)
    module = sys.modules["__main__"]
    spec = module.__spec__
    os.environ[_SAFE_PATH] = "1"
    if not main:
        module.__spec__ = ModuleSpec(f"{__package__}.__main__", None)
    try:
        if _METHOD == "forkserver":
            forkserver.ensure_running()
        yield
    finally:
        module.__spec__ = spec
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before

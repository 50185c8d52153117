"""One launch of a worker at a time, and a fork server that cannot hold it up for long.

The fork server is one for the whole daemon (multiprocessing offers no other), so a handler of
one root can stop or kill the server of all: it has the same user. What that costs is bounded: a
server that is stopped, or does not answer, is killed and the next one started, while the calls
that run go on (see `start_process`). What a dead server does no longer: tell exit codes, and reap
the orphans of its workers.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from multiprocessing import forkserver, resource_tracker

import psutil

from . import sweep
from .start_process import METHOD, Process

_SAFE_PATH = "PYTHONSAFEPATH"
_LATE = 5.0  # seconds in which a fork server that has served before starts a process
_LATE_FIRST = 30.0  # the same for a new one, which loads its modules first
_LOOK = 0.25  # seconds between two looks at the server while a launch is under way
_launching = threading.Lock()
"""One launch at a time: the fork server, the environment and `__main__` are the process's own."""


class Late(Exception):
    """The turn to launch did not come in time."""


def preload(modules: list[str]) -> None:
    """Load these into the fork server, before it starts."""
    multiprocessing.set_forkserver_preload(modules)
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)


@contextmanager
def turn(until: float, *, main: bool) -> Iterator[None]:
    """The block may start one process; `until` on the monotonic clock.

    Where the fork server does not do its part, it is killed: the block then gets an EOFError
    or another OSError of its pipe.

    Raises:
        Late: others were launching all the time.
    """
    if not _launching.acquire(timeout=max(0.0, until - time.monotonic())):
        raise Late("other workers were being started all the time")
    try:
        _end_stopped()
        with _watched(), _apart(main):
            if METHOD == "forkserver":
                forkserver.ensure_running()
            yield
    finally:
        _launching.release()


@contextmanager
def _watched() -> Iterator[None]:
    """Kill the fork server where the block takes too long for it."""
    over = threading.Event()
    before = _pid()

    def watch() -> None:
        begun = time.monotonic()
        while not over.wait(_LOOK):
            ran = time.monotonic() - begun
            if not _end_stopped() and ran > (_LATE if _pid() == before else _LATE_FIRST):
                _end(_pid())
                begun = time.monotonic()

    thread = threading.Thread(target=watch, name="fileipc-launch-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()  # so that it never kills the server of the next launch


@contextmanager
def _apart(main: bool) -> Iterator[None]:
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
        yield
    finally:
        module.__spec__ = spec
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _pid() -> int | None:
    return getattr(getattr(forkserver, "_forkserver", None), "_forkserver_pid", None)


def _at_exit() -> None:
    """Python waits at its end for the resource tracker, and that for whoever knows its pipe.

    The server is killed whether or not it stands still, for it may have been told to just now;
    but not where an embedding program has processes of its own from it.
    """
    _end_stopped()
    if all(isinstance(child, Process) for child in multiprocessing.active_children()):
        _end(_pid())


def _end_stopped() -> bool:
    """Kill multiprocessing's helpers where they are stopped: launch and exit wait for both."""
    tracker = getattr(getattr(resource_tracker, "_resource_tracker", None), "_pid", None)
    ended = [_end(pid, only_stopped=True) for pid in (_pid(), tracker)]
    return any(ended)


def _end(pid: int | None, *, only_stopped: bool = False) -> bool:
    """SIGKILL a helper, which is our child and so keeps its number until it is waited for."""
    with contextlib.suppress(psutil.Error):
        if pid is not None and (process := psutil.Process(pid)).ppid() == os.getpid():
            if only_stopped and not sweep.stopped(process):
                return False
            sweep.end(process)
            return True
    return False

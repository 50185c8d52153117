"""What runs inside a worker: the set-up of the process, and one handler's call at a time.

Only plain bytes and tuples travel between a worker and the daemon, so nothing that a handler
returns or raises has to be picklable.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import pickle
import resource
import select
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from ..errors import CommandFailure, HandlerError
from ..protocol.codec import encode_result
from .edge import clean, describe, guarded
from .leftovers import State
from .minder import become_subreaper

DETAILS_LIMIT = 64 * 1024

Said = tuple[str, bytes] | tuple[str, str, str, str, bytes]
Answer = tuple[bool, str, bytes] | tuple[bool, str, str, str, str, bytes]
"""("ok", JSON), or ("failed", code, message, outcome, details as JSON); an Answer begins with
whether the worker is used up: the call left something behind."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How a worker is set up, once.

    `lifeline` is the reading end of a pipe whose writing end only the daemon has. `output` takes
    what handlers print. `path` goes in front of `sys.path`. `forget` are environment variables
    that handlers must not see.
    """

    lifeline: Connection[Any, Any]
    output: Connection[Any, Any]
    path: tuple[str, ...]
    forget: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One call: see `ProcessCall`; `limit` of the result in bytes, `memory` likewise."""

    target: str
    arguments: Mapping[str, Any]
    single_argument: bool
    folder: str
    limit: int
    memory: int | None


def begin(setup: Setup) -> None:
    """Make the process fit for handlers (pebble calls this first)."""
    os.setsid()  # Ctrl-C at the daemon's terminal goes to the daemon only
    _tie(setup.lifeline)
    become_subreaper()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # pebble's handler turns it into an exit code
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(setup.output.fileno(), 1)  # what a handler prints is no part of any result
    os.dup2(1, 2)
    setup.output.close()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  for the life of the process
    sys.stdout = sys.stderr
    for name in setup.forget:
        os.environ.pop(name, None)
    sys.path[:0] = setup.path


def hello() -> int:
    """The worker's pid; the first thing it is asked."""
    return os.getpid()


def execute(data: bytes) -> Answer:
    """Run one pickled Order."""
    me = os.getpid()
    before = State.now()
    try:
        said = _said(data)
    finally:
        if os.getpid() != me:
            os._exit(0)  # a child that the handler forked and forgot to end: it must not answer
    with contextlib.suppress(Exception):  # the handler may have put anything in its place
        sys.stdout.flush()
    return (State.now() != before, *said)


def _said(data: bytes) -> Said:
    try:
        return "ok", _run(data)
    except CommandFailure as failure:
        return _failed(failure)
    except BaseException as error:  # noqa: BLE001  such as a MemoryError under the cap
        return _failed(HandlerError(describe(error)))


def _run(data: bytes) -> bytes:
    try:
        order: Order = pickle.loads(data)  # noqa: S301  from the daemon
    except Exception as error:  # noqa: BLE001  the arguments' classes are the handler's code
        raise HandlerError(clean(f"the arguments cannot be read: {error}")) from None
    with _limited(order.memory), _inside(order.folder):
        return bytes(guarded(lambda: _call(order), order.limit, BaseException))


def _call(order: Order) -> Any:
    module, _, name = order.target.partition(":")
    function: Any = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    if order.single_argument:
        return function(dict(order.arguments))
    return function(**order.arguments)


def _failed(failure: CommandFailure) -> Said:
    try:
        details = bytes(encode_result(failure.details, limit=DETAILS_LIMIT))
    except Exception:  # noqa: BLE001  a handler may put anything into the details
        details = b"{}"
    message = clean(str(failure.message))
    return "failed", failure.code, message, str(failure.actual_outcome), details


def _tie(lifeline: Connection[Any, Any]) -> None:
    """Let the kernel kill this process group when the daemon is gone, however it went.

    The daemon holds the only writing end of the pipe. When that is closed, the kernel sends
    SIGKILL to the group: no thread and no Python code has to run for it, so a handler that
    holds the interpreter's lock for ever does not outlive a daemon that was killed either.
    """
    fd = lifeline.fileno()
    fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpid())
    if hasattr(fcntl, "F_SETSIG"):  # elsewhere it is SIGIO, which kills by default
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if poll.poll(0):  # it went before the signal was set up
        os._exit(1)


@contextmanager
def _inside(folder: str) -> Iterator[None]:
    """Work in the project's folder, and stay in none afterwards."""
    with contextlib.suppress(OSError):  # a project that is gone is the handler's to report
        os.chdir(folder)
    try:
        yield
    finally:
        os.chdir("/")


@contextmanager
def _limited(memory: int | None) -> Iterator[None]:
    """Cap the address space for one call, in bytes."""
    if memory is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    cap = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_AS, (cap, hard))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the handler lowered it: the worker is used up
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

"""The port between handlers and executors.

A handler turns validated arguments into a call; the call's kind says which executor runs it.
An executor either returns the result as JSON or raises a `CommandFailure`; nothing else leaves
it, whatever the handler did.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import msgspec

from ..protocol.models import Progress

DEFAULT_RESULT_LIMIT = 16 * 1024 * 1024
REPORT_AFTER = 0.25  # seconds of running after which a `running` response appears


class Isolation(StrEnum):
    """Where a handler runs."""

    INLINE = "inline"
    THREAD = "thread"
    PROCESS = "process"
    SUBPROCESS = "subprocess"


class Stop:
    """A request to stop one attempt, with its reason; set once, seen by whoever waits."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._wakers: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self.reason: str | None = None

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def request(self, reason: str) -> None:
        """Ask the attempt to end; `reason` is "cancelled" or "interrupted". The first one wins."""
        with self._lock:
            if self._event.is_set():
                return
            self.reason = reason
            self._event.set()
            wakers = list(self._wakers)
        for wake in wakers:
            wake()

    def on_request(self, wake: Callable[[], None]) -> None:
        """Call `wake` (once, from any thread, must not block) when the stop is requested."""
        with self._lock:
            if not self._event.is_set():
                self._wakers.append(wake)
                return
        wake()


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt at one command, as an executor sees it.

    `deadline` is on the monotonic clock. An executor that waits calls `report(None)` once the
    attempt has run `REPORT_AFTER` seconds, and `report(progress)` as progress comes.
    """

    id: str
    type: str
    attempt: int
    project: str
    deadline: float
    result_limit: int = DEFAULT_RESULT_LIMIT
    stop: Stop = field(default_factory=Stop)
    report: Callable[[Progress | None], None] = lambda _progress: None

    def remaining(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self.deadline - time.monotonic())


@dataclass(frozen=True, slots=True)
class InlineCall:
    """Answered by the daemon itself: only what can neither hang nor fail."""

    run: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class ProcessCall:
    """`module:function` called as `function(**arguments)` in a killable process.

    It works in the job's project folder. `path` is put in front of `sys.path` there. With
    `single_argument` the function gets the arguments as one dict (custom handlers) instead of
    keywords. `memory` caps the process's address space during the call, in bytes.
    """

    target: str
    arguments: Mapping[str, Any]
    path: tuple[str, ...] = ()
    single_argument: bool = False
    memory: int | None = None


class Sink(Protocol):
    """Takes a child's stdout as it comes."""

    def feed(self, chunk: bytes) -> bool:
        """Take one chunk; False: enough, the child may be ended."""
        ...


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child process ended. Exactly one of `exit_code` and `signal` is set."""

    exit_code: int | None
    signal: str | None
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    duration: float
    enough: bool = False  # the sink had enough and the child was ended for it


@dataclass(frozen=True, slots=True)
class ChildCall:
    """A program started without a shell, in a session and process group of its own.

    `finish` turns the child's end into the result or raises a `CommandFailure`. Whatever the
    child has started is ended with it. `capture` caps each kept stream, in bytes; the rest is
    read, counted and dropped. With a `sink` stdout goes there instead. `memory` caps the address
    space of each process, in bytes. `grace`: seconds between TERM and KILL. `pass_fds` become
    the descriptors 3, 4, ... in the child, in their order; they stay the caller's to close.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    finish: Callable[[ChildEnd], Any]
    stdin: bytes = b""
    sink: Sink | None = None
    capture: int = 256 * 1024
    memory: int | None = None
    grace: float = 2.0
    pass_fds: tuple[int, ...] = ()


Call = InlineCall | ProcessCall | ChildCall
C = TypeVar("C", contravariant=True)


class Executor(Protocol[C]):
    """Runs calls of one kind."""

    def run(self, call: C, job: Job) -> msgspec.Raw:
        """Run to the end, the deadline or the stop.

        Raises:
            CommandFailure: Timeout at the deadline, Cancelled or Interrupted after a stop,
                Crashed where the process died, or what the handler itself raised.
        """
        ...

    def close(self) -> None:
        """End every process that is left."""
        ...


class ShrinkingExecutor(Executor[C], Protocol[C]):
    """An executor that keeps processes for the next call."""

    def shrink(self) -> None:
        """End those that have been idle for a while; to be called now and then."""
        ...

"""Handlers in processes that can be killed.

A worker runs one call at a time and is used again, up to `recycle` calls. At the deadline, at a
stop and at the executor's end it is killed with all its descendants; the next call gets another.
Workers are told apart by the folders on their path, so a project's modules are never seen by the
built-in handlers, and an executor belongs to one root, so never by another project.

A handler's module is loaded once in each worker: a change on disk is seen by new workers only.
A worker whose call left something behind (threads, processes, a timer, a changed limit) serves
no other: it is killed before the answer goes out, and what is left with it.

The fork server that starts workers is one for all roots (see `fork_server`); a handler that harms
it costs the others the start of a new one and no more.
"""

from __future__ import annotations

import errno
import pickle
import threading
from concurrent.futures.process import BrokenProcessPool

import msgspec
from pebble import ProcessExpired

from ..errors import (
    CommandFailure,
    Crashed,
    HandlerError,
    InternalError,
    Interrupted,
    Outcome,
)
from .answer import read, unreadable
from .attempt import Attempt, refuse_if_over
from .edge import clean, describe, signal_name
from .idle import Idle
from .launch import Launch
from .port import Job, ProcessCall
from .start_process import UNKNOWN_EXIT
from .worker import Worker, prepare
from .worker_process import Order

_MAIN = "__main__"
_OWN = f"{__package__.rpartition('.')[0]}.handlers."
_LONGEST = 3600.0  # seconds; what `Event.wait` takes is not endless
_CLOSE_TIMEOUT = 10.0  # seconds; killing takes milliseconds


class ProcessExecutor:
    """Runs ProcessCalls; `run` may be called from many threads at once.

    Workers start on demand; `shrink` ends those that were idle for `idle_timeout` seconds.
    With `import_main` a call's target may lie in `__main__`: workers for such calls, and no
    others, load the program's main module again, as multiprocessing does it. So it must be a
    file, and what it does as a program must stand under `if __name__ == "__main__"`.
    """

    def __init__(
        self, *, import_main: bool = False, idle_timeout: float = 30.0, recycle: int = 500
    ) -> None:
        prepare()
        self._import_main = import_main
        self._idle_timeout = idle_timeout
        self._recycle = recycle
        self._idle: Idle[Worker] = Idle()
        self._changed = threading.Condition()
        self._busy: set[Worker] = set()
        self._dying: set[Worker] = set()
        self._launches: set[Launch] = set()
        self._closed = False

    def run(self, call: ProcessCall, job: Job) -> msgspec.Raw:
        """Run the call to its end; see `Executor.run`.

        Raises:
            CommandFailure: Timeout, Cancelled, Interrupted, Crashed; HandlerError for any
                exception of the handler that is not a CommandFailure itself.
        """
        refuse_if_over(job)
        order = _packed(call, job)
        attempt = Attempt(job)
        worker = self._take(call, job)
        fit = False
        try:
            answer = self._wait(worker, order, attempt, job)
            trusted = call.target.startswith(_OWN)
            result, used_up = read(answer, job.result_limit, trusted=trusted)
            if isinstance(result, CommandFailure):
                _tell_output(result, worker)
            fit = not used_up
        except CommandFailure as failure:
            _tell_output(failure, worker)
            raise
        finally:
            self._give_back(worker, fit)
        if isinstance(result, CommandFailure):
            raise result
        return result

    def shrink(self) -> None:
        """End the workers that have been idle for long."""
        for worker in self._idle.expired(self._idle_timeout):
            self._bury(worker)

    def close(self) -> None:
        """End every worker; calls under way raise Interrupted."""
        with self._changed:
            self._closed = True
            for worker in self._busy:
                worker.wake.set()
            for launch in self._launches:
                launch.give_up()
        for worker in self._idle.expired(0):
            self._bury(worker)
        with self._changed:
            self._changed.wait_for(
                lambda: not (self._busy or self._dying or self._launches), _CLOSE_TIMEOUT
            )

    def _take(self, call: ProcessCall, job: Job) -> Worker:
        main = call.target.partition(":")[0] == _MAIN
        if main and not self._import_main:
            raise HandlerError(
                "a handler in __main__ exists only in the program that it belongs to",
                outcome=Outcome.NOT_STARTED,
            )
        while True:
            worker = self._idle.take(lambda idle: idle.path == call.path and idle.main == main)
            if worker is None:
                break
            if worker.alive():
                return self._registered(worker)
            self._bury(worker)
        return self._registered(self._launched(call.path, main, job))

    def _launched(self, path: tuple[str, ...], main: bool, job: Job) -> Worker:
        """Start a worker, and leave it alone at the deadline, at a stop and at the end."""
        launch = Launch(path, main, job.deadline, self._arrived)
        with self._changed:
            self._refuse_if_closed()
            self._launches.add(launch)
        try:
            launch.start()
        except RuntimeError as error:
            self._arrived(launch)
            raise _no_worker(str(error)) from None
        job.stop.on_request(launch.wake.set)
        try:
            while not launch.over:
                refuse_if_over(job)
                self._refuse_if_closed()
                launch.wake.wait(min(job.remaining(), _LONGEST))
                launch.wake.clear()
        except CommandFailure:
            self._leave(launch)
            raise
        if launch.worker is None:
            refuse_if_over(job)
            self._refuse_if_closed()
            raise _no_worker(launch.error)
        return launch.worker

    def _arrived(self, launch: Launch) -> None:
        """A launch is over (this is its own thread)."""
        with self._changed:
            launch.over = True
            wanted = launch.wanted
            self._launches.discard(launch)
            self._changed.notify_all()
        launch.wake.set()
        if not wanted and launch.worker is not None:
            self._keep(launch.worker)

    def _leave(self, launch: Launch) -> None:
        with self._changed:
            launch.wanted = False
            over = launch.over
        if over and launch.worker is not None:
            self._keep(launch.worker)

    def _keep(self, worker: Worker) -> None:
        """Have a worker for the next call that nobody waits for any more."""
        with self._changed:
            if not self._closed:
                self._idle.put(worker)
                return
        self._bury(worker)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise Interrupted("the daemon is stopping", outcome=Outcome.NOT_STARTED)

    def _registered(self, worker: Worker) -> Worker:
        with self._changed:
            if not self._closed:
                self._busy.add(worker)
                return worker
        self._bury(worker)
        raise Interrupted("the daemon is stopping", outcome=Outcome.NOT_STARTED)

    def _wait(self, worker: Worker, order: bytes, attempt: Attempt, job: Job) -> object:
        """The answer, unchecked."""
        wake = worker.wake
        wake.clear()
        try:
            future = worker.start(order)
        except RuntimeError as error:
            raise Crashed(describe(error), outcome=Outcome.NOT_STARTED) from None
        future.add_done_callback(lambda _future: wake.set())
        job.stop.on_request(wake.set)
        while not future.done():
            failure = attempt.verdict()
            if failure is None and self._closed:
                failure = Interrupted("the daemon stopped while it ran")
            if failure is not None:
                raise failure
            wake.wait(attempt.timeout())
            wake.clear()
        broken = future.exception()
        if broken is None:
            return future.result()
        if isinstance(broken, ProcessExpired | BrokenProcessPool | RuntimeError):
            raise _crashed(worker.exit_code())
        raise unreadable()

    def _give_back(self, worker: Worker, fit: bool) -> None:
        """Keep a worker that is fit for more calls; kill any other before the answer goes out."""
        if not fit:
            worker.kill()
        with self._changed:
            fit = fit and worker.calls < self._recycle and not self._closed
            if fit:
                self._idle.put(worker)
            else:
                self._dying.add(worker)
            self._busy.discard(worker)
            self._changed.notify_all()
        if not fit:
            self._bury(worker)

    def _bury(self, worker: Worker) -> None:
        """Let go of a worker in the background: nobody should wait for pebble's threads."""

        def bury() -> None:
            worker.close()
            with self._changed:
                self._dying.discard(worker)
                self._changed.notify_all()

        with self._changed:
            self._dying.add(worker)
        threading.Thread(target=bury, name="fileipc-bury", daemon=True).start()


def _packed(call: ProcessCall, job: Job) -> bytes:
    order = Order(
        target=call.target,
        arguments=dict(call.arguments),
        single_argument=call.single_argument,
        folder=job.project,
        limit=job.result_limit,
        memory=call.memory,
    )
    try:
        return pickle.dumps(order)
    except Exception as error:  # noqa: BLE001  pickling runs the arguments' own code
        raise InternalError(
            f"the arguments cannot be sent to a process: {describe(error)}",
            outcome=Outcome.NOT_STARTED,
        ) from None


def _no_worker(why: str) -> Crashed:
    return Crashed(clean(f"no worker process could be started: {why}"), outcome=Outcome.NOT_STARTED)


def _tell_output(failure: CommandFailure, worker: Worker) -> None:
    """Put what the handler printed last into the details."""
    output = worker.output.tail()
    if output:
        failure.details.setdefault("output", output)


def _crashed(code: int | None) -> Crashed:
    """Say how the worker ended, as far as that is known."""
    if code is None:
        return Crashed("the handler's process broke its connection to the daemon")
    if code == UNKNOWN_EXIT:
        return Crashed(
            "the handler's process ended without an answer; how is not known, because the "
            "process that starts workers was stopped or died"
        )
    if code >= 0:
        hint = " (had the handler closed descriptors of others?)" if code == errno.EBADF else ""
        return Crashed(
            f"the handler's process ended with exit code {code} and no answer{hint}",
            details={"exit_code": code},
        )
    name = signal_name(-code)
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return Crashed(f"the handler's process was ended by {name}{hint}", details={"signal": name})

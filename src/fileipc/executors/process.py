"""Handlers in processes that can be killed.

A worker runs one call at a time and is used again, up to `recycle` calls. At the deadline, at a
stop and at the executor's end it is killed with all its descendants; the next call gets another.
Workers are told apart by the folders on their path, so a project's modules are never seen by the
built-in handlers, and an executor belongs to one root, so never by another project.

A handler's module is loaded once in each worker: a change on disk is seen by new workers only.
What a call leaves behind (threads, background processes) lives no longer than its worker.
"""

from __future__ import annotations

import pickle
import threading
from concurrent.futures.process import BrokenProcessPool

import msgspec
from pebble import ProcessExpired

from ..errors import (
    ERROR_TABLE,
    CommandFailure,
    Crashed,
    HandlerError,
    InternalError,
    Interrupted,
    Outcome,
)
from .attempt import Attempt, refuse_if_over
from .edge import clean, describe, signal_name
from .idle import Idle
from .port import Job, ProcessCall
from .worker import Worker, WorkerStartError, context
from .worker_process import Answer, Order

_MAIN = "__main__"
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
        self._context = context()
        self._import_main = import_main
        self._idle_timeout = idle_timeout
        self._recycle = recycle
        self._idle: Idle[Worker] = Idle()
        self._changed = threading.Condition()
        self._busy: set[Worker] = set()
        self._dying: set[Worker] = set()
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
        answered = False
        try:
            answer = self._wait(worker, order, attempt, job)
            answered = True
        finally:
            self._give_back(worker, answered)
        return _result(answer)

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
        for worker in self._idle.expired(0):
            self._bury(worker)
        with self._changed:
            self._changed.wait_for(lambda: not self._busy and not self._dying, _CLOSE_TIMEOUT)

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
        try:
            started = Worker(self._context, call.path, main=main, timeout=job.remaining())
        except WorkerStartError as error:
            refuse_if_over(job)
            raise Crashed(
                clean(f"no worker process could be started: {error}"), outcome=Outcome.NOT_STARTED
            ) from None
        return self._registered(started)

    def _registered(self, worker: Worker) -> Worker:
        with self._changed:
            if not self._closed:
                self._busy.add(worker)
                return worker
        self._bury(worker)
        raise Interrupted("the daemon is stopping", outcome=Outcome.NOT_STARTED)

    def _wait(self, worker: Worker, order: bytes, attempt: Attempt, job: Job) -> Answer:
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
        try:
            return future.result()
        except (ProcessExpired, BrokenProcessPool, RuntimeError) as error:
            raise _crashed(error) from None

    def _give_back(self, worker: Worker, answered: bool) -> None:
        """Keep a worker that is fit for more calls; kill any other before the answer goes out."""
        if not answered:
            worker.kill()
        with self._changed:
            fit = answered and worker.calls < self._recycle and not self._closed
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


def _result(answer: Answer) -> msgspec.Raw:
    if answer[0] == "ok":
        return msgspec.Raw(answer[1])
    assert len(answer) == 5
    _, code, message, outcome, details = answer
    kind: type[CommandFailure] = ERROR_TABLE.get(code, HandlerError)
    raise kind(message, details=msgspec.json.decode(details), outcome=Outcome(outcome))


def _crashed(error: BaseException) -> Crashed:
    """Say how the worker died, as far as pebble knows."""
    code = error.exitcode if isinstance(error, ProcessExpired) else None
    if code is None:
        return Crashed("the handler's process ended without an answer")
    if code >= 0:
        return Crashed(
            f"the handler's process ended with exit code {code} and no answer",
            details={"exit_code": code},
        )
    name = signal_name(-code)
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return Crashed(f"the handler's process was ended by {name}{hint}", details={"signal": name})

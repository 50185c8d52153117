"""One command, from claim to settle: the only way through."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import msgspec

from ..errors import (
    Cancelled,
    CommandFailure,
    InternalError,
    Interrupted,
    Outcome,
)
from ..executors.port import Call, Isolation, Job
from ..handlers.port import Handler, Scope
from ..handlers.registry import Registry
from ..protocol.facts import Fact, Level, Listener
from ..protocol.models import Command, Progress
from ..spool.store import Spool
from .claiming import Claiming, Right
from .execution import Executors
from .intake import Envelope
from .running import Attempt, Running
from .settle import End, Settler
from .steps import Abandoned, Steps


class Fate(Enum):
    """What became of an envelope."""

    SETTLED = "settled"  # by this call
    ANSWERED = "answered"  # it had been settled before
    ELSEWHERE = "elsewhere"  # its id is in other hands
    GONE = "gone"  # withdrawn, or another file took its place
    PUT_BACK = "put_back"  # it waits again: the root stops


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call that may begin."""

    handler: Handler
    call: Call
    right: Right


class Work:
    """Takes envelopes to their end; safe from any thread."""

    def __init__(
        self,
        spool: Spool,
        steps: Steps,
        claiming: Claiming,
        settler: Settler,
        registry: Registry,
        executors: Executors,
        running: Running,
        *,
        scope: Scope,
        result_limit: int,
        root: str,
        tell: Listener,
        look_again: Callable[[str], None],
    ) -> None:
        self._spool = spool
        self._steps = steps
        self._claiming = claiming
        self._settler = settler
        self._registry = registry
        self._executors = executors
        self._running = running
        self._scope = scope
        self._result_limit = result_limit
        self._root = root
        self._tell = tell
        self._look_again = look_again

    def is_inline(self, command: Command) -> bool:
        """Whether the daemon itself answers this, however busy the workers are."""
        handler = self._registry.find(command.type, command.args)
        return handler is None or handler.isolation is Isolation.INLINE

    def run(
        self, envelope: Envelope, verdict: CommandFailure | None = None, *, patient: bool = True
    ) -> Fate:
        """Claim, run and settle; with a `verdict` settle with that failure instead of running.

        Args:
            patient: see `Settler`; False only for what may be done again.

        Raises:
            OSError: it cannot be claimed (or, without patience, settled) now; do it again later.
            Abandoned: the root is given up.
        """
        attempt = self._running.begin(envelope.command.id, envelope.command.type)
        if attempt is None:
            return Fate.ELSEWHERE
        try:
            return self._walk(envelope, attempt, verdict, patient)
        finally:
            self._running.end(attempt)

    def _walk(
        self, envelope: Envelope, attempt: Attempt, verdict: CommandFailure | None, patient: bool
    ) -> Fate:
        command_id = envelope.command.id
        final = self._spool.find_final(command_id)
        if final is not None:
            if self._spool.claims.exists(command_id):
                self._settler.finish(final, envelope.file.name, envelope.file, patient=patient)
            else:
                self._settler.repeat(envelope, final)
            return Fate.ANSWERED
        now = time.time()
        ready = self._make_ready(envelope, now, verdict)
        if ready is None:
            return Fate.GONE
        if isinstance(ready, End):
            self._settler.settle(envelope, ready, patient=patient)
            return Fate.SETTLED
        self._claiming.begin(command_id)
        end = self._attempt(envelope, attempt, ready, now)
        if end is None:
            self._claiming.put_back(envelope, ready.right, now)
            self._say("command_put_back", Level.INFO, command_id=command_id)
            return Fate.PUT_BACK
        try:
            self._settle(envelope, end, patient)
        except OSError:
            if not patient:  # it may simply be done again
                self._claiming.forget(command_id)
            raise
        self._claiming.forget(command_id)
        return Fate.SETTLED

    # -- before the handler -------------------------------------------------------------------

    def _make_ready(
        self, envelope: Envelope, now: float, verdict: CommandFailure | None
    ) -> _Ready | End | None:
        """Claim, look a last time, find the handler; None: the command is gone.

        Whatever goes wrong in here, nothing has run: a claim that is new is taken back.
        """
        right = self._claiming.claim(envelope, now)
        if isinstance(right, CommandFailure):
            attempt = right.details["attempts"]
            return End(failure=right, attempt=attempt, queue_ms=_queue_ms(envelope, now))
        try:
            if not self._spool.still_there(envelope.file):
                self._give_way(envelope)
                return None
            if verdict is not None:
                raise verdict
            envelope.timing.check(now)
            handler, args = self._registry.resolve(envelope.command.type, envelope.command.args)
            call = handler.prepare(args, self._scope)
        except CommandFailure as refusal:
            return _refused(refusal, right, _queue_ms(envelope, now))
        except BaseException:
            self._claiming.give_up(envelope.command.id, right)
            raise
        return _Ready(handler, call, right)

    def _give_way(self, envelope: Envelope) -> None:
        """The file was withdrawn, or another took its place, before anything ran."""
        command_id = envelope.command.id
        self._steps.do(lambda: self._spool.claims.release(command_id), patient=False)
        if self._spool.exists(envelope.file.name):
            self._look_again(envelope.file.name)
        else:
            self._say("command_withdrawn", Level.INFO, command_id=command_id)

    # -- the handler --------------------------------------------------------------------------

    def _attempt(
        self, envelope: Envelope, attempt: Attempt, ready: _Ready, now: float
    ) -> End | None:
        """One attempt; None where the command goes back to waiting."""
        queue_ms = _queue_ms(envelope, now)
        began = time.monotonic()
        limit = min(ready.handler.timeout, max(0.0, envelope.timing.expires_at - now))

        def report(progress: Progress | None) -> None:
            ran = time.monotonic() - began
            self._settler.running(
                envelope, progress, attempt=ready.right.number, ran=ran, queue=queue_ms
            )

        job = Job(
            id=envelope.command.id,
            type=envelope.command.type,
            attempt=ready.right.number,
            project=self._scope.project,
            deadline=began + limit,
            result_limit=self._result_limit,
            stop=attempt.stop,
            report=report,
        )
        self._say(
            "command_started",
            Level.DEBUG,
            command_id=job.id,
            type=job.type,
            attempt=ready.right.number,
        )
        result, failure = self._execute(ready.call, job)
        if isinstance(failure, Interrupted) and attempt.stop.reason == "interrupted":
            unbegun = failure.actual_outcome is Outcome.NOT_STARTED
            if unbegun:
                self._claiming.forget(envelope.command.id)
            if unbegun or ready.handler.idempotent:
                return None
        return End(
            result=result,
            failure=failure,
            attempt=ready.right.number,
            queue_ms=queue_ms,
            duration_ms=round((time.monotonic() - began) * 1000),
        )

    def _execute(self, call: Call, job: Job) -> tuple[msgspec.Raw | None, CommandFailure | None]:
        try:
            return self._executors.run(call, job), None
        except CommandFailure as told:
            return None, told
        except Abandoned:
            raise
        except Exception as error:  # noqa: BLE001  the executor's edge: a fault of ours is told too
            return None, self._own_fault(error, job.id, job.type)

    def _settle(self, envelope: Envelope, end: End, patient: bool) -> None:
        try:
            self._settler.settle(envelope, end, patient=patient)
        except (OSError, Abandoned):
            raise
        except Exception as error:  # noqa: BLE001  the executor's edge: its result cannot be told
            fault = self._own_fault(error, envelope.command.id, envelope.command.type)
            end = End(failure=fault, attempt=end.attempt, queue_ms=end.queue_ms)
            self._settler.settle(envelope, end, patient=patient)

    def _own_fault(self, error: Exception, command_id: str, type_: str) -> InternalError:
        trace = "".join(traceback.format_exception(error))
        self._say("internal_error", Level.ERROR, command_id=command_id, type=type_, trace=trace)
        return InternalError(f"{type(error).__name__}: {error}")

    def _say(self, event: str, level: Level, **fields: object) -> None:
        self._tell(Fact(event, level, self._root, fields))


def cancelled_unrun() -> CommandFailure:
    """The failure of a command that was cancelled while it waited."""
    return Cancelled("cancelled while it was waiting", outcome=Outcome.NOT_STARTED)


def _refused(refusal: CommandFailure, right: Right, queue_ms: int) -> End:
    """The end of a command that does not run now; it may have had effects before."""
    if not right.earlier:
        return End(failure=refusal, queue_ms=queue_ms)
    told = type(refusal)(
        f"{refusal.message}; an earlier attempt had begun",
        details=refusal.details,
        outcome=Outcome.UNKNOWN,
    )
    return End(failure=told, attempt=max(right.number - 1, 1), queue_ms=queue_ms)


def _queue_ms(envelope: Envelope, now: float) -> int:
    return max(0, round((now - envelope.file.arrival) * 1000))

"""One command, from claim to settle: the only way through."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from ..errors import (
    Cancelled,
    CommandFailure,
    Crashed,
    InternalError,
    Interrupted,
    Outcome,
)
from ..executors.port import (
    Call,
    ChildCall,
    Executor,
    InlineCall,
    Isolation,
    Job,
    ProcessCall,
    ShrinkingExecutor,
)
from ..handlers.port import Handler, Scope
from ..handlers.registry import Registry
from ..protocol.facts import Fact, Level, Listener
from ..protocol.lifecycle import Recovery, Step, Traces, recover
from ..protocol.models import Claim, Command, Progress
from ..protocol.times import iso
from ..spool.store import Spool
from .intake import Envelope
from .running import Attempt, Running
from .settle import End, Settler


@dataclass(frozen=True, slots=True)
class Executors:
    """One executor for each kind of call."""

    inline: Executor[InlineCall]
    process: ShrinkingExecutor[ProcessCall]
    child: ShrinkingExecutor[ChildCall]

    def run(self, call: Call, job: Job) -> msgspec.Raw:
        match call:
            case InlineCall():
                return self.inline.run(call, job)
            case ProcessCall():
                return self.process.run(call, job)
            case ChildCall():
                return self.child.run(call, job)

    def shrink(self) -> None:
        """End processes that have been idle for a while."""
        self.process.shrink()
        self.child.shrink()

    def close(self) -> None:
        """End every process that is left."""
        self.process.close()
        self.child.close()


@dataclass(frozen=True, slots=True)
class WorkRules:
    """`owner`, `pid` and `host` go into claims; `result_limit` in bytes."""

    owner: str
    pid: int
    host: str
    max_attempts: int
    result_limit: int


class Work:
    """Takes envelopes to their end; safe from any thread."""

    def __init__(
        self,
        spool: Spool,
        settler: Settler,
        registry: Registry,
        executors: Executors,
        running: Running,
        *,
        scope: Scope,
        rules: WorkRules,
        root: str,
        tell: Listener,
        look_again: Callable[[str], None],
    ) -> None:
        self._spool = spool
        self._settler = settler
        self._registry = registry
        self._executors = executors
        self._running = running
        self._scope = scope
        self._rules = rules
        self._root = root
        self._tell = tell
        self._look_again = look_again

    def is_inline(self, command: Command) -> bool:
        """Whether the daemon itself answers this, however busy the workers are."""
        handler = self._handler(command)
        return handler is None or handler.isolation is Isolation.INLINE

    def run(self, envelope: Envelope, verdict: CommandFailure | None = None) -> None:
        """Claim, run and settle; with a `verdict` settle with that failure instead of running.

        An id that is in somebody's hands is left to them.

        Raises:
            OSError: the claim cannot be written now; nothing has happened.
            Abandoned: the root stops and the disk takes nothing.
        """
        attempt = self._running.begin(envelope.command.id, envelope.command.type)
        if attempt is None:
            return
        try:
            self._walk(envelope, attempt, verdict)
        finally:
            self._running.end(attempt)

    def _walk(self, envelope: Envelope, attempt: Attempt, verdict: CommandFailure | None) -> None:
        command_id = envelope.command.id
        final = self._spool.find_final(command_id)
        if final is not None and not self._spool.claims.exists(command_id):
            self._settler.repeat(envelope, final)
            return
        if final is not None:
            self._settler.finish(final, envelope.file.name, envelope.file)
            return
        now = time.time()
        claim = self._claim(envelope, now, 1)
        number = 1
        if not self._spool.claims.take(command_id, claim):
            recovery = self.judge(command_id, envelope.command)
            number = recovery.attempt
            if recovery.step is not Step.RUN:
                self._settler.settle(envelope, self._lost(envelope, recovery, now))
                return
            self._spool.claims.retake(command_id, self._claim(envelope, now, number))
        if not self._spool.still_there(envelope.file):
            self._spool.claims.release(command_id)
            if self._spool.exists(envelope.file.name):
                self._look_again(envelope.file.name)  # another file took its place
            else:
                self._say("command_withdrawn", Level.INFO, command_id=command_id)
            return
        end = self._attempt(envelope, attempt, number, now, verdict)
        if end is None:
            self._put_back(command_id)
        else:
            self._settler.settle(envelope, end)

    def judge(self, command_id: str, command: Command | None) -> Recovery:
        """What becomes of a claim that this daemon did not make."""
        claim = self._spool.claims.read(command_id)
        handler = self._handler(command) if command is not None else None
        traces = Traces(
            command=command is not None,
            claimed=True,
            final=self._spool.find_final(command_id) is not None,
            attempt=claim.attempt if claim is not None else None,
            idempotent=handler.idempotent if handler is not None else None,
        )
        return recover(traces, max_attempts=self._rules.max_attempts)

    def _attempt(
        self,
        envelope: Envelope,
        attempt: Attempt,
        number: int,
        now: float,
        verdict: CommandFailure | None,
    ) -> End | None:
        """One attempt; None where the command goes back to waiting."""
        queue_ms = _queue_ms(envelope, now)
        try:
            if verdict is not None:
                raise verdict
            envelope.timing.check(now)
            handler, args = self._registry.resolve(envelope.command.type, envelope.command.args)
            call = handler.prepare(args, self._scope)
        except CommandFailure as refusal:
            return End(failure=refusal, attempt=number - 1, queue_ms=queue_ms)
        began = time.monotonic()
        limit = min(handler.timeout, max(0.0, envelope.timing.expires_at - now))

        def report(progress: Progress | None) -> None:
            ran = time.monotonic() - began
            self._settler.running(envelope, progress, attempt=number, ran=ran, queue=queue_ms)

        job = Job(
            id=envelope.command.id,
            type=envelope.command.type,
            attempt=number,
            project=self._scope.project,
            deadline=began + limit,
            result_limit=self._rules.result_limit,
            stop=attempt.stop,
            report=report,
        )
        self._say("command_started", Level.DEBUG, command_id=job.id, type=job.type, attempt=number)
        result, failure = self._execute(call, job)
        if isinstance(failure, Interrupted) and (
            handler.idempotent or failure.actual_outcome is Outcome.NOT_STARTED
        ):
            return None
        return End(
            result=result,
            failure=failure,
            attempt=number,
            queue_ms=queue_ms,
            duration_ms=round((time.monotonic() - began) * 1000),
        )

    def _execute(self, call: Call, job: Job) -> tuple[msgspec.Raw | None, CommandFailure | None]:
        try:
            return self._executors.run(call, job), None
        except CommandFailure as told:
            return None, told
        except Exception as error:  # noqa: BLE001  the executor's edge: a fault of ours is answered too
            self._say(
                "internal_error",
                Level.ERROR,
                command_id=job.id,
                type=job.type,
                trace=traceback.format_exc(),
            )
            return None, InternalError(f"{type(error).__name__}: {error}")

    def _lost(self, envelope: Envelope, recovery: Recovery, now: float) -> End:
        claim = self._spool.claims.read(envelope.command.id)
        spent = recovery.attempt or (claim.attempt if claim else 1)
        return End(
            failure=lost_failure(recovery, claim),
            attempt=spent,
            queue_ms=_queue_ms(envelope, now),
        )

    def _put_back(self, command_id: str) -> None:
        """Let a command wait again, as if it had not been started."""
        with suppress(OSError):
            self._spool.withdraw_response(command_id)
        self._spool.claims.release(command_id)
        self._say("command_put_back", Level.INFO, command_id=command_id)

    def _handler(self, command: Command) -> Handler | None:
        try:
            return self._registry.resolve(command.type, command.args)[0]
        except CommandFailure:
            return None

    def _claim(self, envelope: Envelope, now: float, attempt: int) -> Claim:
        return Claim(
            owner=self._rules.owner,
            pid=self._rules.pid,
            host=self._rules.host,
            attempt=attempt,
            claimed_at=iso(now),
            type=envelope.command.type,
            file=envelope.file.name,
        )

    def _say(self, event: str, level: Level, **fields: object) -> None:
        self._tell(Fact(event, level, self._root, fields))


def lost_failure(recovery: Recovery, claim: Claim | None) -> CommandFailure:
    """The failure of a command whose daemon died and that may not run again."""
    holder = f"pid {claim.pid} on {claim.host} since {claim.claimed_at}" if claim else "unknown"
    details = {"claimed_by": holder}
    if recovery.step is Step.SETTLE_CRASHED:
        return Crashed(
            f"given up after {recovery.attempt} attempts: the daemon died each time while it ran",
            details={**details, "attempts": recovery.attempt},
        )
    return Interrupted(
        f"the daemon that ran it died ({holder}); it is not run a second time", details=details
    )


def cancelled_unrun() -> CommandFailure:
    """The failure of a command that was cancelled while it waited."""
    return Cancelled("cancelled while it was waiting", outcome=Outcome.NOT_STARTED)


def _queue_ms(envelope: Envelope, now: float) -> int:
    return max(0, round((now - envelope.file.arrival) * 1000))

"""Claiming: who may run a command, in which attempt, and what an old claim means."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from ..errors import CommandFailure, Crashed, Interrupted
from ..handlers.port import Handler
from ..protocol.lifecycle import Recovery, Step, Traces, recover
from ..protocol.models import Claim, Command
from ..protocol.times import iso
from ..spool.store import Spool
from .intake import Envelope
from .steps import Abandoned, Steps

_TYPE_KEPT = 100  # characters of a command's type that go into its claim


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """`owner`, `pid` and `host` go into claims.

    `owner` must be another one each time a daemon takes the root.
    """

    owner: str
    pid: int
    host: str
    max_attempts: int


@dataclass(frozen=True, slots=True)
class Right:
    """The right to run: this attempt. `earlier`: one before it may have had effects."""

    number: int
    earlier: bool


class Claiming:
    """The claims of one root as the engine uses them; safe from any thread."""

    def __init__(
        self,
        spool: Spool,
        steps: Steps,
        rules: ClaimRules,
        handler_of: Callable[[Command], Handler | None],
    ) -> None:
        self._spool = spool
        self._steps = steps
        self._rules = rules
        self._handler_of = handler_of
        self._begun: set[str] = set()

    def claim(self, envelope: Envelope, now: float) -> Right | CommandFailure:
        """Claim a command, or take over an old claim of it; a failure: it may not run again.

        Raises:
            OSError: not now; nothing is claimed that was not before.
        """
        command_id, claims = envelope.command.id, self._spool.claims
        first = self._content(envelope, now, 1)
        if self._steps.do(lambda: claims.take(command_id, first), patient=False):
            return Right(1, earlier=False)
        old = claims.read(command_id)
        recovery = self.judge(command_id, envelope.command)
        if recovery.step is not Step.RUN:
            return lost_failure(recovery, old)
        own_first = old is not None and self._is_own(old) and old.attempt <= 1
        again = self._content(envelope, now, recovery.attempt)
        self._steps.do(lambda: claims.retake(command_id, again), patient=False)
        return Right(recovery.attempt, earlier=not own_first)

    def judge(self, command_id: str, command: Command | None) -> Recovery:
        """What becomes of a claim that is there already."""
        claim = self._spool.claims.read(command_id)
        if claim is not None and self._is_own(claim) and command is not None:
            # From a try that failed before the handler began, or could not be settled.
            step = Step.SETTLE_INTERRUPTED if command_id in self._begun else Step.RUN
            return Recovery(step, claim.attempt)
        handler = self._handler_of(command) if command is not None else None
        traces = Traces(
            command=command is not None,
            claimed=True,
            final=self._spool.find_final(command_id) is not None,
            attempt=claim.attempt if claim is not None else None,
            idempotent=handler.idempotent if handler is not None else None,
        )
        return recover(traces, max_attempts=self._rules.max_attempts)

    def begin(self, command_id: str) -> None:
        """The handler begins: from here on the command may have had effects."""
        self._begun.add(command_id)

    def forget(self, command_id: str) -> None:
        """It is settled, or had no effects after all."""
        self._begun.discard(command_id)

    def give_up(self, command_id: str, right: Right) -> None:
        """Nothing has run: let go of a new claim, as far as that can be done."""
        if not right.earlier:
            with suppress(OSError, Abandoned):
                self._steps.do(lambda: self._spool.claims.release(command_id), patient=False)

    def put_back(self, envelope: Envelope, right: Right, now: float) -> None:
        """Let a command wait again because the root stops.

        Where the handler had begun the claim stays, one attempt back: the stop costs it none,
        but that it had begun must not be forgotten.
        """
        command_id = envelope.command.id
        self._steps.do(lambda: self._spool.withdraw_response(command_id))
        if right.earlier or command_id in self._begun:
            claim = self._content(envelope, now, right.number - 1)
            self._steps.do(lambda: self._spool.claims.retake(command_id, claim))
        else:
            self._steps.do(lambda: self._spool.claims.release(command_id))

    def _is_own(self, claim: Claim) -> bool:
        return claim.owner == self._rules.owner

    def _content(self, envelope: Envelope, now: float, attempt: int) -> Claim:
        return Claim(
            owner=self._rules.owner,
            pid=self._rules.pid,
            host=self._rules.host,
            attempt=attempt,
            claimed_at=iso(now),
            type=envelope.command.type[:_TYPE_KEPT],
            file=envelope.file.name,
        )


def lost_failure(recovery: Recovery, claim: Claim | None) -> CommandFailure:
    """The failure of a command whose daemon died and that may not run again."""
    holder = f"pid {claim.pid} on {claim.host} since {claim.claimed_at}" if claim else "unknown"
    details = {
        "claimed_by": holder,
        "attempts": recovery.attempt or (claim.attempt if claim else 1),
    }
    if recovery.step is Step.SETTLE_CRASHED:
        return Crashed(
            f"given up after {recovery.attempt} attempts: the daemon died each time while it ran",
            details=details,
        )
    return Interrupted(
        f"the daemon that ran it died ({holder}); it is not run a second time", details=details
    )

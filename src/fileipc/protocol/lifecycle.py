"""The life cycle of a command, and what a restart does with each trace it may find.

    waiting -> claimed -> settled (completed | failed), or rejected

`recover` is total and pure: any combination of traces that a crash, a power cut or a meddling
hand can leave has one answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Step(Enum):
    """What to do with an id that was found in a root."""

    NOTHING = "nothing"
    RUN = "run"
    FINISH_SETTLING = "finish_settling"
    SETTLE_INTERRUPTED = "settle_interrupted"
    SETTLE_CRASHED = "settle_crashed"


@dataclass(frozen=True, slots=True)
class Traces:
    """What lies on disk of one id.

    `attempt` is that of the claim (0: put back by a stop); None where the claim cannot be read.
    `idempotent` is None where the handler is not known (the command is gone, or its type no
    longer exists).
    """

    command: bool
    claimed: bool
    final: bool
    attempt: int | None = None
    idempotent: bool | None = None


@dataclass(frozen=True, slots=True)
class Recovery:
    """The step, and the attempt it would be where the step is RUN."""

    step: Step
    attempt: int = 0


def recover(traces: Traces, *, max_attempts: int) -> Recovery:
    """Decide on an id whose claim, if any, belongs to a daemon that is dead.

    The promise: an idempotent handler runs at least once, any other at most once; exactly one
    final response either way. The final response in the archive is the commit point: once it
    exists the handler never runs again.
    """
    if traces.final:
        return Recovery(Step.FINISH_SETTLING)
    if not traces.claimed:
        return Recovery(Step.RUN, 1) if traces.command else Recovery(Step.NOTHING)
    if not traces.command or not traces.idempotent:
        return Recovery(Step.SETTLE_INTERRUPTED)
    spent = 1 if traces.attempt is None else max(traces.attempt, 0)
    if spent >= max_attempts:
        return Recovery(Step.SETTLE_CRASHED, spent)
    return Recovery(Step.RUN, spent + 1)

"""What every waiting executor does while an attempt runs: report it, end it in time."""

from __future__ import annotations

import time

from ..errors import Cancelled, CommandFailure, Interrupted, Outcome, Timeout
from .port import REPORT_AFTER, Job

_LONGEST = 3600.0  # seconds; `poll` and `Event.wait` refuse what is much longer


class Attempt:
    """One attempt under way: asks of the job what an executor's loop must know.

    All times in seconds on the monotonic clock.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self.started = time.monotonic()
        self._report_at: float | None = self.started + REPORT_AFTER

    def timeout(self) -> float:
        """Seconds after which `verdict` must be asked again."""
        now = time.monotonic()
        due = self._job.deadline
        if self._report_at is not None:
            due = min(due, self._report_at)
        return min(max(0.0, due - now), _LONGEST)

    def verdict(self) -> CommandFailure | None:
        """Why the attempt must end now; None while it may go on. Reports it once when due."""
        if self._job.stop.requested:
            return stopped(self._job)
        now = time.monotonic()
        if now >= self._job.deadline:
            return Timeout(
                f"ran longer than its limit of {self._limit()} and was killed",
                details={"ran": round(now - self.started, 3)},
            )
        if self._report_at is not None and now >= self._report_at:
            self._report_at = None
            self._job.report(None)
        return None

    def _limit(self) -> str:
        return f"{max(0.0, self._job.deadline - self.started):.3g} s"


def refuse_if_over(job: Job) -> None:
    """Raise, with outcome `not_started`, where the job was stopped or is past its deadline."""
    if job.stop.requested:
        raise stopped(job, Outcome.NOT_STARTED)
    if time.monotonic() >= job.deadline:
        raise Timeout("its time was over before it started", outcome=Outcome.NOT_STARTED)


def stopped(job: Job, outcome: Outcome | None = None) -> CommandFailure:
    """The failure that a requested stop means."""
    when = "before it started" if outcome is Outcome.NOT_STARTED else "while it ran"
    if job.stop.reason == "cancelled":
        return Cancelled(f"cancelled {when}", outcome=outcome)
    return Interrupted(f"the daemon stopped {when}", outcome=outcome)

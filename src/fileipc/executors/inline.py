"""Inline (and `thread`): the call runs in the thread that asks.

For what the daemon answers itself, and for an embedding program's own handlers that need its
memory. Neither the deadline nor a stop can end such a call: a thread cannot be killed. What may
hang belongs into a process.
"""

from __future__ import annotations

import msgspec

from .attempt import refuse_if_over
from .edge import guarded
from .port import InlineCall, Job


class InlineExecutor:
    """Runs InlineCalls where they are."""

    def run(self, call: InlineCall, job: Job) -> msgspec.Raw:
        """Call and encode; see `Executor.run`."""
        refuse_if_over(job)
        return guarded(call.run, job.result_limit)

    def close(self) -> None:
        """Nothing is left to end."""

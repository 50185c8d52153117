"""One executor for each kind of call."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ..executors.port import (
    Call,
    ChildCall,
    Executor,
    InlineCall,
    Job,
    ProcessCall,
    ShrinkingExecutor,
)


@dataclass(frozen=True, slots=True)
class Executors:
    """What runs the calls of one root."""

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

"""A custom handler in Python: `python: "module:function"` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..executors.port import Isolation, ProcessCall
from .port import Scope


@dataclass(frozen=True, slots=True)
class PythonHandler:
    """Calls `function(args)` in a killable process; what it returns is the result.

    The module is imported there, with the project's folder first on `sys.path`. `memory` caps
    the process's address space while it runs, in bytes.
    """

    name: str
    target: str
    idempotent: bool = False
    timeout: float = 300.0
    memory: int | None = None
    isolation: Isolation = Isolation.PROCESS

    def prepare(self, args: Mapping[str, Any], scope: Scope) -> ProcessCall:
        return ProcessCall(
            self.target,
            dict(args),
            path=(scope.project,),
            single_argument=True,
            memory=self.memory,
        )

"""Handlers that an embedding program brings along as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..executors.port import Call, InlineCall, Isolation, ProcessCall
from ..protocol.args import flatten
from .port import Scope

Function = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class EmbeddedHandler:
    """A function of one argument, the command's args.

    In a process of its own (`Isolation.PROCESS`) it can be killed at its deadline, and must be
    importable by its name. On a worker's thread (`Isolation.THREAD`) it can be anything callable,
    shares the program's memory, and cannot be killed.
    """

    name: str
    function: Function
    isolation: Isolation
    timeout: float
    idempotent: bool

    def prepare(self, args: Mapping[str, Any], scope: Scope) -> Call:
        arguments = flatten(args)
        if self.isolation is Isolation.THREAD:
            return InlineCall(lambda: self.function(arguments))
        target = f"{self.function.__module__}:{self.function.__qualname__}"
        return ProcessCall(target, arguments, path=(scope.project,), single_argument=True)

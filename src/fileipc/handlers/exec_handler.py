"""A custom handler in any language: `exec: [program, argument, ...]` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import HandlerError, Outcome, TooLarge
from ..executors.port import DEFAULT_RESULT_LIMIT, ChildCall, ChildEnd, Isolation
from ..protocol import codec
from ..protocol.results import checked
from .port import Scope
from .program import clean_environment, end_details, find_program, how_it_ended


@dataclass(frozen=True, slots=True)
class ExecHandler:
    """Starts the program in the project's folder and gives it one JSON object on stdin.

    The object is `{"type": NAME, "args": {...}, "project": PATH}`; the program prints its result
    as one JSON value on stdout and ends with exit code 0. Anything else is `handler_error`, with
    the exit code and the end of stderr in `details`; more than `limit` bytes are `too_large`.
    What it printed is checked and passed on as it is: nothing is built of it here. No shell is
    involved; the environment is the allow-list of the configuration.
    """

    name: str
    command: tuple[str, ...]
    idempotent: bool = False
    timeout: float = 300.0
    env: tuple[str, ...] = ()
    memory: int | None = None
    limit: int = DEFAULT_RESULT_LIMIT
    isolation: Isolation = Isolation.SUBPROCESS

    def prepare(self, args: Mapping[str, Any], scope: Scope) -> ChildCall:
        environment = clean_environment(self.env)
        program = find_program(self.command[0], scope.project, environment["PATH"])
        request = {"type": self.name, "args": dict(args), "project": scope.project}
        return ChildCall(
            argv=(program, *self.command[1:]),
            cwd=scope.project,
            env=environment,
            finish=self._finish,
            stdin=codec.encode(request) + b"\n",
            capture=self.limit,
            memory=self.memory,
        )

    def _finish(self, end: ChildEnd) -> Any:
        details = {**end_details(end), "stdout_bytes": end.stdout_bytes}
        if end.exit_code != 0:
            raise HandlerError(f"{self.name} {how_it_ended(end)}", details=details)
        if end.stdout_bytes > len(end.stdout):
            raise TooLarge(
                f"{self.name} printed {end.stdout_bytes} bytes; the limit is {self.limit}",
                details={**details, "bytes": end.stdout_bytes, "limit": self.limit},
                outcome=Outcome.FINISHED,
            )
        if not end.stdout.strip():
            raise HandlerError(
                f"{self.name} printed nothing; it must print its result as JSON", details=details
            )
        try:
            return checked(end.stdout)
        except ValueError as error:
            raise HandlerError(
                f"{self.name} must print its result as JSON; what it printed is wrong: {error}",
                details=details,
            ) from None

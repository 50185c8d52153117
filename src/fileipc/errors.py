"""Every error of fileipc, in one tree.

Two branches. A `CommandFailure` is told to the asker: it becomes the `error` object of a failed
response, with a stable `code` and an `outcome` that answers "is it safe to send this again?".
Everything else is told to whoever runs the daemon or the client.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple


class Outcome(StrEnum):
    """What may have happened to the work: the asker's real question."""

    NOT_STARTED = "not_started"  # nothing ran: safe to send again
    FINISHED = "finished"  # it ran to its end, and failed
    UNKNOWN = "unknown"  # it may have had effects


class FileipcError(Exception):
    """Base of every error raised by fileipc."""


class CommandFailure(FileipcError):
    """A command that ends `failed`; subclasses carry the code."""

    code: ClassVar[str] = ""
    outcome: ClassVar[Outcome] = Outcome.UNKNOWN
    meaning: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})
        self.actual_outcome = outcome or type(self).outcome


class InvalidCommand(CommandFailure):
    code = "invalid_command"
    outcome = Outcome.NOT_STARTED
    meaning = "The file is not a valid command: broken JSON, no UUID, a field of the wrong type."


class TooLarge(CommandFailure):
    code = "too_large"
    outcome = Outcome.NOT_STARTED
    meaning = "The command or its result is larger than the configured limit."


class UnknownType(CommandFailure):
    code = "unknown_type"
    outcome = Outcome.NOT_STARTED
    meaning = "No handler of that name exists in this root."


class InvalidArgs(CommandFailure):
    code = "invalid_args"
    outcome = Outcome.NOT_STARTED
    meaning = "The arguments do not fit the handler; the message names the field."


class Forbidden(CommandFailure):
    code = "forbidden"
    outcome = Outcome.NOT_STARTED
    meaning = "The configuration, the file's owner or the project's border does not allow it."


class NotFound(CommandFailure):
    code = "not_found"
    outcome = Outcome.NOT_STARTED
    meaning = "The file, database, script or command that the arguments name does not exist."


class Expired(CommandFailure):
    code = "expired"
    outcome = Outcome.NOT_STARTED
    meaning = "The ttl passed while the command was waiting; it never ran."


class Stale(CommandFailure):
    code = "stale"
    outcome = Outcome.NOT_STARTED
    meaning = "It waited longer than `stale_after`; it never ran."


class Busy(CommandFailure):
    code = "busy"
    outcome = Outcome.NOT_STARTED
    meaning = "The root holds `max_pending` commands already; send it again later."


class Duplicate(CommandFailure):
    code = "duplicate"
    outcome = Outcome.NOT_STARTED
    meaning = "The id was used before, with other contents; this file was not run."


class Timeout(CommandFailure):
    code = "timeout"
    outcome = Outcome.UNKNOWN
    meaning = "It was still running at its deadline (ttl or the handler's timeout) and was killed."


class Cancelled(CommandFailure):
    code = "cancelled"
    outcome = Outcome.UNKNOWN
    meaning = "A cancel command stopped it; `outcome` says whether it had started."


class Interrupted(CommandFailure):
    code = "interrupted"
    outcome = Outcome.UNKNOWN
    meaning = "The daemon stopped or died while it ran, and it may not be run twice."


class Crashed(CommandFailure):
    code = "crashed"
    outcome = Outcome.UNKNOWN
    meaning = "The handler's process died, or every attempt ended with the daemon's death."


class HandlerError(CommandFailure):
    code = "handler_error"
    outcome = Outcome.FINISHED
    meaning = "The handler raised an error or gave a result that is not JSON."


class ScriptFailed(CommandFailure):
    code = "script_failed"
    outcome = Outcome.FINISHED
    meaning = "The script or program ended with a non-zero exit code, a signal, or did not start."


class QueryFailed(CommandFailure):
    code = "query_failed"
    outcome = Outcome.FINISHED
    meaning = "The database refused the query; the message is the database's own."


class InternalError(CommandFailure):
    code = "internal_error"
    outcome = Outcome.UNKNOWN
    meaning = "A fault in fileipc itself; the daemon's log has the trace."


def _leaves(cls: type[CommandFailure]) -> list[type[CommandFailure]]:
    return [leaf for sub in cls.__subclasses__() for leaf in [sub, *_leaves(sub)]]


ERROR_TABLE: dict[str, type[CommandFailure]] = {cls.code: cls for cls in _leaves(CommandFailure)}
"""code -> class; the README's error table is checked against it."""


class Problem(NamedTuple):
    """One fault of a configuration, told so that it can be mended without looking it up.

    `line` counts from 1; None: the file as a whole, or the command line. `key` is the dotted
    path, such as `roots[1].workers`; empty: the whole file.
    """

    file: str
    line: int | None
    key: str
    message: str
    suggestion: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        hint = f"; did you mean {self.suggestion}?" if self.suggestion else ""
        return f"{place}: {f'{self.key}: ' if self.key else ''}{self.message}{hint}"


class ConfigError(FileipcError):
    """The configuration cannot be used; `problems` are all its faults, in the files' order."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class RootError(FileipcError):
    """A root cannot be served now; the supervisor tries again later."""


class RootMissing(RootError):
    """The root's folder (or the mount it lies on) is not there yet."""


class RootHeld(RootError):
    """Another daemon serves this root."""

    def __init__(self, root: str, holder: str) -> None:
        super().__init__(f"{root} is already served by {holder}")
        self.root = root
        self.holder = holder


class NoDaemon(FileipcError):
    """Nobody serves the root, so nobody would answer.

    `command_id` and `outcome` speak of the command that was waited for, where there is one;
    without one nothing was sent.
    """

    def __init__(
        self,
        message: str,
        *,
        command_id: str | None = None,
        outcome: Outcome = Outcome.NOT_STARTED,
    ) -> None:
        super().__init__(message)
        self.command_id = command_id
        self.outcome = outcome


class NoRoot(FileipcError):
    """No `.ipc` folder was found."""


class WaitTimeout(FileipcError):
    """The client stopped waiting; `outcome` says whether the command can still have effects."""

    def __init__(self, message: str, *, command_id: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.command_id = command_id
        self.outcome = outcome


class CommandGone(WaitTimeout):
    """Nothing is left of the command: it was answered and read, withdrawn, or never sent here."""


class CommandFailed(FileipcError):
    """The command was answered, and it failed.

    `response` is the `protocol.models.Response`; `code` and `outcome` are those of its error.
    """

    def __init__(self, message: str, *, response: Any, code: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.response = response
        self.code = code
        self.outcome = outcome

"""Reading what lies in `commands/` and judging what it is; changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..dialects import Dialect
from ..errors import CommandFailure, Duplicate, Forbidden, InvalidCommand
from ..protocol.codec import Incomplete
from ..protocol.models import Command
from ..protocol.names import command_stem, parse_id
from ..protocol.times import Timing, timing
from ..spool.store import CommandFile, Spool


@dataclass(frozen=True, slots=True)
class Envelope:
    """A valid command with the file it came in."""

    file: CommandFile
    command: Command
    warnings: tuple[str, ...]
    timing: Timing


@dataclass(frozen=True, slots=True)
class Refusal:
    """Not a command: to be rejected with this failure."""

    name: str
    failure: CommandFailure


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Cannot be judged yet; `failure` is the verdict if it stays as it is."""

    name: str
    failure: CommandFailure
    fingerprint: tuple[int, int, int, int]
    changed_at: float
    writer: bool | None


Examined = Envelope | Refusal | Unfinished | None


@dataclass(frozen=True, slots=True)
class IntakeRules:
    """`owner_allowed(uid)` says whose files are taken; durations in seconds."""

    max_bytes: int
    max_depth: int
    default_ttl: float
    stale_after: float
    owner_allowed: Callable[[int], bool]


class Intake:
    """Examines files of one root."""

    def __init__(self, spool: Spool, dialect: Dialect, rules: IntakeRules) -> None:
        self._spool = spool
        self._dialect = dialect
        self._rules = rules

    def examine(self, name: str, now: float) -> Examined:
        """What the file is; None where it is gone (a lost race, or withdrawn).

        Raises:
            OSError: it cannot be read at the moment (no descriptors, a failing disk).
        """
        try:
            file = self._spool.read(name, self._rules.max_bytes)
        except FileNotFoundError:
            return None
        except CommandFailure as failure:
            return Refusal(name, failure)
        if not self._rules.owner_allowed(file.owner):
            return Refusal(
                name,
                Forbidden(
                    f"files of user {file.owner} are not taken here; the configuration's "
                    "allow_users can name that user",
                    details={"uid": file.owner},
                ),
            )
        if file.links > 1:
            # A client that publishes by link unlinks its temporary name in the next instant.
            return self._unfinished(file, InvalidCommand("the file has a second name (hard link)"))
        try:
            decoded = self._dialect.decode(file.raw, self._rules.max_depth)
            times = self._timing(decoded.command, file, now)
        except Incomplete as error:
            return self._unfinished(file, InvalidCommand(f"not valid JSON: {error}"))
        except InvalidCommand as failure:
            if self._spool.writer_at_work(name) is False:
                return Refusal(name, failure)
            return self._unfinished(file, failure)
        stray = self._stray(name, decoded.command.id)
        if stray is not None:
            return Refusal(name, stray)
        return Envelope(file, decoded.command, decoded.warnings, times)

    def _timing(self, command: Command, file: CommandFile, now: float) -> Timing:
        return timing(
            command,
            arrival=file.arrival,
            now=now,
            default_ttl=self._rules.default_ttl,
            stale_after=self._rules.stale_after,
        )

    def _stray(self, name: str, command_id: str) -> CommandFailure | None:
        """The failure of a command whose file is not named after its id."""
        if parse_id(command_stem(name) or "") == command_id:
            return None
        details = {"id": command_id, "file": ascii(name)[1:-1]}
        if self._known(command_id):
            return Duplicate(f"id {command_id} is in use already; use a new id", details=details)
        return InvalidCommand(
            f"the file must be named after its id: {command_id}.json", details=details
        )

    def _known(self, command_id: str) -> bool:
        return (
            self._spool.claims.exists(command_id)
            or self._spool.exists(f"{command_id}.json")
            or self._spool.find_final(command_id) is not None
        )

    def _unfinished(self, file: CommandFile, failure: CommandFailure) -> Unfinished:
        return Unfinished(
            name=file.name,
            failure=failure,
            fingerprint=file.identity,
            changed_at=max(file.arrival, file.identity[3] / 1e9),
            writer=self._spool.writer_at_work(file.name),
        )

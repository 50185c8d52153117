"""Settling: the one place where a command gets its final response.

The order is the promise: response into the archive (the commit point), then published, then the
command archived, then the claim removed. Whatever is interrupted in between is finished by the
next start, and the handler never runs again.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from ..dialects import Dialect
from ..errors import CommandFailure, Duplicate
from ..protocol.facts import Fact, Level, Listener
from ..protocol.models import Progress, Response, Status, error_info
from ..protocol.names import command_stem, is_safe_stem, parse_id
from ..protocol.times import day, iso
from ..spool.atomic import PASSING
from ..spool.store import CommandFile, Final, Spool
from .health import Health
from .intake import Envelope, Refusal

_RETRY = (0.1, 0.5, 1.0, 2.0, 5.0)  # seconds between tries while the disk takes nothing
_PREVIEW = 4096  # characters of a large result that stand in the response itself


class Abandoned(Exception):
    """The root is going down and the disk still takes nothing; the next start will settle."""


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt ended; `result` is JSON, `attempt` 0 where nothing ran."""

    result: msgspec.Raw | None = None
    failure: CommandFailure | None = None
    attempt: int = 0
    queue_ms: int = 0
    duration_ms: int = 0


@dataclass(slots=True)
class Tally:
    """Counts since the daemon took the root."""

    completed: int = 0
    failed: int = 0
    rejected: int = 0


class Settler:
    """Writes final responses of one root; safe from any thread."""

    def __init__(
        self,
        spool: Spool,
        dialect: Dialect,
        *,
        root: str,
        tell: Listener,
        health: Health,
        inline_limit: int,
        abandon: threading.Event,
    ) -> None:
        self._spool = spool
        self._dialect = dialect
        self._root = root
        self._tell = tell
        self._health = health
        self._inline_limit = inline_limit
        self._abandon = abandon
        self.tally = Tally()

    def settle(self, envelope: Envelope, end: End) -> None:
        """Commit the end of a claimed command and take everything away that it leaves.

        Raises:
            Abandoned: the root stops while the disk takes nothing; the claim stays.
        """
        command, now = envelope.command, time.time()
        final = Final(command.id, day(now))
        result, side = self._shorten(command.id, end.result)
        response = Response(
            id=command.id,
            type=command.type,
            status=Status.FAILED if end.failure else Status.COMPLETED,
            result=result,
            error=error_info(end.failure) if end.failure else None,
            timestamp=iso(now),
            duration_ms=end.duration_ms,
            queue_ms=end.queue_ms,
            attempt=end.attempt,
            warnings=list(envelope.warnings),
            meta=command.meta,
        )
        data = self._dialect.encode(response)
        self.patiently(lambda: self._spool.commit(command.id, final.day, data, side))
        self.finish(final, envelope.file.name, envelope.file)
        self._count(response)
        self._tell_settled(response)

    def finish(self, final: Final, name: str | None, file: CommandFile | None) -> None:
        """Everything after the commit point; may be repeated. No `name`: no command to archive."""
        self.patiently(lambda: self._spool.publish_final(final))
        untouched = name is None or self.patiently(
            lambda: self._spool.archive_command(final, name, file)
        )
        self.patiently(lambda: self._spool.claims.release(final.command_id))
        if not untouched:
            self._say("command_replaced", Level.WARNING, command_id=final.command_id, file=name)

    def settle_without_command(self, command_id: str, type_: str, failure: CommandFailure) -> None:
        """Settle a claim whose command file is gone."""
        now = time.time()
        final = Final(command_id, day(now))
        response = Response(
            id=command_id,
            type=type_ or None,
            status=Status.FAILED,
            error=error_info(failure),
            timestamp=iso(now),
            attempt=1,
        )
        data = self._dialect.encode(response)
        self.patiently(lambda: self._spool.commit(command_id, final.day, data, None))
        self.finish(final, None, None)
        self._count(response)
        self._tell_settled(response)

    def running(
        self, envelope: Envelope, progress: Progress | None, *, attempt: int, ran: float, queue: int
    ) -> None:
        """Show that a command runs; a full disk only costs the showing."""
        response = Response(
            id=envelope.command.id,
            type=envelope.command.type,
            status=Status.RUNNING,
            timestamp=iso(time.time()),
            duration_ms=round(ran * 1000),
            queue_ms=queue,
            attempt=attempt,
            progress=progress,
            meta=envelope.command.meta,
        )
        try:
            self._spool.publish_running(envelope.command.id, self._dialect.encode(response))
        except OSError as error:
            self._health.trouble("write", f"cannot write responses: {error.strerror}")

    def repeat(self, envelope: Envelope, final: Final) -> None:
        """Answer an id that is settled: the same command again, or other contents."""
        name, raw = envelope.file.name, envelope.file.raw
        if not self._spool.is_same_command(final, raw):
            failure = Duplicate(
                f"id {final.command_id} was used before, with other contents; use a new id",
                details={"id": final.command_id},
            )
            self.reject(Refusal(name, failure))
            return
        self.patiently(lambda: self._spool.publish_final(final))
        self.patiently(lambda: self._spool.drop_command(name))
        self._say("command_repeated", Level.INFO, command_id=final.command_id)

    def reject(self, refusal: Refusal) -> None:
        """Set a file aside with its reason, and answer under its stem where that is safe.

        A response that is there is never overwritten, nor one that is still to come.
        """
        failure, now = refusal.failure, time.time()
        stem = command_stem(refusal.name) or ""
        response = Response(
            id=parse_id(stem) or stem,
            status=Status.FAILED,
            error=error_info(failure),
            timestamp=iso(now),
        )
        answered = is_safe_stem(stem) and not self._awaited(stem)
        if answered:
            target = parse_id(stem) or stem
            data = self._dialect.encode(response)
            self.patiently(lambda: self._spool.publish_running(target, data))
        reason = {
            "file": ascii(refusal.name)[1:-1],
            "rejected_at": iso(now),
            "answered": answered,
            "error": response.error,
        }
        try:
            kept = self.patiently(
                lambda: self._spool.reject(refusal.name, reason), only_passing=True
            )
        except FileNotFoundError:
            return  # withdrawn in the same moment
        self.tally.rejected += 1
        self._tell(
            Fact(
                "file_rejected",
                Level.WARNING,
                self._root,
                {"file": refusal.name, "code": failure.code, "reason": failure.message, "as": kept},
                response if answered else None,
            )
        )

    def patiently(self, step: Callable[[], Any], *, only_passing: bool = False) -> Any:
        """Do one step, again and again while the disk is full or failing.

        A vanished command file is passed on; a vanished folder breaks the root. With
        `only_passing` so is what more patience would not mend.
        """
        tries = 0
        while True:
            try:
                done = step()
            except OSError as error:
                if isinstance(error, FileNotFoundError) and self.check_folders():
                    raise
                if only_passing and error.errno not in PASSING:
                    raise
                self._health.trouble("write", f"cannot write to the root: {error.strerror}")
                if self._abandon.wait(_RETRY[min(tries, len(_RETRY) - 1)]):
                    raise Abandoned from error
                tries += 1
            else:
                self._health.clear("write")
                return done

    def check_folders(self) -> bool:
        """Whether all folders of the root are there; breaks the root where one is gone."""
        gone = [path for path in self._spool.layout.folders if not os.path.isdir(path)]
        if gone:
            self._health.break_down(f"{gone[0]} is gone")
        return not gone

    def _awaited(self, stem: str) -> bool:
        """Whether a response of that name exists, or one of a command is to be expected."""
        command_id = parse_id(stem)
        if self._spool.response_exists(command_id or stem):
            return True
        return command_id is not None and self._spool.claims.exists(command_id)

    def _shorten(
        self, command_id: str, result: msgspec.Raw | None
    ) -> tuple[msgspec.Raw | dict[str, Any] | None, bytes | None]:
        """A result too large to read comfortably: a preview, and the whole beside it."""
        if result is None:
            return None, None
        data = bytes(result)
        if len(data) <= self._inline_limit:
            return result, None
        preview = {
            "truncated": True,
            "bytes": len(data),
            "path": f"{self._dialect.responses}/{command_id}.result.json",
            "preview": data[:_PREVIEW].decode("utf-8", "ignore"),
        }
        return preview, data

    def _count(self, response: Response) -> None:
        if response.error is None:
            self.tally.completed += 1
        else:
            self.tally.failed += 1

    def _tell_settled(self, response: Response) -> None:
        fields: dict[str, Any] = {
            "command_id": response.id,
            "type": response.type,
            "status": str(response.status),
            "attempt": response.attempt,
            "duration_ms": response.duration_ms,
            "queue_ms": response.queue_ms,
        }
        if response.error is not None:
            fields["code"] = response.error.code
            fields["reason"] = response.error.message
        self._tell(Fact("command_settled", Level.INFO, self._root, fields, response))

    def _say(self, event: str, level: Level, **fields: Any) -> None:
        self._tell(Fact(event, level, self._root, fields))

"""Settling: the one place where a command gets its final response.

The order is the promise: response into the archive (the commit point), then published, then the
command archived, then the claim removed. Whatever is interrupted in between is finished by the
next start, and the handler never runs again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec

from ..dialects import Dialect
from ..errors import CommandFailure, Duplicate
from ..protocol.facts import Fact, Level, Listener
from ..protocol.models import Progress, Response, Status, error_info
from ..protocol.names import command_stem, is_safe_stem, parse_id
from ..protocol.times import day, iso
from ..spool.store import CommandFile, Final, Spool
from .health import Health
from .intake import Envelope, Refusal
from .steps import Steps

_PREVIEW = 4096  # bytes of a large result that stand in the response itself


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
    """Writes final responses of one root; safe from any thread.

    `patient` as in `Steps.do`: what a handler did must be told, however long the disk is full;
    what may be done again need not wait.
    """

    def __init__(
        self,
        spool: Spool,
        dialect: Dialect,
        steps: Steps,
        *,
        root: str,
        tell: Listener,
        health: Health,
        inline_limit: int,
    ) -> None:
        self._spool = spool
        self._dialect = dialect
        self._steps = steps
        self._root = root
        self._tell = tell
        self._health = health
        self._inline_limit = inline_limit
        self.tally = Tally()

    def settle(self, envelope: Envelope, end: End, *, patient: bool = True) -> None:
        """Commit the end of a claimed command and take everything away that it leaves.

        Raises:
            Abandoned: the root is given up; the claim stays for the next start.
            OSError: not committed (`patient` False); the claim stays.
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
        self._commit(response, final, side, envelope.file, patient=patient)

    def finish(
        self, final: Final, name: str | None, file: CommandFile | None, *, patient: bool = True
    ) -> None:
        """Everything after the commit point; may be repeated. No `name`: no command to archive."""
        do = self._steps.do
        do(lambda: self._spool.publish_final(final), patient=patient)
        untouched = name is None or do(
            lambda: self._spool.archive_command(final, name, file), patient=patient
        )
        do(lambda: self._spool.claims.release(final.command_id), patient=patient)
        if not untouched:
            self._say("command_replaced", Level.WARNING, command_id=final.command_id, file=name)

    def settle_without_command(self, command_id: str, type_: str, failure: CommandFailure) -> None:
        """Settle a claim whose command file is gone; done by a start, which must not wait."""
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
        self._commit(response, final, None, None, patient=False)

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
        data = self._dialect.encode(response)
        try:
            self._steps.do(lambda: self._spool.publish(envelope.command.id, data), patient=False)
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
        self._steps.do(lambda: self._spool.publish_final(final), patient=False)
        self._steps.do(lambda: self._spool.drop_command(name), patient=False)
        self._say("command_repeated", Level.INFO, command_id=final.command_id)

    def reject(self, refusal: Refusal) -> None:
        """Set a file aside with its reason, and answer under its stem where that is safe.

        A response that is there is never overwritten, nor one that is still to come.

        Raises:
            OSError: it cannot be done now; doing it again later changes nothing.
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
            self._steps.do(lambda: self._spool.publish(target, data), patient=False)
        reason = {
            "file": ascii(refusal.name)[1:-1],
            "rejected_at": iso(now),
            "answered": answered,
            "error": response.error,
        }
        try:
            kept = self._steps.do(lambda: self._spool.reject(refusal.name, reason), patient=False)
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

    def _commit(
        self,
        response: Response,
        final: Final,
        side: bytes | None,
        file: CommandFile | None,
        *,
        patient: bool,
    ) -> None:
        """The final response on disk, and everything that follows from it."""
        data = self._dialect.encode(response)
        self._steps.do(
            lambda: self._spool.commit(final.command_id, final.day, data, side), patient=patient
        )
        self._count(response)
        self.finish(final, file.name if file is not None else None, file, patient=patient)
        self._tell_settled(response)

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

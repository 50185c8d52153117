"""From the dictionaries of an exchange to the protocol's own structs and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..errors import CommandFailed, CommandFailure, Outcome
from ..protocol.codec import Incomplete, decode_command
from ..protocol.models import ErrorInfo, Response
from ..protocol.times import timing
from .core import DEFAULT_TTL, MARGIN

if TYPE_CHECKING:
    from .lookout import Answer

_NEEDED = ("id", "status", "result", "error")


def to_response(answer: Answer) -> Response:
    """A foreign server's odd extra fields are dropped rather than refused."""
    known = {"timestamp": "", **answer}
    try:
        return msgspec.convert(known, Response)
    except msgspec.ValidationError:
        bare = {key: answer[key] for key in _NEEDED}
        return msgspec.convert({"timestamp": "", **bare}, Response)


def failure(response: Response) -> CommandFailed:
    """The exception for a failed response."""
    error = response.error or ErrorInfo(
        code="handler_error", message="no reason was given", outcome=Outcome.UNKNOWN
    )
    return CommandFailed(
        f"{error.code}: {error.message}",
        response=response,
        code=error.code,
        outcome=error.outcome,
    )


def time_left(command: bytes | None, now: float) -> float:
    """Seconds within which the daemon must have answered a command, wherever it came from.

    `command` is what lies on disk of it, `now` is seconds since 1970.
    """
    if command is None:
        return DEFAULT_TTL + MARGIN
    try:
        times = timing(
            decode_command(command).command,
            arrival=now,
            now=now,
            default_ttl=DEFAULT_TTL,
            stale_after=DEFAULT_TTL,
        )
    except (CommandFailure, Incomplete):
        return DEFAULT_TTL + MARGIN
    return max(0.0, times.expires_at - now) + MARGIN

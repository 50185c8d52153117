"""What a worker answered, read as what it is: the word of a process that a handler had.

A handler can do to its process whatever it likes, so nothing goes out unchecked that comes from
there. (It is no prison: a worker has the daemon's user.)
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..errors import (
    ERROR_TABLE,
    Busy,
    Cancelled,
    CommandFailure,
    Crashed,
    Duplicate,
    Expired,
    HandlerError,
    InternalError,
    Interrupted,
    InvalidCommand,
    Outcome,
    Stale,
    Timeout,
    TooLarge,
    UnknownType,
)
from .edge import clean
from .worker_process import DETAILS_LIMIT

_ENGINE_ONLY = (
    Busy,
    Cancelled,
    Crashed,
    Duplicate,
    Expired,
    InternalError,
    Interrupted,
    InvalidCommand,
    Stale,
    Timeout,
    UnknownType,
)
"""What a handler cannot know, whatever it raises."""
_NEVER_TOLD = "the handler's process gave an answer that cannot be read"


def unreadable() -> Crashed:
    """The failure of a call whose worker does not keep to the form."""
    return Crashed(_NEVER_TOLD)


def read(answer: object, limit: int, *, trusted: bool) -> tuple[msgspec.Raw | CommandFailure, bool]:
    """The result (at most `limit` bytes) or the failure, and whether the worker is used up.

    `trusted`: a handler of fileipc's own, which knows what it says with `not_started`.

    Raises:
        Crashed: it is not an answer.
    """
    if type(answer) is not tuple:
        raise unreadable()
    match answer:
        case (bool(used_up), "ok", bytes(data)) if len(data) <= limit:
            _decoded(data)
            return msgspec.Raw(data), used_up
        case (bool(used_up), "failed", str(code), str(message), str(outcome), bytes(details)):
            if len(details) > DETAILS_LIMIT:
                raise unreadable()
            read_details = _decoded(details)
            if not isinstance(read_details, dict):
                raise unreadable()
            failure = _failure(str(code), str(message), read_details, _outcome(str(outcome)))
            if not trusted and failure.actual_outcome is Outcome.NOT_STARTED:
                failure.actual_outcome = Outcome.FINISHED  # it was started: it said this
            return failure, used_up
        case _:
            raise unreadable()


def _failure(code: str, message: str, details: dict[str, Any], outcome: Outcome) -> CommandFailure:
    kind: type[CommandFailure] = ERROR_TABLE.get(code, HandlerError)
    if kind in _ENGINE_ONLY:
        return HandlerError(clean(message), details=details)
    if kind is TooLarge:
        outcome = Outcome.FINISHED
    return kind(clean(message), details=details, outcome=outcome)


def _outcome(word: str) -> Outcome:
    try:
        return Outcome(word)
    except ValueError:
        return Outcome.UNKNOWN


def _decoded(data: bytes) -> Any:
    """Read it whole: what clients cannot read must not stand in a response."""
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        raise unreadable() from None

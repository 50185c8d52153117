"""The executor's edge: whatever a handler does, JSON or a `CommandFailure` comes out."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable
from typing import Any

import msgspec

from ..errors import CommandFailure, HandlerError, Outcome, TooLarge
from ..protocol.codec import encode_result

_MESSAGE = 4000  # characters of a message that are passed on
_TRACE_LINES = 12


def guarded(
    make: Callable[[], Any], limit: int, caught: type[BaseException] = Exception
) -> msgspec.Raw:
    """Call `make` and encode what it returns, in at most `limit` bytes.

    `caught` is BaseException where the code runs in a process of its own, which a SystemExit
    of the handler must not end.

    Raises:
        CommandFailure: the handler's own, TooLarge, or HandlerError for any other exception
            and for a result that has no JSON form.
    """
    try:
        value = make()
    except CommandFailure:
        raise
    except caught as error:
        raise HandlerError(describe(error), details={"traceback": trace(error)}) from None
    try:
        return encode_result(value, limit=limit)
    except TooLarge as error:
        raise TooLarge(error.message, details=error.details, outcome=Outcome.FINISHED) from None
    except caught as error:
        raise HandlerError(
            f"the result has no JSON form: {describe(error)}",
            details={"result_type": clean(type(value).__qualname__)},
        ) from None


def describe(error: BaseException) -> str:
    """`TypeName: message`, fit to stand in a response."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  an exception's own __str__ is the handler's code too
        message = "(its message cannot be shown)"
    name = type(error).__qualname__
    return clean(f"{name}: {message}" if message else name)


def trace(error: BaseException) -> str:
    """The last lines of the traceback, from the handler's own code on."""
    where = error.__traceback__
    while where is not None and where.tb_frame.f_globals.get("__package__") == __package__:
        where = where.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, where))
        lines = text.rstrip().splitlines()
    except Exception:  # noqa: BLE001  as above
        return ""
    return clean("\n".join(lines[-_TRACE_LINES:]))


def clean(text: str) -> str:
    """Text without lone surrogates (JSON cannot carry them) and of bounded length."""
    text = text[:_MESSAGE] + "..." if len(text) > _MESSAGE else text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def signal_name(number: int) -> str:
    """SIGKILL for 9; SIG35 for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"

"""Texts of the command line as values. No click in here."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from .common import BadUsage

if TYPE_CHECKING:
    from collections.abc import Iterable


def duration(text: str | None, flag: str, *, command: str = "send") -> float | None:
    """Seconds of `30s`, `5m`, `1h30m` or a plain number."""
    if text is None:
        return None
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    from ..config.units import UnitError, parse_duration  # not needed for plain numbers

    try:
        return parse_duration(text)
    except UnitError as error:
        hint = f"; did you mean {error.suggestion}?" if error.suggestion else ""
        raise BadUsage(f"{flag}: {error.message}{hint}", command=command) from None


def pairs(texts: Iterable[str], what: str) -> dict[str, Any]:
    """`KEY=VALUE`s: a value that is JSON is taken as such, any other as text."""
    found: dict[str, Any] = {}
    for text in texts:
        key, given, value = utf8(text, what).partition("=")
        if not given or not key:
            raise BadUsage(f"{what} {text!r} is not KEY=VALUE", command="send")
        if key in found:
            raise BadUsage(f"{what} {key} is given twice", command="send")
        found[key] = _value(value)
    return found


def load_args(text: str | None) -> dict[str, Any]:
    """A JSON object, from the text itself, from `@FILE`, or (`-`) from stdin."""
    if text is None:
        return {}
    source = "--args"
    data: str | bytes = utf8(text, source)
    if text == "-":
        source, data = "stdin", sys.stdin.buffer.read()
    elif text.startswith("@"):
        source = text[1:]
        try:
            with open(source, "rb") as file:
                data = file.read()
        except OSError as error:
            raise BadUsage(f"--args {text}: {error.strerror}", command="send") from None
    try:
        found = json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadUsage(f"{source} is not valid JSON: {error}", command="send") from None
    if not isinstance(found, dict):
        raise BadUsage(f"{source} must hold a JSON object, such as {{}}", command="send")
    return found


def utf8(text: str, what: str) -> str:
    """An argument as the UTF-8 it was typed in, where the locale made something else of it."""
    if text.isascii():
        return text
    try:
        return os.fsencode(text).decode()
    except UnicodeError:
        pass
    try:
        text.encode()
    except UnicodeError:
        raise BadUsage(f"{what} {text!r} is not UTF-8", command="send") from None
    return text


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")

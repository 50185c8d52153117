"""JSON on the wire: generous on the way in, strict on the way out.

In: UTF-8 with or without BOM, UTF-16 and UTF-32 with BOM, any line ends. Everything else that a
strict parser would refuse (duplicate keys, NaN, lone surrogates, endless nesting or digits) is
refused with its place. Out: UTF-8, RFC 8259, no NaN.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec

from ..errors import InvalidCommand
from .encodings import Incomplete as Incomplete
from .encodings import as_text
from .hints import cut, first, near
from .models import Claim, Command
from .names import parse_id
from .results import MAX_DIGITS
from .results import encode_result as encode_result

MAX_DEPTH = 64
MAX_TYPE = 200  # characters
_FIELDS = frozenset(Command.__struct_fields__)
_NEEDED = frozenset({"id", "type"})
_EXPECTED = {
    "id": "a text",
    "type": "a text that is not empty",
    "args": "an object",
    "timestamp": "a text, a number or null",
    "ttl": "a number above 0 or null",
    "priority": "a whole number from -1000000 to 1000000",
    "meta": "an object",
}
_PAD = "\x00 \t\r\n"
_CUT_NUMBER = re.compile(r"-|\.|[eE][+-]?")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A valid command with what was odd about it."""

    command: Command
    warnings: tuple[str, ...]


def decode_command(raw: bytes, max_depth: int = MAX_DEPTH) -> Decoded:
    """Read one command.

    Raises:
        Incomplete: the text is empty or ends before the value does.
        InvalidCommand: it is wrong in a way that no more bytes would mend; names the place.
    """
    value = parse(raw, max_depth=max_depth)
    if not isinstance(value, dict):
        raise InvalidCommand(f"a command is a JSON object, not {_kind(value)}")
    known = {
        key: item
        for key, item in value.items()
        if key in _NEEDED or (key in _FIELDS and item is not None)
    }
    try:
        command = msgspec.convert(known, Command)
    except msgspec.ValidationError as error:
        raise InvalidCommand(_explain(error, known), details={"field": _field(error)}) from None
    canonical = parse_id(command.id)
    if canonical is None:
        raise InvalidCommand(
            f"id {_short(command.id)} is not a UUID; use one such as "
            "3f2504e0-4f89-41d3-9a0c-0305e82c3301, with an optional prefix such as cmd-",
            details={"field": "id"},
        )
    for name, number in (("ttl", command.ttl), ("timestamp", command.timestamp)):
        if isinstance(number, float) and not math.isfinite(number):
            raise InvalidCommand(f"{name} must be a finite number", details={"field": name})
    if len(command.type) > MAX_TYPE:
        raise InvalidCommand(
            f"type has {len(command.type)} characters; the limit is {MAX_TYPE}",
            details={"field": "type"},
        )
    unknown = [key for key in value if key not in _FIELDS]
    warnings = first(unknown, _unknown, "unknown fields were ignored")
    if canonical != command.id:
        warnings.append(f"id was read in lower case: {canonical}")
        command = msgspec.structs.replace(command, id=canonical)
    return Decoded(command, tuple(warnings))


def parse(raw: bytes, *, max_depth: int = MAX_DEPTH) -> Any:
    """Read one JSON value; errors as for `decode_command`."""
    text = as_text(raw)
    if not text.strip(_PAD):
        raise Incomplete("the file is empty")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip(_PAD)) or _unterminated(error):
            raise Incomplete(f"the text ends too early: {_place(error)}") from None
        raise InvalidCommand(f"not valid JSON: {_place(error)}") from None
    except RecursionError:
        raise InvalidCommand(f"nested deeper than {max_depth} levels") from None
    check_value(value, max_depth)
    return value


def check_value(value: Any, max_depth: int = MAX_DEPTH) -> None:
    """Refuse what JSON allows but nobody can carry on: deep nesting and lone surrogates."""
    level: list[Any] = [value]
    for _ in range(max_depth + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.keys())
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, str) and _SURROGATE.search(item):
                raise InvalidCommand("a text holds a lone surrogate (\\ud800 to \\udfff)")
        if not below:
            return
        level = below
    raise InvalidCommand(f"nested deeper than {max_depth} levels")


def encode(value: Any) -> bytes:
    """Strict JSON of a struct or of plain values; numbers that JSON lacks become text."""
    return msgspec.json.encode(value)


def decode_claim(raw: bytes) -> Claim | None:
    """Read a claim; None where a crash left it empty or torn."""
    try:
        return msgspec.json.decode(raw, type=Claim)
    except (ValueError, RecursionError):
        return None


def _unterminated(error: json.JSONDecodeError) -> bool:
    # A string that never closes is reported at its start; a cut \uXX, word or number at its place.
    if error.msg.startswith("Unterminated string"):
        return True
    rest = error.doc[error.pos :].rstrip(_PAD)
    if error.msg.startswith("Invalid \\uXXXX escape"):
        return len(rest) <= len(r"\uXXXX")
    if _CUT_NUMBER.fullmatch(rest):
        return True
    return bool(rest) and any(word.startswith(rest) for word in ("true", "false", "null"))


def _place(error: json.JSONDecodeError) -> str:
    return f"{error.msg} at line {error.lineno} column {error.colno}"


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidCommand(f"the key {_short(key)} stands twice in one object")
        found[key] = value
    return found


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise InvalidCommand(f"a number of {len(digits)} digits; the limit is {MAX_DIGITS}")
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InvalidCommand(f"the number {_short(digits)} is out of range")
    return number


def _constant(word: str) -> NoReturn:
    raise InvalidCommand(f"{word} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_real, parse_constant=_constant
)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return names.get(type(value), type(value).__name__)


def _field(error: msgspec.ValidationError) -> str:
    match = re.search(r"`\$\.?(\w*)", str(error)) or re.search(r"field `(\w+)`", str(error))
    return match.group(1) if match else ""


def _explain(error: msgspec.ValidationError, value: dict[str, Any]) -> str:
    field = _field(error)
    if field not in value:
        return str(error).replace("Object missing required field", "missing the required field")
    found = value[field]
    names: dict[type, str] = {str: "the text ", list: "the list ", dict: "the object "}
    return f"{field} must be {_EXPECTED[field]}, not {names.get(type(found), '')}{_short(found)}"


def _unknown(key: str) -> str:
    close = near(key, Command.__struct_fields__)
    hint = f"; did you mean `{close}`?" if close else ""
    return f"unknown field {_short(key)} was ignored{hint}"


def _short(value: Any) -> str:
    return cut(json.dumps(value, ensure_ascii=True, default=repr))

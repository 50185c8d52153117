"""JSON on the wire: generous on the way in, strict on the way out.

In: UTF-8 with or without BOM, UTF-16 and UTF-32 with BOM, any line ends. Everything else that a
strict parser would refuse (duplicate keys, NaN, lone surrogates, endless nesting or digits) is
refused with its place. Out: UTF-8, RFC 8259, no NaN.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

import msgspec

from ..errors import FileipcError, InvalidCommand, Outcome, TooLarge
from .models import Claim, Command, Response
from .names import parse_id

MAX_DEPTH = 64
_MAX_DIGITS = 400
_FIELDS = frozenset(Command.__struct_fields__)
_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PAD = "\x00 \t\r\n"
_CUT_NUMBER = re.compile(r"-|\.|[eE][+-]?")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Incomplete(FileipcError):
    """The text ends too early: a writer may still be at work."""


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
    known = {key: item for key, item in value.items() if key in _FIELDS}
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
    warnings = [_unknown(key) for key in value if key not in _FIELDS]
    if canonical != command.id:
        warnings.append(f"id was read in lower case: {canonical}")
        command = msgspec.structs.replace(command, id=canonical)
    return Decoded(command, tuple(warnings))


def parse(raw: bytes, *, max_depth: int = MAX_DEPTH) -> Any:
    """Read one JSON value; errors as for `decode_command`."""
    text = _text(raw)
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


def encode_result(value: Any, *, limit: int) -> msgspec.Raw:
    """A handler's result as JSON, ready to stand in a response.

    Dates, UUIDs, decimals and bytes (base64) become text, sets become lists; NaN and the
    infinities become the texts "NaN", "Infinity" and "-Infinity".

    Raises:
        TypeError, ValueError: the value has no JSON form.
        TooLarge: more than `limit` bytes.
    """
    plain = _finite(msgspec.to_builtins(value, str_keys=True), MAX_DEPTH * 4)
    data = msgspec.json.encode(plain)
    if len(data) > limit:
        raise TooLarge(
            f"the result has {len(data)} bytes, more than the limit of {limit}",
            outcome=Outcome.FINISHED,
            details={"bytes": len(data), "limit": limit},
        )
    return msgspec.Raw(data)


def decode_response(raw: bytes) -> Response:
    """Read a response; raises ValueError where it is not one."""
    return msgspec.json.decode(raw, type=Response)


def decode_claim(raw: bytes) -> Claim | None:
    """Read a claim; None where a crash left it empty or torn."""
    try:
        return msgspec.json.decode(raw, type=Claim)
    except (ValueError, RecursionError):
        return None


def _finite(value: Any, depth: int) -> Any:
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if depth <= 0:
        raise ValueError("the result is nested too deeply")
    if isinstance(value, dict):
        return {key: _finite(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item, depth - 1) for item in value]
    return value


def _text(raw: bytes) -> str:
    for bom, encoding in _BOMS:
        if len(raw) < len(bom) and raw and bom.startswith(raw):
            raise Incomplete("the text ends within its byte order mark")
        if raw.startswith(bom):
            return _decoded(raw[len(bom) :], encoding)
    if raw[:4].count(0) == 2 and len(raw) % 2 == 0 and raw[:1] != raw[1:2]:
        return _decoded(raw, "utf-16-le" if raw[1] == 0 else "utf-16-be")
    return _decoded(raw, "utf-8")


def _decoded(raw: bytes, encoding: str) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        if error.end >= len(raw) and "unexpected end" in error.reason:
            raise Incomplete(f"the text ends within a character ({encoding})") from None
        if "truncated" in error.reason:
            raise Incomplete(f"the text ends within a character ({encoding})") from None
        raise InvalidCommand(
            f"not {encoding.upper()} text: byte 0x{raw[error.start]:02x} at offset {error.start}; "
            "write commands as UTF-8",
            details={"offset": error.start, "encoding": encoding},
        ) from None


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
    if len(digits) > _MAX_DIGITS:
        raise InvalidCommand(f"a number of {len(digits)} digits; the limit is {_MAX_DIGITS}")
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
    text = str(error).replace("Object missing required field", "missing the required field")
    if field in value:
        return f"{field}: {text}; got {_short(value[field])}"
    return text


def _unknown(key: str) -> str:
    near = get_close_matches(key, _FIELDS, n=1)
    hint = f"; did you mean `{near[0]}`?" if near else ""
    return f"unknown field {_short(key)} was ignored{hint}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=repr)
    return text if len(text) <= 80 else f"{text[:77]}..."

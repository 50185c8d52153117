"""Results as strict JSON: made from Python values, or taken over as a program printed them."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator
from itertools import accumulate, chain
from typing import Any, NamedTuple

import msgspec

from ..errors import InvalidCommand, Outcome, TooLarge
from .encodings import Incomplete, as_text, is_plain

MAX_RESULT_DEPTH = 256
MAX_DIGITS = 400  # of a whole number
_MAX_NUMBER = 4096  # characters of any number
_CHUNK = 16 * 1024  # bytes looked at in one go: other threads come in between
_RAW = msgspec.json.Decoder(msgspec.Raw)
_NUMBER_BYTES = b"-+.0123456789eE"
_NUMBER = re.compile(rb"-?[0-9][-+.0-9eE]*")
_LARGE_EXPONENT = re.compile(rb"[0-9][eE]\+?[0-9]{3}")
_LONG_NUMBER = b"0" * 300
_ZEROES = bytes.maketrans(b"123456789", b"000000000")
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[{]}")


class Verbatim(NamedTuple):
    """JSON text that `checked` found fit to stand in a response as it is."""

    data: bytes


def checked(raw: bytes) -> Verbatim:
    """Take over a JSON text of anybody's without building its values.

    16 MB of `{}` take 80 times as much as objects. Everything a strict parser would refuse is
    refused all the same, but for keys that stand twice in one object: whether they do could only
    be known by keeping them, so they are passed on for the reader to judge.

    Raises:
        ValueError: says what is wrong.
    """
    data = raw
    if is_plain(raw):
        _check_utf8(raw)
    else:
        try:
            data = as_text(raw).encode()
        except (Incomplete, InvalidCommand) as error:
            raise ValueError(str(error)) from None
    try:
        data = bytes(_RAW.decode(data))
    except msgspec.DecodeError as error:
        raise ValueError(f"not valid JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None
    _check_bounds(data)
    return Verbatim(data)


def encode_result(value: Any, *, limit: int) -> msgspec.Raw:
    """A handler's result as JSON, ready to stand in a response.

    Dates, UUIDs, decimals and bytes (base64) become text, sets become lists; NaN and the
    infinities become the texts "NaN", "Infinity" and "-Infinity". What is JSON already
    (`Verbatim`, or `msgspec.Raw` once it is checked) stays as it is.

    Raises:
        TypeError, ValueError: the value has no JSON form.
        TooLarge: more than `limit` bytes.
    """
    if isinstance(value, msgspec.Raw):
        value = checked(bytes(value))
    data = value.data if isinstance(value, Verbatim) else _encoded(value)
    if len(data) > limit:
        raise TooLarge(
            f"the result has {len(data)} bytes, more than the limit of {limit}",
            outcome=Outcome.FINISHED,
            details={"bytes": len(data), "limit": limit},
        )
    return msgspec.Raw(data)


def _encoded(value: Any) -> bytes:
    # From here on only exact dicts, lists, tuples, texts, numbers, true, false and None.
    plain = msgspec.to_builtins(value, str_keys=True)
    if not _all_finite(plain):
        plain = _finite(plain)
    return msgspec.json.encode(plain)


def _all_finite(value: Any) -> bool:
    """Whether every number of plain values is finite; raises ValueError where they nest deeply.

    Level by level, so that C does the walking: a search may give 100,000 matches, and the
    daemon itself encodes them.
    """
    level = [value]
    for _ in range(MAX_RESULT_DEPTH + 1):
        kinds = set(map(type, level))
        if float in kinds and not all(map(math.isfinite, _of(float, level))):
            return False
        below: list[Any] = []
        if dict in kinds:
            below.extend(chain.from_iterable(map(dict.values, _of(dict, level))))
        if list in kinds:
            below.extend(chain.from_iterable(_of(list, level)))
        if tuple in kinds:
            below.extend(chain.from_iterable(_of(tuple, level)))
        if not below:
            return True
        level = below
    raise _too_deep()


def _of(kind: type, values: list[Any]) -> list[Any]:
    return [value for value in values if type(value) is kind]


def _finite(value: Any, depth: int = MAX_RESULT_DEPTH) -> Any:
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if not isinstance(value, dict | list | tuple):
        return value
    if depth <= 0 and value:
        raise _too_deep()
    if isinstance(value, dict):
        return {key: _finite(item, depth - 1) for key, item in value.items()}
    return [_finite(item, depth - 1) for item in value]


def _check_utf8(raw: bytes) -> None:
    if raw.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(raw), _CHUNK):
            decoder.decode(raw[at : at + _CHUNK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text: {error.reason}") from None


def _check_bounds(data: bytes) -> None:
    """Nesting and numbers of a text that is valid JSON."""
    depth, cut_number = 0, b""
    for outside, in_string in _outside_strings(data):
        steps = memoryview(outside.translate(_STEPS, _NO_BRACKETS)).cast("b")
        levels = list(accumulate(steps, initial=depth))
        if max(levels) > MAX_RESULT_DEPTH:
            raise _too_deep()
        depth = levels[-1]
        text = cut_number + outside
        ended = len(text) if in_string else len(text.rstrip(_NUMBER_BYTES))
        cut_number = text[ended:]
        if len(cut_number) > _MAX_NUMBER:
            raise ValueError(f"a number of more than {_MAX_NUMBER} characters")
        _check_numbers(text[:ended])
    _check_numbers(cut_number)


def _outside_strings(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """Valid JSON piece by piece, without its strings; and whether a piece ends within one."""
    at, in_string = 0, False
    while at < len(data):
        piece = data[at : at + _CHUNK]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = data[at : at + _CHUNK + 1]  # an escape is not cut in two
        at += len(piece)
        if b"\\" in piece:
            piece = piece.replace(rb"\\", b"").replace(rb"\"", b"")
        parts = piece.split(b'"')
        outside = b"".join(parts[1::2] if in_string else parts[0::2])
        if len(parts) % 2 == 0:
            in_string = not in_string
        yield outside, in_string


def _check_numbers(text: bytes) -> None:
    # Readers stumble over these: whole numbers of thousands of digits, and what no float holds.
    if not _LARGE_EXPONENT.search(text) and _LONG_NUMBER not in text.translate(_ZEROES):
        return
    for number in _NUMBER.findall(text):
        digits = number.lstrip(b"-")
        if digits.isdigit():
            if len(digits) > MAX_DIGITS:
                raise ValueError(f"a number of more than {MAX_DIGITS} digits")
        elif not math.isfinite(float(number)):
            raise ValueError(f"the number {number[:40].decode()} is out of range")


def _too_deep() -> ValueError:
    return ValueError(f"nested deeper than {MAX_RESULT_DEPTH} levels")

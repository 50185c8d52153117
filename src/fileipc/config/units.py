"""Durations and sizes as people write them: `1h30m`, `250ms`, `20MB`, `512KiB`.

Durations are seconds, sizes are bytes; a plain number is either. What `format_*` writes, `parse_*`
reads back as exactly the same number.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_MILLISECONDS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_BYTES = {
    "B": 1,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
    "KB": 1000,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
}
_WRITTEN_SIZES = ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "KB")
_LONGEST = 40  # characters
_MOST = 10**18

_PARTS = "".join(f"(?: ?{_NUMBER} ?{unit})?" for unit in _MILLISECONDS)
DURATION_PATTERN = rf"^(?=[0-9])(?:{_NUMBER}|{_PARTS})$"
SIZE_PATTERN = rf"^{_NUMBER}(?: ?(?:{'|'.join(_BYTES)}))?$"

_DURATION = re.compile(DURATION_PATTERN)
_SIZE = re.compile(SIZE_PATTERN)
_DURATION_PART = re.compile(rf"({_NUMBER}) ?({'|'.join(sorted(_MILLISECONDS, key=len)[::-1])})")
_ONE_PART = re.compile(rf"({_NUMBER}) ?([A-Za-z]+)")
_WORDS = {
    **dict.fromkeys(("msec", "msecs", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("byte", "bytes"), "B"),
    **{f"{letter}i": f"{letter.upper()}iB" for letter in "kmgt"},
    **{letter: f"{letter.upper()}iB" for letter in "kgt"},
}


class UnitError(ValueError):
    """Not a duration or size; `suggestion` is a text that would be one."""

    def __init__(self, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion


def parse_duration(value: object) -> float:
    """Seconds of `30s`, `5m`, `1h30m`, `250ms`, `7d`, or of a plain number.

    Raises:
        UnitError: anything else; also true and false, negative numbers, NaN and infinity.
    """
    if not isinstance(value, str):
        return float(_plain(value))
    text = _text(value, _DURATION, _MILLISECONDS)
    parts = _DURATION_PART.findall(text)
    if not parts:
        return float(text)
    return float(sum(Decimal(number) * _MILLISECONDS[unit] for number, unit in parts) / 1000)


def parse_size(value: object) -> int:
    """Bytes of `512KiB` (1024), `20MB` (1000), or of a plain whole number.

    Raises:
        UnitError: anything else; also what is not a whole number of bytes.
    """
    if not isinstance(value, str):
        amount = Decimal(_plain(value))
    else:
        text = _text(value, _SIZE, _BYTES)
        number = text.rstrip("BKMGTik ")
        amount = Decimal(number) * _BYTES.get(text[len(number) :].strip(), 1)
    if amount != int(amount):
        raise UnitError(f"{value!r} is not a whole number of bytes")
    return int(amount)


def format_duration(seconds: float) -> str | float:
    """`1h30m` of 5400; a plain number where units cannot say it exactly."""
    rest = round(seconds * 1000)
    if rest <= 0 or rest / 1000 != seconds:
        return int(seconds) if seconds == int(seconds) else seconds
    text = ""
    for unit, worth in _MILLISECONDS.items():
        count, rest = divmod(rest, worth)
        text += f"{count}{unit}" if count else ""
    return text


def format_size(size: int) -> str | int:
    """`20MiB` of 20971520; a plain number where no unit fits."""
    for unit in _WRITTEN_SIZES:
        count, rest = divmod(size, _BYTES[unit])
        if count and not rest:
            return f"{count}{unit}"
    return size


def _plain(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnitError(f"{value!r} is not a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise UnitError("it must be a finite number")
    if value < 0:
        raise UnitError(f"{value!r} is negative")
    if value > _MOST:
        raise UnitError("the number is too large")
    return value


def _text(text: str, pattern: re.Pattern[str], units: dict[str, int]) -> str:
    if len(text) > _LONGEST:
        raise UnitError(f"a text of {len(text)} characters is too long")
    if pattern.fullmatch(text):
        return text
    if re.fullmatch(r"-\s*[0-9.].*", text):
        raise UnitError(f"{text!r} is negative")
    one = _ONE_PART.fullmatch(text)
    if one is None:
        raise UnitError(f"{text!r} is not {_shape(units)}")
    number, unit = one.groups()
    near = _near(unit, units)
    known = ", ".join(units)
    raise UnitError(
        f"unknown unit {unit!r}; units are {known}", f"{number}{near}" if near else None
    )


def _shape(units: dict[str, int]) -> str:
    if units is _MILLISECONDS:
        return "a number with a unit, or several from large to small such as 1h30m"
    return "a number with a unit"


def _near(unit: str, units: dict[str, int]) -> str | None:
    low = unit.lower()
    named = _WORDS.get(low)
    if named in units:
        return named
    for known in units:
        if known.lower() == low:
            return known
    return "MiB" if low == "m" and "MiB" in units else None

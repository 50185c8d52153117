"""Kinds of values: each reads a place, says what it expects, shows a value, and has a schema.

What is refused, what the schema refuses and what the README says come from the same fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from ..protocol import hints
from . import units
from .nodes import Place, Unfit

Schema = dict[str, Any]
T = TypeVar("T")


class Kind(Protocol):
    """One kind of value."""

    @property
    def expected(self) -> str:
        """In words, to follow "expected "."""
        ...

    def read(self, place: Place) -> Any:
        """The value; raises Unfit, or notes what is wrong further down at its own place."""
        ...

    def show(self, value: Any, *, mask: bool) -> Any:
        """Plain data that reads back as the same value (but for passwords, with `mask`)."""
        ...

    def schema(self) -> Schema: ...


def near(word: str, known: Sequence[str]) -> str | None:
    """The nearest of the known words, where one is near."""
    close = hints.near(word, known)
    if close is not None:
        return close
    folded = {name.casefold(): name for name in known}
    return folded.get(word.casefold().replace("-", "_"))


@dataclass(frozen=True, slots=True)
class Plain:
    """Shows a value as it is."""

    def show(self, value: Any, *, mask: bool) -> Any:  # noqa: ARG002 - nothing secret here
        return value


@dataclass(frozen=True, slots=True)
class Flag(Plain):
    expected: str = "true or false"

    def read(self, place: Place) -> bool:
        value = place.value()
        if not isinstance(value, bool):
            raise Unfit(f"expected {self.expected}, got {place.got()}")
        return value

    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Integer(Plain):
    low: int
    high: int

    @property
    def expected(self) -> str:
        if self.low == self.high:
            return str(self.low)
        return f"a whole number from {self.low} to {self.high}"

    def read(self, place: Place) -> int:
        value = place.value()
        if isinstance(value, bool) or not isinstance(value, int):
            digits = isinstance(value, str) and re.fullmatch("[0-9]{1,20}", value)
            raise Unfit(
                f"expected {self.expected}, got {place.got()}", str(value) if digits else None
            )
        if not self.low <= value <= self.high:
            raise Unfit(f"expected {self.expected}, got {value}")
        return value

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds."""

    low: float
    high: float

    @property
    def expected(self) -> str:
        low, high = units.format_duration(self.low), units.format_duration(self.high)
        return f"a duration such as 30s, 5m or 1h30m, from {low} to {high}"

    def read(self, place: Place) -> float:
        seconds = _measured(place, units.parse_duration, self.expected)
        if not self.low <= seconds <= self.high:
            raise Unfit(f"expected {self.expected}, got {place.node.value}")
        return seconds

    def show(self, value: Any, *, mask: bool) -> Any:  # noqa: ARG002
        return units.format_duration(value)

    def schema(self) -> Schema:
        return {
            "type": ["string", "number"],
            "pattern": units.DURATION_PATTERN,
            "minimum": self.low,
            "maximum": self.high,
        }


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes."""

    low: int
    high: int

    @property
    def expected(self) -> str:
        low, high = units.format_size(self.low), units.format_size(self.high)
        return f"a size such as 512KiB or 20MB, from {low} to {high}"

    def read(self, place: Place) -> int:
        size = _measured(place, units.parse_size, self.expected)
        if not self.low <= size <= self.high:
            raise Unfit(f"expected {self.expected}, got {place.node.value}")
        return size

    def show(self, value: Any, *, mask: bool) -> Any:  # noqa: ARG002
        return units.format_size(value)

    def schema(self) -> Schema:
        return {
            "type": ["string", "integer"],
            "pattern": units.SIZE_PATTERN,
            "minimum": self.low,
            "maximum": self.high,
        }


@dataclass(frozen=True, slots=True)
class Version(Plain):
    known: int

    @property
    def expected(self) -> str:
        return str(self.known)

    def read(self, place: Place) -> int:
        value = place.value()
        if isinstance(value, bool) or value != self.known or not isinstance(value, int):
            raise Unfit(f"unknown version: expected {self.known}, got {place.got()}")
        return value

    def schema(self) -> Schema:
        return {"const": self.known}


@dataclass(frozen=True, slots=True)
class Choice(Plain):
    """One of a few words; with an enum (whose values they are), its member."""

    words: tuple[str, ...]
    enum: type[StrEnum] | None = None

    @property
    def expected(self) -> str:
        return " or ".join(filter(None, (", ".join(self.words[:-1]), self.words[-1])))

    def read(self, place: Place) -> str:
        value = place.value()
        if not isinstance(value, str):
            raise Unfit(f"expected {self.expected}, got {place.got()}")
        if value not in self.words:
            raise Unfit(f"expected {self.expected}, got {place.got()}", near(value, self.words))
        return self.enum(value) if self.enum else value

    def show(self, value: Any, *, mask: bool) -> str:  # noqa: ARG002
        return str(value)

    def schema(self) -> Schema:
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Kind
    minimum: int = 0

    @property
    def expected(self) -> str:
        return f"a list, each item {self.item.expected}"

    def read(self, place: Place) -> tuple[Any, ...]:
        values = []
        places = place.items()
        if len(places) < self.minimum:
            raise Unfit(f"expected at least {self.minimum} item")
        for item in places:
            try:
                values.append(self.item.read(item))
            except Unfit as error:
                item.refuse(error.message, error.suggestion)
        return tuple(values)

    def show(self, value: Any, *, mask: bool) -> list[Any]:
        return [self.item.show(item, mask=mask) for item in value]

    def schema(self) -> Schema:
        least = {"minItems": self.minimum} if self.minimum else {}
        return {"type": "array", "items": self.item.schema(), **least}


@dataclass(frozen=True, slots=True)
class OrNull:
    """`null` takes back what `defaults` set."""

    kind: Kind

    @property
    def expected(self) -> str:
        return f"{self.kind.expected}; or null"

    def read(self, place: Place) -> Any:
        return None if place.value() is None else self.kind.read(place)

    def show(self, value: Any, *, mask: bool) -> Any:
        return self.kind.show(value, mask=mask)

    def schema(self) -> Schema:
        return {"anyOf": [self.kind.schema(), {"type": "null"}]}


def _measured(place: Place, parse: Callable[[object], T], expected: str) -> T:
    value = place.value()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Unfit(f"expected {expected}, got {place.got()}")
    try:
        return parse(value)
    except units.UnitError as error:
        raise Unfit(f"expected {expected}; {error.message}", error.suggestion) from None

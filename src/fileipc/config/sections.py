"""Mappings with known keys: a table of keys makes the checks, the schema and the reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from .kinds import Kind, Schema, near
from .nodes import Place, Unfit
from .texts import Text

_MOST_UNKNOWN = 100  # keys of one mapping that are each looked at for what was meant


@dataclass(frozen=True, slots=True)
class Key:
    """One key; `about` is its line in the reference.

    `default` says in words what holds where the settings' own default is not the whole truth.
    """

    name: str
    kind: Kind
    about: str
    default: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A value and where it stood."""

    value: Any
    place: Place


@dataclass(frozen=True, slots=True)
class Section:
    """The keys that make one settings struct.

    `one_of` names keys of which exactly one must be there; `refused` tells why a key that exists
    elsewhere may not stand here; `belongs_to` maps a key to the one it makes sense beside, and to
    what is said where that is not there.
    """

    struct: type[msgspec.Struct]
    keys: tuple[Key, ...]
    one_of: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    belongs_to: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    expected: str = "a mapping"

    def without(self, names: Iterable[str], reason: str) -> Section:
        """The same section where these keys are refused with a reason."""
        gone = dict.fromkeys(names, reason)
        keys = tuple(key for key in self.keys if key.name not in gone)
        return replace(self, keys=keys, refused={**self.refused, **gone})

    def collect(self, place: Place) -> dict[str, Found]:
        """The keys that are there and right; what is wrong is noted at its place."""
        entries = place.entries()
        known = {key.name: key for key in self.keys}
        found: dict[str, Found] = {}
        unknown = 0
        for name, value in entries.items():
            key = known.get(name)
            if key is None:
                unknown += name not in self.refused
                if unknown <= _MOST_UNKNOWN:
                    self._unknown(name, value, [*known])
                continue
            try:
                found[name] = Found(key.kind.read(value), value)
            except Unfit as error:
                value.refuse(error.message, error.suggestion)
        for key in self.keys:
            if key.required and key.name not in entries:
                place.refuse(f"missing; expected {key.kind.expected}", below=key.name)
        if unknown > _MOST_UNKNOWN:
            place.refuse(f"and {unknown - _MOST_UNKNOWN} more unknown keys")
        self._exactly_one(place, entries)
        for name, (other, reason) in self.belongs_to.items():
            if name in entries and other not in entries:
                entries[name].refuse(reason)
        return found

    def read(self, place: Place) -> Any:
        values = {name: item.value for name, item in self.collect(place).items()}
        return self.struct(**values)

    def show(self, value: Any, *, mask: bool) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for key in self.keys:
            item = getattr(value, key.name, None)
            beside = self.belongs_to.get(key.name)
            if item is not None and (beside is None or getattr(value, beside[0]) is not None):
                shown[key.name] = key.kind.show(item, mask=mask)
        return shown

    def schema(self) -> Schema:
        properties: Schema = {}
        defaults = self.defaults()
        for key in self.keys:
            properties[key.name] = {**key.kind.schema(), "description": key.about}
            if defaults[key.name] not in (None, [], {}):
                properties[key.name]["default"] = defaults[key.name]
        made: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [key.name for key in self.keys if key.required]
        if required:
            made["required"] = required
        if self.belongs_to:
            made["dependentRequired"] = {
                name: [other] for name, (other, _) in self.belongs_to.items()
            }
        if self.one_of:
            made["oneOf"] = [{"required": [name]} for name in self.one_of]
        return made

    def defaults(self) -> dict[str, Any]:
        """Each key's default as it would be written; None where there is none to write."""
        shown: dict[str, Any] = {}
        fields = {item.name: item for item in msgspec.structs.fields(self.struct)}
        for key in self.keys:
            item = fields.get(key.name)
            value: Any = None
            if item is not None and item.default is not msgspec.NODEFAULT:
                value = item.default
            elif item is not None and item.default_factory is not msgspec.NODEFAULT:
                value = item.default_factory()
            shown[key.name] = None if value is None else key.kind.show(value, mask=True)
        return shown

    def _unknown(self, name: str, place: Place, known: list[str]) -> None:
        if name in self.refused:
            place.refuse(self.refused[name])
            return
        close = near(name, known)
        listed = "" if close else f"; known are {', '.join(known)}"
        place.refuse(f"unknown key{listed}", close)

    def _exactly_one(self, place: Place, entries: Mapping[str, Place]) -> None:
        if not self.one_of:
            return
        given = [name for name in self.one_of if name in entries]
        wanted = " or ".join(self.one_of)
        if not given and not self.refused.keys() & entries.keys():
            place.refuse(f"expected either {wanted}")
        elif len(given) > 1:
            place.refuse(f"expected either {wanted}, not both")


@dataclass(frozen=True, slots=True)
class Layer:
    """A section that is only a part of a whole: its keys with their places, not yet a struct."""

    section: Section
    expected: str = "a mapping"

    def read(self, place: Place) -> Found:
        """The value is what `Section.collect` gives."""
        return Found(self.section.collect(place), place)

    def show(self, value: Any, *, mask: bool) -> dict[str, Any]:
        return self.section.show(value, mask=mask)

    def schema(self) -> Schema:
        return self.section.schema()


@dataclass(frozen=True, slots=True)
class MapOf:
    """Names of the user's choice, each with a section; `reserved` names may not be taken."""

    name: Text
    section: Section
    reserved: Mapping[str, str] = field(default_factory=dict)

    @property
    def expected(self) -> str:
        return f"a mapping; each key {self.name.expected}"

    def read(self, place: Place) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in place.entries().items():
            self._check(name, value)
            try:
                made[name] = self.section.read(value)
            except Unfit as error:
                value.refuse(error.message, error.suggestion)
        return made

    def show(self, value: Any, *, mask: bool) -> dict[str, Any]:
        return {name: self.section.show(item, mask=mask) for name, item in value.items()}

    def schema(self) -> Schema:
        names: Schema = {"pattern": f"^(?:{self.name.pattern})$"}
        if self.reserved:
            names["not"] = {"enum": [*self.reserved]}
        return {
            "type": "object",
            "propertyNames": names,
            "additionalProperties": self.section.schema(),
        }

    def _check(self, name: str, place: Place) -> None:
        if name in self.reserved:
            place.refuse(self.reserved[name])
        elif not self.name.fits(name):
            place.refuse(f"the name must be {self.name.expected}", self.name.meant(name))

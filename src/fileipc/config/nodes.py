"""YAML as nodes with their places, so that every fault can name its line.

Nothing is constructed from tags: a node is read by whoever expects something of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from ..errors import Problem

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*(?:_[0-9]+)*)")
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Unfit(Exception):
    """A value is not what was expected; becomes a Problem at the value's place."""

    def __init__(self, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion


@dataclass(frozen=True, slots=True)
class Odd:
    """A value that is neither text, number, true, false nor null; says what it is."""

    what: str


@dataclass(frozen=True, slots=True)
class Place:
    """One value: its node, file, line (from 1) and dotted path, and where its faults go."""

    file: str
    line: int
    path: str
    node: yaml.Node
    problems: list[Problem]

    def refuse(self, message: str, suggestion: str | None = None, *, below: str = "") -> None:
        """Note a fault here, or at a key `below` that is not there."""
        path = _join(self.path, below) if below else self.path
        self.problems.append(Problem(self.file, self.line, path, message, suggestion))

    def value(self) -> object:
        """Text, number, true, false, None; `Odd` for anything else."""
        return _plain(self.node)

    def got(self) -> str:
        """The value in words, for a message."""
        value = self.value()
        if isinstance(value, Odd):
            return value.what
        if value is None:
            return "nothing"
        if isinstance(value, bool):
            return f"{self.node.value} (that is, {str(value).lower()})"
        if isinstance(value, str):
            return f"the text {_short(value)}"
        return f"the number {self.node.value[:80]}"

    def quoted(self) -> str | None:
        """How the scalar would be written as text, where it is not text already."""
        scalar = isinstance(self.node, yaml.ScalarNode) and self.node.value
        known = not isinstance(self.value(), str | None)
        return f'"{self.node.value}"' if scalar and known and len(scalar) < 80 else None

    def items(self) -> list[Place]:
        """The items of a list; Unfit where it is none."""
        if not isinstance(self.node, yaml.SequenceNode) or self.node.tag != f"{_TAG}seq":
            raise Unfit(f"expected a list, got {self.got()}")
        return [
            # An alias carries the place of what it stands for: the list's own line is nearer.
            Place(
                self.file,
                max(self.line, line_of(item)),
                f"{self.path}[{index}]",
                item,
                self.problems,
            )
            for index, item in enumerate(self.node.value)
        ]

    def entries(self) -> dict[str, Place]:
        """The entries of a mapping with its merge keys (`<<`) applied; Unfit where it is none.

        Duplicate keys and keys that are not text are noted as faults.
        """
        if not isinstance(self.node, yaml.MappingNode) or self.node.tag != f"{_TAG}map":
            raise Unfit(f"expected a mapping (key: value), got {self.got()}")
        merged: dict[str, Place] = {}
        own: dict[str, Place] = {}
        for key, value in self.node.value:
            here = Place(self.file, line_of(key), self.path, value, self.problems)
            name = _plain(key)
            if key.tag == _MERGE:
                for entry_name, entry in here._merge_sources():
                    merged.setdefault(entry_name, entry)
            elif not isinstance(name, str) or not name or not name.isprintable():
                bad = Place(self.file, here.line, self.path, key, self.problems)
                here.refuse(f"a key must be text, got {bad.got()}", bad.quoted())
            elif name in own:
                here.refuse(f"stands twice (first on line {own[name].line})", below=name)
            else:
                path = _join(self.path, name)
                own[name] = Place(self.file, here.line, path, value, self.problems)
        return {**merged, **own}

    def _merge_sources(self) -> Iterator[tuple[str, Place]]:
        several = isinstance(self.node, yaml.SequenceNode)
        for node in self.node.value if several else [self.node]:
            try:
                source = Place(self.file, self.line, self.path, node, self.problems)
                yield from source.entries().items()
            except Unfit as error:
                self.refuse(error.message, below="<<")


def line_of(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1 if node.start_mark else 1


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _plain(node: yaml.Node) -> object:
    if isinstance(node, yaml.MappingNode):
        return Odd("a mapping" if node.tag == f"{_TAG}map" else f"a value tagged {node.tag!r}")
    if isinstance(node, yaml.SequenceNode):
        return Odd("a list" if node.tag == f"{_TAG}seq" else f"a value tagged {node.tag!r}")
    text = str(node.value)
    match node.tag.removeprefix(_TAG):
        case "str":
            return text
        case "null":
            return None
        case "bool" if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        case "int" if len(text) <= 40 and _INTEGER.fullmatch(text):
            return int(text)
        case "int":
            return Odd(f"{_short(text)}, which is not a plain decimal number")
        case "float":
            return _real(text)
        case "timestamp":
            return Odd(f"the date {_short(text)}")
        case tag:
            return Odd(f"the value {_short(text)} tagged {_short(tag)}")


def _real(text: str) -> object:
    if text.lower().lstrip("+-") in (".inf", ".nan"):
        return float(text.replace(".", ""))
    try:
        return float(text)
    except ValueError:
        return Odd(f"{_short(text)}, which is not a plain decimal number")

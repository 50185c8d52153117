"""The JSON Schema of the configuration file, and its reference for the README."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .keys import TOP
from .kinds import Kind, ListOf, OrNull
from .sections import Layer, MapOf, Section


def config_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the file as it is written, units and all."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "fileipc config",
        **TOP.schema(),
    }


def reference() -> str:
    """Markdown: one table for the file, one for a root, one for each mapping in it."""
    parts = []
    for title, section in _sections("The file", TOP):
        defaults = section.defaults()
        rows = ["| key | default | expected | meaning |", "| --- | --- | --- | --- |"]
        for key in section.keys:
            default = key.default or _written(defaults[key.name], required=key.required)
            cells = (f"`{key.name}`", default, key.kind.expected, key.about)
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append("\n".join((f"**{title}**", "", *rows)))
    return "\n\n".join(parts) + "\n"


def _sections(title: str, section: Section) -> Iterator[tuple[str, Section]]:
    yield title, section
    for key in section.keys:
        if key.name != "defaults":  # the keys of a root, which have their own table
            yield from _below(f"`{key.name}`", key.kind)


def _below(title: str, kind: Kind) -> Iterator[tuple[str, Section]]:
    match kind:
        case Section():
            yield from _sections(title, kind)
        case Layer():
            yield from _sections(f"Each of {title}", kind.section)
        case MapOf():
            yield from _sections(f"Each of {title}", kind.section)
        case ListOf():
            yield from _below(title, kind.item)
        case OrNull():
            yield from _below(title, kind.kind)
        case _:
            return


def _written(default: Any, *, required: bool) -> str:
    if required:
        return "required"
    if isinstance(default, dict):
        return "see below"
    if default is None:
        return ""
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"

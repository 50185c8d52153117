"""Arguments arrive flat or nested; a handler sees one flat, validated shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ..errors import InvalidArgs
from .hints import MAX_NAMED, cut, first, near

T = TypeVar("T")


def flatten(args: Mapping[str, Any], *, declared: frozenset[str] = frozenset()) -> dict[str, Any]:
    """`{"target": t, "params": {...}}` becomes `{"target": t, ...}`; flat stays as it is.

    Nested is what has no keys but `target` and an object `params`. A handler that itself
    declares an argument `params` is nested only where a `target` stands beside it.

    Raises:
        InvalidArgs: `target` stands both beside and inside `params` with different values.
    """
    flat = dict(args)
    params = flat.get("params")
    nested = isinstance(params, dict) and set(flat) <= {"target", "params"}
    if not nested or ("params" in declared and "target" not in flat):
        return flat
    assert isinstance(params, dict)
    del flat["params"]
    if "target" in params and flat.get("target", params["target"]) != params["target"]:
        raise InvalidArgs("target stands in args and in args.params, with different values")
    return {**flat, **params}


def custom_target(args: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Split `{"type": "custom", "args": {"target": NAME, ...}}` into the name and the rest."""
    name = args.get("target")
    if not isinstance(name, str) or not name:
        raise InvalidArgs('type custom needs "target": the name of a handler')
    rest = {key: value for key, value in args.items() if key != "target"}
    return name, flatten(rest)


def validate(args: Mapping[str, Any], shape: type[T], *, alias: str | None = None) -> T:
    """Turn flat arguments into the handler's own struct.

    `alias` names the field that the seed's `target` stands for (`path` of a search).

    Raises:
        InvalidArgs: names the field, what was expected, and a near miss for an unknown one.
    """
    flat = dict(args)
    fields: tuple[str, ...] = getattr(shape, "__struct_fields__", ())
    if alias and "target" in flat and "target" not in fields:
        if alias in flat and flat[alias] != flat["target"]:
            raise InvalidArgs(f"target and {alias} mean the same here; give one of them")
        flat[alias] = flat.pop("target")
    unknown = [key for key in flat if key not in fields]
    if unknown:
        told = first(unknown, lambda key: _unknown(key, fields), "unknown arguments")
        raise InvalidArgs(
            "; ".join(told),
            details={
                "unknown": [cut(key) for key in unknown[:MAX_NAMED]],
                "unknown_count": len(unknown),
            },
        )
    try:
        return msgspec.convert(flat, shape)
    except msgspec.ValidationError as error:
        raise InvalidArgs(_readable(str(error))) from None


def _unknown(key: str, fields: tuple[str, ...]) -> str:
    close = near(key, fields)
    hint = f"did you mean `{close}`?" if close else f"known are: {', '.join(fields) or 'none'}"
    return f"unknown argument `{cut(key)}`; {hint}"


def _readable(message: str) -> str:
    missing = re.match(r"Object missing required field `(\w+)`", message)
    if missing:
        return f"missing argument `{missing.group(1)}`"
    text, _, place = message.partition(" - at `$.")
    return f"{place.rstrip('`')}: {text}" if place else text

"""From a fact to one line: structlog's processors, as JSON or as readable text."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
import structlog
from structlog.typing import EventDict, WrappedLogger

from ..protocol.facts import Fact, Level
from ..protocol.times import iso

MAX_LINE = 64 * 1024
_RANK = {Level.DEBUG: 0, Level.INFO: 1, Level.WARNING: 2, Level.ERROR: 3}
_OWN = frozenset({"timestamp", "level", "event", "root"})
_MULTILINE = ("exception", "stack", "exc_info")
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
_DEPTH = 32
_ENCODER = msgspec.json.Encoder(enc_hook=repr)


class LineSink(Protocol):
    """Where finished lines go, without their end; raises OSError or ValueError."""

    def write(self, line: bytes) -> None: ...


class FactLogger(structlog.BoundLoggerBase):
    """A structlog logger whose one method takes a fact."""

    def tell(self, fact: Fact) -> None:
        """Render the fact and write it; errors are those of the sink."""
        (line,), _ = self._process_event(fact.level, fact.event, _fields(fact))
        self._logger.write(line)


def json_logger(sink: LineSink) -> FactLogger:
    """One JSON object a line."""
    return _logger(
        sink, [_trace, _in_order, structlog.processors.JSONRenderer(serializer=to_json), _cut]
    )


def text_logger(sink: LineSink, *, colors: bool) -> FactLogger:
    """Readable text, one line a fact, with nothing in it that a terminal would obey."""
    renderer = structlog.dev.ConsoleRenderer(colors=colors, sort_keys=False)
    return _logger(sink, [_trace, _in_order, _harmless, renderer, _as_bytes])


def is_enough(level: Level, least: Level) -> bool:
    """Whether a fact of `level` passes where `least` is asked for."""
    return _RANK[level] >= _RANK[least]


def trace_ids(traceparent: object) -> dict[str, str]:
    """`trace_id` and `parent_id` of a W3C traceparent; empty where it is not a valid one."""
    match = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    if match is None:
        return {}
    version, trace_id, parent_id, more = match.groups()
    # Version 00 ends with the flags; a later one may go on. Version ff and zeroes mean nothing.
    if version == "ff" or (version == "00" and more) or not (int(trace_id, 16)):
        return {}
    if not int(parent_id, 16):
        return {}
    return {"trace_id": trace_id, "parent_id": parent_id}


def to_json(value: Any, **_: Any) -> bytes:
    """JSON of any value on one line; what JSON cannot carry becomes text."""
    try:
        return _ENCODER.encode(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        plain = _plain(value, _DEPTH)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def _logger(sink: LineSink, processors: list[Any]) -> FactLogger:
    # structlog's own type does not know processors that come after the renderer.
    return FactLogger(sink, processors, {})


def _fields(fact: Fact) -> dict[str, Any]:
    fields = dict(fact.fields)
    for name in _OWN.intersection(fields):
        fields[f"{name}_"] = fields.pop(name)
    if fact.response is not None and "traceparent" in fact.response.meta:
        fields.setdefault("traceparent", fact.response.meta["traceparent"])
    fields["root"] = fact.root
    return fields


def _trace(_logger: WrappedLogger, _level: str, event: EventDict) -> EventDict:
    if "traceparent" in event:
        event.update(trace_ids(event.pop("traceparent")))
    return event


def _in_order(_logger: WrappedLogger, level: str, event: EventDict) -> EventDict:
    shown: EventDict = {
        "timestamp": iso(time.time()),
        "level": str(level),
        "event": event.pop("event"),
    }
    root = event.pop("root")
    if root is not None:
        shown["root"] = root
    shown.update(event)
    return shown


def _cut(_logger: WrappedLogger, _level: str, line: bytes) -> bytes:
    # A hostile value must not fill the log: what the fact was is kept, its fields are not.
    if len(line) <= MAX_LINE:
        return line
    whole = json.loads(line)
    kept = {key: value for key, value in whole.items() if len(str(value)) <= 1024}
    kept = dict(list(kept.items())[:20])
    return to_json({**kept, "line_bytes": len(line), "line_cut": True})


class _Shown:
    """Text that ConsoleRenderer, which shows other objects by their repr, takes as it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _harmless(_logger: WrappedLogger, _level: str, event: EventDict) -> EventDict:
    for key in [key for key in event if not key.isidentifier()]:
        event[repr(key)] = event.pop(key)
    for key in _MULTILINE:  # the renderer would put these below the line
        if key in event:
            event[f"{key}_"] = event.pop(key)
    for key, value in event.items():
        text = value if isinstance(value, str) else repr(value)
        if len(text) > MAX_LINE:
            text = f"{text[:1024]}... ({len(text)} characters)"
            event[key] = text if isinstance(value, str) else _Shown(text)
        if not text.isprintable():
            event[key] = _Shown(repr(text))
    return event


def _as_bytes(_logger: WrappedLogger, _level: str, line: str) -> bytes:
    return line.encode("utf-8", "backslashreplace")


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, bool | int):
        return value
    if depth <= 0:
        return "..."
    if isinstance(value, msgspec.Raw):
        return _plain(json.loads(bytes(value)), depth)
    if isinstance(value, msgspec.Struct):
        return _plain(msgspec.structs.asdict(value), depth)
    if isinstance(value, Mapping):
        return {_plain(str(key), depth): _plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth - 1) for item in value]
    return _plain(repr(value), depth)

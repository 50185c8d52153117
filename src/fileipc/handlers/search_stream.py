"""ripgrep's JSON stream, read as it comes and in bounded memory."""

from __future__ import annotations

import base64
import binascii
from collections import deque
from typing import Any

import msgspec
from msgspec import Struct

MAX_LINE = 1024 * 1024  # bytes of one JSON message; longer ones are skipped and counted
MAX_TEXT = 4096  # characters kept of a matching line
MAX_CONTEXT_TEXT = 1024  # characters kept of a line of context
MAX_SUBMATCHES = 50
BUDGET = 8 * 1024 * 1024  # bytes of all texts together, roughly as JSON
_LEAD = 256  # characters kept in front of a match that lies far out in its line
_OVERHEAD = 160


class _Text(Struct):
    text: str | None = None
    bytes: str | None = None


class _Submatch(Struct):
    start: int
    end: int


class _Stats(Struct):
    searches: int = 0


class _Data(Struct):
    path: _Text | None = None
    lines: _Text | None = None
    line_number: int | None = None
    submatches: list[_Submatch] = []
    stats: _Stats | None = None


class _Message(Struct):
    type: str
    data: _Data


_DECODER = msgspec.json.Decoder(_Message)


class Matches:
    """A sink that collects matches.

    A match is `{path, line, column, text, submatches, before, after}`: `line` and `column` count
    from 1, in characters; `text` is the line without its end; `submatches` are `[start, end]` in
    characters of `text`, from 0, `end` excluded; `before` and `after` are there where context was
    asked for. `cut: true`: the line was longer, and `text` is the part around the first match.
    `lossy: true`: the line or the path was not UTF-8, and odd bytes stand as U+FFFD.
    """

    def __init__(self, *, prefix: str, single: bool, context: int, max_matches: int) -> None:
        self.complete = False
        """ripgrep came to its own end, so that nothing is missing."""
        self._prefix = "" if prefix == "." else prefix
        self._single = single
        self._context = context
        self._max = max_matches
        self._left = BUDGET
        self._matches: list[dict[str, Any]] = []
        self._files = 0
        self._searched = 0
        self._long_lines = 0
        self._truncated = False
        self._buffer = bytearray()
        self._skipping = False
        self._path = ""
        self._path_lossy = False
        self._fresh = False
        self._before: deque[tuple[int, str]] = deque(maxlen=context)
        self._waiting: deque[dict[str, Any]] = deque()

    def feed(self, chunk: bytes) -> bool:
        """Take a piece of the stream; False once there is enough."""
        start = 0
        while not self._truncated:
            end = chunk.find(b"\n", start)
            piece = chunk[start:] if end < 0 else chunk[start:end]
            if not self._skipping:
                self._buffer += piece
                if len(self._buffer) > MAX_LINE:
                    self._skipping = True
                    self._long_lines += 1
                    self._buffer.clear()
            if end < 0:
                return True
            if not self._skipping:
                self._message(bytes(self._buffer))
            self._buffer.clear()
            self._skipping = False
            start = end + 1
        return False

    def result(self) -> dict[str, Any]:
        return {
            "matches": self._matches,
            "count": len(self._matches),
            "files": self._files,
            "searched_files": self._searched if self.complete else None,
            "truncated": self._truncated,
            "skipped": {"long_lines": self._long_lines},
            "warnings": [],
        }

    def _message(self, raw: bytes) -> None:
        if not raw:
            return
        try:
            message = _DECODER.decode(raw)
        except msgspec.DecodeError:
            # Not of ripgrep's making as we know it: nothing to read there.
            return
        data = message.data
        if message.type == "begin" and data.path is not None:
            self._begin(data.path)
        elif message.type == "match" and data.lines is not None:
            self._match(data.line_number or 0, data.lines, data.submatches)
        elif message.type == "context" and data.lines is not None:
            self._context_line(data.line_number or 0, _decoded(data.lines)[0])
        elif message.type == "summary":
            self.complete = True
            self._searched = data.stats.searches if data.stats else 0

    def _begin(self, path: _Text) -> None:
        text, self._path_lossy = _decoded(path)
        relative = self._prefix if self._single else text.removeprefix("./")
        if self._prefix and not self._single:
            relative = f"{self._prefix}/{relative}"
        self._path = relative
        self._before.clear()
        self._waiting.clear()
        self._fresh = True

    def _match(self, line: int, lines: _Text, submatches: list[_Submatch]) -> None:
        text, lossy = _decoded(lines)
        self._follow(line, text)
        if len(self._matches) >= self._max or self._left <= 0:
            self._truncated = True
            return
        spans = _spans(lines, text, submatches)
        found = _cut(text, spans)
        match: dict[str, Any] = {
            "path": self._path,
            "line": line,
            "column": spans[0][0] + 1 if spans else 1,
            **found,
        }
        if lossy or self._path_lossy:
            match["lossy"] = True
        if self._context:
            match["before"] = [old for at, old in self._before if at >= line - self._context]
            match["after"] = []
            self._waiting.append(match)
            self._before.append((line, _short(text)))
            self._left -= sum(map(len, match["before"]))
        if self._fresh:
            self._files += 1
            self._fresh = False
        self._matches.append(match)
        self._left -= len(match["text"]) + len(self._path) + _OVERHEAD + 12 * len(spans)

    def _context_line(self, line: int, text: str) -> None:
        self._follow(line, text)
        self._before.append((line, _short(text)))

    def _follow(self, line: int, text: str) -> None:
        """Give a line to the matches before it that still want context."""
        while self._waiting and self._waiting[0]["line"] + self._context < line:
            self._waiting.popleft()
        if not self._waiting:
            return
        short = _short(text)
        for match in self._waiting:
            match["after"].append(short)
        self._left -= len(short) * len(self._waiting)


def _decoded(value: _Text) -> tuple[str, bool]:
    """The text without its line end, and whether it lost bytes that were not UTF-8."""
    if value.text is not None:
        return value.text.rstrip("\r\n"), False
    return _raw(value).decode("utf-8", "replace").rstrip("\r\n"), True


def _raw(value: _Text) -> bytes:
    try:
        return base64.b64decode(value.bytes or "")
    except binascii.Error:
        return b""


def _spans(lines: _Text, text: str, submatches: list[_Submatch]) -> list[list[int]]:
    """Byte offsets as character offsets."""
    some = submatches[:MAX_SUBMATCHES]
    if lines.text is not None and text.isascii():
        return [[min(one.start, len(text)), min(one.end, len(text))] for one in some]
    raw = lines.text.encode() if lines.text is not None else _raw(lines)
    return [[_characters(raw, one.start), _characters(raw, one.end)] for one in some]


def _characters(raw: bytes, offset: int) -> int:
    return len(raw[:offset].decode("utf-8", "replace"))


def _cut(text: str, spans: list[list[int]]) -> dict[str, Any]:
    if len(text) <= MAX_TEXT:
        return {"text": text, "submatches": spans}
    first = spans[0][0] if spans else 0
    start = 0 if first < MAX_TEXT - _LEAD else first - _LEAD
    end = start + MAX_TEXT
    kept = [[a - start, min(b, end) - start] for a, b in spans if a < end]
    return {"text": text[start:end], "submatches": kept, "cut": True}


def _short(text: str) -> str:
    return text if len(text) <= MAX_CONTEXT_TEXT else f"{text[:MAX_CONTEXT_TEXT]}..."

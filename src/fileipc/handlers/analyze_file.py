"""One file: identity, counts, outline. Read once, in pieces, never whole."""

from __future__ import annotations

import codecs
import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from .analyze_count import LineCounter
from .analyze_languages import Language, language_of
from .analyze_outline import MAX_SOURCE, python_outline
from .analyze_text import SAMPLE, TextKind, binary_type, text_kind, typed_text
from .confine import Opened, plain

TEXT_LIMIT = 64 * 1024 * 1024  # bytes of a text that are counted; all of it is hashed
_CHUNK = 1024 * 1024
_EMPTY = "inode/x-empty"


def describe_file(opened: Opened, depth: int) -> dict[str, Any]:
    """What a regular file is.

    Depth 0: `{path, kind: "file", size, modified, sha256, mime, encoding, binary}`; `encoding` is
    null for binary and empty files and where it could not be told. Depth 1 adds `{language,
    lines, code, comments, blanks, newline}`, depth 2 `{outline, imports, todos}`; all of them
    are null for binary files.
    `notes` says in words what is missing and why; `truncated`: the counts cover the first 64 MiB.

    What is hashed and counted is the file as long as it was when it was opened.
    """
    size = opened.status.st_size
    chunks = _chunks(opened.fd, size)
    head = next(chunks, b"")
    whole = size <= len(head)
    sample = head[:SAMPLE]
    text = text_kind(sample, whole=whole and len(head) <= SAMPLE, guess=True) if head else None
    name = opened.relative.rsplit("/", 1)[-1]
    language = language_of(name, sample) if text else None
    work = _Reading(language, text, size, depth)
    work.take(head)
    for chunk in chunks:
        work.take(chunk)
    work.finish()
    notes = [*work.notes, *_changes(opened, work.read)]
    result: dict[str, Any] = {
        "path": plain(opened.relative),
        "kind": "file",
        "size": size,
        "modified": modified(opened.status),
        "sha256": work.hash.hexdigest(),
        "mime": _mime(sample, plain(name), text, language),
        "encoding": work.encoding,
        "binary": bool(head) and text is None,
    }
    if depth >= 1:
        result |= work.counts()
    if depth >= 2:
        result |= work.structure(notes)
    result["truncated"] = work.truncated
    result["notes"] = notes
    return result


def modified(status: os.stat_result) -> str | None:
    """When it was changed last: ISO 8601, UTC; None for a time no date can hold."""
    try:
        when = datetime.fromtimestamp(status.st_mtime, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _chunks(fd: int, size: int) -> Iterator[bytes]:
    left = size
    while left > 0 and (chunk := os.read(fd, min(_CHUNK, left))):
        left -= len(chunk)
        yield chunk


def _mime(head: bytes, name: str, text: TextKind | None, language: Language | None) -> str:
    if not head:
        return _EMPTY
    if text is None or typed_text(head):
        return binary_type(head, name)
    return language.mime if language else "text/plain"


def _changes(opened: Opened, read: int) -> list[str]:
    now = os.fstat(opened.fd)
    if read < opened.status.st_size:
        return [f"it shrank while being read: {read} bytes are described"]
    if (now.st_size, now.st_mtime_ns) != (opened.status.st_size, opened.status.st_mtime_ns):
        return ["it changed while being read: the first `size` bytes are described"]
    return []


class _Reading:
    """What one pass over a file gathers."""

    def __init__(
        self, language: Language | None, text: TextKind | None, size: int, depth: int
    ) -> None:
        self.hash = hashlib.sha256()
        self.encoding = text.encoding if text else None
        self.notes: list[str] = []
        self.read = 0
        self.truncated = False
        self._text = text
        self._language = language
        self._size = size
        self._counter: LineCounter | None = None
        if text is not None and depth >= 1:
            self._counter = LineCounter(language, text.encoding, marks=depth >= 2)
        checked = self.encoding in ("ascii", "utf-8", "utf-8-sig")
        self._check = codecs.getincrementaldecoder("utf-8")() if checked else None
        keep = depth >= 2 and language is not None and language.name == "Python"
        self._source: bytearray | None = bytearray() if keep and size <= MAX_SOURCE else None

    def take(self, chunk: bytes) -> None:
        start = self.read
        self.hash.update(chunk)
        self.read += len(chunk)
        if self._text is None:
            return
        if self.read > TEXT_LIMIT:
            self.truncated = True
            chunk = chunk[: max(0, TEXT_LIMIT - start)]
        self._validate(chunk)
        if self._counter is not None:
            self._counter.feed(chunk)
        if self._source is not None:
            self._source += chunk

    def finish(self) -> None:
        self._validate(b"", final=not self.truncated)
        if self._counter is not None:
            self._counter.finish()
        if self.truncated:
            self.notes.append(f"text beyond the first {TEXT_LIMIT} bytes was not looked at")

    def _validate(self, chunk: bytes, *, final: bool = False) -> None:
        # The sample may be clean and the rest not.
        if self._check is None:
            return
        if self.encoding == "ascii" and not chunk.isascii():
            self.encoding = "utf-8"
        try:
            self._check.decode(chunk, final)
        except UnicodeDecodeError:
            self._check = None
            self.notes.append("not all of it is UTF-8, though its beginning is")

    def counts(self) -> dict[str, Any]:
        counter = self._counter
        if counter is None:
            # An empty file has no lines; a binary one has none that mean anything.
            none = None if self._size else 0
            return {
                "language": None,
                "lines": none,
                "code": none,
                "comments": none,
                "blanks": none,
                "newline": None,
            }
        return {
            "language": self._language.name if self._language else None,
            "lines": counter.lines,
            "code": counter.code,
            "comments": counter.comments,
            "blanks": counter.blanks,
            "newline": counter.newline,
        }

    def structure(self, notes: list[str]) -> dict[str, Any]:
        """Outline, imports and marks; adds to `notes` why one is missing."""
        result: dict[str, Any] = {"outline": None, "imports": None, "todos": None}
        if self._counter is None:
            notes.append(
                "no outline: the file is binary" if self._size else "no outline: it is empty"
            )
            return result
        result["todos"] = self._counter.marks
        if self._counter.more_marks:
            notes.append(f"todos holds the first {len(self._counter.marks)} marks only")
        language = self._language.name if self._language else "this kind of text"
        if self._source is not None:
            outline = python_outline(bytes(self._source))
            result["outline"] = outline.symbols
            result["imports"] = outline.imports
            notes.extend(outline.notes)
        elif language == "Python":
            notes.append(f"no outline: the source has more than {MAX_SOURCE} bytes")
        else:
            notes.append(f"no outline: it is made for Python only, not for {language}")
        return result

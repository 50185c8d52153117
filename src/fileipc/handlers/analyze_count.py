"""Counting lines in the sense of cloc and tokei, in bounded memory.

A line is blank (white space only, also within a comment), comment (nothing but comment) or code
(anything else, a docstring and a comment behind code included).
"""

from __future__ import annotations

import codecs
import functools
import re
from dataclasses import dataclass
from typing import Any

from .analyze_languages import Language

MAX_LINE = 64 * 1024  # bytes of a line that are looked at; the rest counts as more of the same
MAX_MARKS = 500
_MARK = re.compile(rb"\b(TODO|FIXME|XXX)\b")
_MARK_TEXT = 200


@dataclass(frozen=True, slots=True)
class Syntax:
    """A language's comments as compiled patterns."""

    line: tuple[bytes, ...]
    opener: re.Pattern[bytes] | None
    token: re.Pattern[bytes] | None
    ends: dict[bytes, tuple[bytes, bool]]
    nested: bool


@functools.cache
def syntax_of(language: Language) -> Syntax:
    """Compile a language; `ends` tells what closes an opener, and whether it is a comment."""
    ends = {o.encode(): (c.encode(), True) for o, c in language.block}
    ends.update({o.encode(): (c.encode(), False) for o, c in language.strings})
    line = tuple(marker.encode() for marker in language.line)
    if not ends:
        return Syntax(line, None, None, {}, language.nested)
    # Longest first: `--[[` before `--`, and a triple quote before a single one.
    openers = sorted(ends, key=len, reverse=True)
    parts = [(b"open", b"|".join(_quoted(one) for one in openers))]
    if line:
        parts.append((b"line", b"|".join(re.escape(one) for one in line)))
    if language.quotes:
        quote = b"|".join(_string(char.encode()) for char in language.quotes)
        parts.append((b"text", quote))
    token = b"|".join(b"(?P<" + name + b">" + part + b")" for name, part in parts)
    opener = re.compile(b"|".join(re.escape(one) for one in openers))
    return Syntax(line, opener, re.compile(token), ends, language.nested)


def _quoted(opener: bytes) -> bytes:
    # =begin and the like count at the beginning of a line only.
    return (b"^" if opener.startswith(b"=") else b"") + re.escape(opener)


def _string(quote: bytes) -> bytes:
    return quote + rb"(?:\\.|[^\\" + quote + rb"])*" + quote + b"?"


class LineCounter:
    """Takes a text piece by piece; reads UTF-16 and UTF-32 as well, all else as bytes."""

    def __init__(self, language: Language | None, encoding: str | None, *, marks: bool) -> None:
        self._syntax = syntax_of(language) if language else Syntax((), None, None, {}, False)
        wide = encoding if encoding in ("utf-16", "utf-32") else None
        self._decoder = codecs.getincrementaldecoder(wide)("replace") if wide else None
        self._want_marks = marks
        self._rest = b""
        self._inside: tuple[bytes, bytes, bool] | None = None
        self._level = 0
        self.lines = self.code = self.comments = self.blanks = 0
        self.lf = self.crlf = self.cr = 0
        self.marks: list[dict[str, Any]] = []
        self.more_marks = False

    @property
    def newline(self) -> str | None:
        """ "lf", "crlf", "cr", "mixed", or None where no line ends."""
        styles = [
            name for name, count in (("lf", self.lf), ("crlf", self.crlf), ("cr", self.cr)) if count
        ]
        return None if not styles else styles[0] if len(styles) == 1 else "mixed"

    def feed(self, chunk: bytes) -> None:
        data = self._decoder.decode(chunk).encode() if self._decoder else chunk
        self._take(data, final=False)

    def finish(self) -> None:
        """The text has ended."""
        tail = self._decoder.decode(b"", True).encode() if self._decoder else b""
        self._take(tail, final=True)

    def _take(self, data: bytes, *, final: bool) -> None:
        data = self._rest + data
        self._rest = b""
        if not final and data.endswith(b"\r"):
            data, self._rest = data[:-1], b"\r"  # perhaps half of a CR LF
        crlf = data.count(b"\r\n")
        self.crlf += crlf
        self.lf += data.count(b"\n") - crlf
        self.cr += data.count(b"\r") - crlf
        lines = data.splitlines(keepends=True)
        if not final and lines and not lines[-1].endswith((b"\n", b"\r")):
            self._rest = lines.pop()[:MAX_LINE] + self._rest
        for line in lines:
            self._count(line)

    def _count(self, line: bytes) -> None:
        if self.lines == 0:
            line = line.removeprefix(codecs.BOM_UTF8)
        self.lines += 1
        text = line[:MAX_LINE].strip()
        if not text:
            self.blanks += 1
            return
        if self._want_marks:
            self._mark(text)
        syntax = self._syntax
        if self._inside is None and (syntax.opener is None or not syntax.opener.search(text)):
            comment = text.startswith(syntax.line) if syntax.line else False
        else:
            comment = self._scan(text)
        if comment:
            self.comments += 1
        else:
            self.code += 1

    def _scan(self, text: bytes) -> bool:
        """Follow comments and strings through a line; True where all of it is comment."""
        token = self._syntax.token
        assert token is not None
        at = 0
        code = False
        while at < len(text):
            if self._inside is not None:
                code = code or not self._inside[2]
                at = self._leave(text, at)
                continue
            found = token.search(text, at)
            if found is None:
                return not (code or bool(text[at:].strip()))
            code = code or bool(text[at : found.start()].strip())
            if found.lastgroup == "line":
                break
            at = found.end()
            if found.lastgroup == "text":
                code = True
            else:
                opener = found.group()
                self._inside = (opener, *self._syntax.ends[opener])
                self._level = 1
                code = code or not self._inside[2]
        return not code

    def _leave(self, text: bytes, at: int) -> int:
        """Look for the end of what is open; returns where to go on."""
        assert self._inside is not None
        opener, closer, comment = self._inside
        nested = comment and self._syntax.nested
        while True:
            end = text.find(closer, at)
            again = text.find(opener, at) if nested else -1
            if nested and 0 <= again < (end if end >= 0 else len(text)):
                self._level += 1
                at = again + len(opener)
                continue
            if end < 0:
                return len(text)
            at = end + len(closer)
            self._level -= 1
            if self._level == 0:
                self._inside = None
                return at

    def _mark(self, text: bytes) -> None:
        found = _MARK.search(text)
        if found is None:
            return
        if len(self.marks) >= MAX_MARKS:
            self.more_marks = True
            return
        shown = text[found.start() : found.start() + _MARK_TEXT].decode("utf-8", "replace")
        self.marks.append(
            {"mark": found.group().decode(), "line": self.lines, "text": shown.strip()}
        )

"""Lines are counted in the sense of cloc and tokei."""

from __future__ import annotations

import pytest

from fileipc.handlers.analyze_count import LineCounter
from fileipc.handlers.analyze_languages import BY_EXTENSION, BY_NAME, language_of


def count(name: str, text: str | bytes, piece: int = 1 << 20) -> tuple[int, int, int]:
    """Code, comments and blanks."""
    data = text.encode() if isinstance(text, str) else text
    counter = LineCounter(language_of(name, data), "utf-8", marks=False)
    for at in range(0, len(data), piece):
        counter.feed(data[at : at + piece])
    counter.finish()
    assert counter.lines == counter.code + counter.comments + counter.blanks
    return counter.code, counter.comments, counter.blanks


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", "# c\n\nx = 1  # c\n", (1, 1, 1)),
        ("a.py", '"""doc\n# no comment\n"""\n# c\n', (3, 1, 0)),
        ("a.py", "x = '''\n\n# text\n'''\n", (3, 0, 1)),
        ("a.py", "x = \"'''\"\n# c\n", (1, 1, 0)),
        ("a.c", "/* c\n c\n\n c */\nint a; /* c */\n/* c */ int b;\n", (2, 3, 1)),
        ("a.c", '/* a */ /* b */\nchar *s = "/*";\n// c\n', (1, 2, 0)),
        ("a.c", "/* a */ // b\nx /* c\n c */ y\n", (2, 1, 0)),
        ("a.c", 'char *s = "\\"/*";\nint x;\n', (2, 0, 0)),
        ("a.c", "/* /* */ int x;\n", (1, 0, 0)),
        ("a.rs", "/* /* */ still */\nfn f<'a>() {}\n", (1, 1, 0)),
        ("a.rs", "/* /* c */\n c\n*/ fn f() {}\n", (1, 2, 0)),
        ("a.js", "const a = `\n// text\n/* text\n`;\n// c\n", (4, 1, 0)),
        ("a.sh", "#!/bin/sh\n# c\necho '#'\n", (1, 2, 0)),
        ("a.rb", "=begin\nc\n=end\nx =begin\n", (1, 3, 0)),
        ("a.lua", "--[[ c\nc ]]\n-- c\nx = 1 -- c\n", (1, 3, 0)),
        ("a.sql", "-- c\nSELECT '--' /* c */;\n", (1, 1, 0)),
        ("a.html", "<!-- c\nc -->\n<p>\n", (1, 2, 0)),
        ("a.hs", "{- c {- c -}\nc -}\nmain = x\n", (1, 2, 0)),
        ("a.css", "/* c */\na { b: url(//x) }\n", (1, 1, 0)),
        ("a.json", '{"a": "//"}\n', (1, 0, 0)),
        ("a.unknown", "# text\n\n", (1, 0, 1)),
        ("a.py", "x\r\n\r\n# c\r\n", (1, 1, 1)),
        ("a.py", "x\r\r# c", (1, 1, 1)),
        ("a.py", "\ufeff# c\n", (0, 1, 0)),
        ("a.py", " \t\f\n", (0, 0, 1)),
    ],
)
def test_each_line_is_code_comment_or_blank(
    name: str, text: str, expected: tuple[int, int, int]
) -> None:
    assert count(name, text) == expected
    for piece in (1, 3, 7):
        assert count(name, text, piece) == expected


@pytest.mark.parametrize(
    ("name", "head", "language"),
    [
        ("a.PY", b"", "Python"),
        ("Makefile", b"", "Makefile"),
        ("tool", b"#!/usr/bin/python3.11 -u\n", "Python"),
        ("tool", b"#!/usr/bin/env -S A=1 node --x\n", "JavaScript"),
        ("tool", b"#!/bin/bash\n", "Shell"),
        ("a.ts", b"#!/bin/bash\n", "TypeScript"),
        ("tool", b"#!\n", None),
        ("tool", b"text", None),
        ("archive.tar.unknown", b"", None),
    ],
)
def test_the_language_is_told_by_name_then_by_interpreter(
    name: str, head: bytes, language: str | None
) -> None:
    found = language_of(name, head)
    assert (found.name if found else None) == language


def test_every_language_of_the_table_can_be_counted() -> None:
    names = [*(f"a{ending}" for ending in BY_EXTENSION), *BY_NAME]
    assert len({language_of(name, b"") for name in names}) >= 35
    for name in names:
        assert count(name, "x\n\nx\n") == (2, 0, 1)


def test_one_language_has_one_name() -> None:
    by_name: dict[str, object] = {}
    for language in (*BY_EXTENSION.values(), *BY_NAME.values()):
        assert by_name.setdefault(language.name, language) is language


def test_newline_counts_do_not_depend_on_where_the_pieces_end() -> None:
    data = b"a\r\nb\rc\nd\r\r\n\n"
    for piece in range(1, len(data) + 1):
        counter = LineCounter(None, "ascii", marks=False)
        for at in range(0, len(data), piece):
            counter.feed(data[at : at + piece])
        counter.finish()
        assert (counter.crlf, counter.cr, counter.lf, counter.lines) == (2, 2, 2, 6)

"""analyze_file says what a file is; every odd file has its stated answer."""

from __future__ import annotations

import hashlib
import os
import zlib
from typing import Any

import pytest

from fileipc.errors import Forbidden, InvalidArgs, NotFound
from fileipc.executors.process import ProcessExecutor
from fileipc.handlers import analyze_file
from fileipc.handlers.analyze import AnalyzeHandler

from .harness import Place, not_as_root, strict

PYTHON = '''#!/usr/bin/env python3
"""Doc."""
from __future__ import annotations
import os, sys
from ..a import b as c, d

# TODO: mend this


class Outer(Base):
    """Doc."""

    x = 1

    class Inner:
        async def run(self): ...

    def method(self):
        def local():
            pass
        return local


if True:
    def chosen():
        import json  # FIXME later
'''


def analyze(place: Place, target: str, depth: int = 1) -> dict[str, Any]:
    result: dict[str, Any] = place.run(AnalyzeHandler(), {"target": target, "depth": depth})
    return result


def test_depth_0_is_identity_and_nothing_more(place: Place) -> None:
    path = place.write("src/a.py", PYTHON)
    os.utime(path, (0, 1_000_000_000.5))
    assert analyze(place, "./src/a.py", 0) == {
        "path": "src/a.py",
        "kind": "file",
        "size": len(PYTHON),
        "modified": "2001-09-09T01:46:40.500Z",
        "sha256": hashlib.sha256(PYTHON.encode()).hexdigest(),
        "mime": "text/x-python",
        "encoding": "ascii",
        "binary": False,
        "truncated": False,
        "notes": [],
    }


def test_depth_1_counts_lines(place: Place) -> None:
    place.write("a.py", PYTHON)
    result = analyze(place, "a.py")
    counts = ("language", "lines", "code", "comments", "blanks", "newline")
    assert [result[name] for name in counts] == ["Python", 26, 16, 2, 8, "lf"]
    assert "outline" not in result


def test_depth_2_outlines_python(place: Place) -> None:
    place.write("a.py", PYTHON)
    result = analyze(place, "a.py", 2)

    def shape(symbols: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return [
            (s["name"], s["kind"], s["line"], s["end_line"], shape(s["children"])) for s in symbols
        ]

    assert shape(result["outline"]) == [
        (
            "Outer",
            "class",
            10,
            21,
            [
                ("Inner", "class", 15, 16, [("run", "method", 16, 16, [])]),
                ("method", "method", 18, 21, [("local", "function", 19, 20, [])]),
            ],
        ),
        ("chosen", "function", 25, 26, []),
    ]
    assert result["imports"] == [
        {"module": "__future__", "names": ["annotations"], "line": 3},
        {"module": "os", "names": None, "line": 4},
        {"module": "sys", "names": None, "line": 4},
        {"module": "..a", "names": ["b", "d"], "line": 5},
        {"module": "json", "names": None, "line": 26},
    ]
    assert result["todos"] == [
        {"mark": "TODO", "line": 7, "text": "TODO: mend this"},
        {"mark": "FIXME", "line": 26, "text": "FIXME later"},
    ]
    assert result["notes"] == []


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (b"def broken(:\n", "line 1"),
        (b"x = " + b"(" * 5000 + b"\n", "no outline"),
        (b"# coding: no-such-codec\nx = 1\n", "no outline"),
        (b"x = '" + b"\\d" + b"'\n", None),
    ],
)
def test_a_source_that_does_not_parse_says_so(
    place: Place, source: bytes, says: str | None
) -> None:
    place.write("a.py", source)
    result = analyze(place, "a.py", 2)
    if says is None:
        assert result["outline"] == []
    else:
        assert result["outline"] is None
        assert says in result["notes"][0]


def test_endless_chains_and_many_symbols_are_bounded(place: Place) -> None:
    place.write("chain.py", "if x:\n  pass\n" + "elif x:\n  def f(): ...\n" * 900)
    chain = analyze(place, "chain.py", 2)
    assert chain["outline"] is None or len(chain["outline"]) == 900
    place.write("many.py", "def f(): ...\n" * 6000)
    many = analyze(place, "many.py", 2)
    assert len(many["outline"]) == 5000
    assert "5000" in many["notes"][0]


def test_another_language_has_no_outline_and_says_so(place: Place) -> None:
    place.write("a.go", "package a // TODO\n")
    result = analyze(place, "a.go", 2)
    assert (result["outline"], result["imports"]) == (None, None)
    assert result["notes"] == ["no outline: it is made for Python only, not for Go"]
    assert [mark["line"] for mark in result["todos"]] == [1]


@pytest.mark.parametrize(
    ("content", "style"),
    [
        (b"a\nb\n", "lf"),
        (b"a\r\nb\r\n", "crlf"),
        (b"a\rb\r", "cr"),
        (b"a\nb\r\n", "mixed"),
        (b"a", None),
    ],
)
def test_line_ends_are_told_apart(place: Place, content: bytes, style: str | None) -> None:
    place.write("a.txt", content)
    assert analyze(place, "a.txt")["newline"] == style


@pytest.mark.parametrize(
    ("content", "encoding", "lines"),
    [
        (b"plain\n", "ascii", 1),
        ("é\n\n".encode(), "utf-8", 2),
        (b"\xef\xbb\xbfa\n", "utf-8-sig", 1),
        ("a\né\n".encode("utf-16"), "utf-16", 2),
        (b"\xfe\xff" + "a\nb".encode("utf-16-be"), "utf-16", 2),
        ("a\n".encode("utf-32"), "utf-32", 1),
    ],
)
def test_encodings_are_recognised(place: Place, content: bytes, encoding: str, lines: int) -> None:
    place.write("a.txt", content)
    result = analyze(place, "a.txt")
    assert (result["encoding"], result["lines"], result["binary"]) == (encoding, lines, False)


def test_text_in_an_old_encoding_is_text(place: Place) -> None:
    text = "Les élèves français étaient très fâchés après la fête à l'hôtel.\n" * 20
    place.write("a.txt", text.encode("cp1252"))
    result = analyze(place, "a.txt")
    assert result["binary"] is False
    assert result["encoding"] is not None
    assert text.encode("cp1252").decode(result["encoding"]) == text
    assert result["lines"] == 20


def test_a_file_that_is_utf8_only_at_its_beginning_is_noted(place: Place) -> None:
    place.write("a.txt", b"x\n" * 50_000 + b"\xff\n")
    assert analyze(place, "a.txt")["notes"] == ["not all of it is UTF-8, though its beginning is"]
    place.write("b.txt", b"x\n" * 50_000 + "é\n".encode())
    late = analyze(place, "b.txt")
    assert (late["encoding"], late["notes"]) == ("utf-8", [])


@pytest.mark.parametrize(
    ("name", "content", "mime"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "image/png"),
        ("a", b"\x7fELF" + bytes(60), "application/x-executable"),
        ("a.zip", b"PK\x03\x04" + bytes(40), "application/zip"),
        ("a.gz", b"\x1f\x8b\x08" + bytes(40), "application/gzip"),
        ("a.pdf", b"%PDF-1.4\n%plain\n", "application/pdf"),
        ("a.png", b"\x00\x01\x02\x03", "application/octet-stream"),
        ("x.xyz", bytes(range(14)), "application/octet-stream"),
    ],
)
def test_binary_files_are_told_by_their_first_bytes_and_not_by_their_name(
    place: Place, name: str, content: bytes, mime: str
) -> None:
    place.write(name, content)
    result = analyze(place, name)
    kind = result["mime"].replace("x-gzip", "gzip")
    if content.startswith(b"\x7fELF"):
        assert kind.startswith("application/")
    else:
        assert kind == mime


def test_a_binary_file_has_no_lines(place: Place) -> None:
    place.write("a.bin", zlib.compress(os.urandom(5000)) + b"\0")
    result = analyze(place, "a.bin", 2)
    assert result["binary"] is True
    assert (result["encoding"], result["lines"], result["language"]) == (None, None, None)
    assert (result["outline"], result["todos"]) == (None, None)
    assert result["notes"] == ["no outline: the file is binary"]


def test_an_empty_file_is_empty(place: Place) -> None:
    place.write("a.py", "")
    result = analyze(place, "a.py", 2)
    assert (result["size"], result["mime"], result["lines"]) == (0, "inode/x-empty", 0)
    assert (result["binary"], result["encoding"]) == (False, None)
    assert result["sha256"] == hashlib.sha256(b"").hexdigest()


def test_a_huge_text_is_hashed_whole_and_counted_in_part(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyze_file, "TEXT_LIMIT", 3_000_000)
    content = b"0123456789abcde\n" * 250_000
    place.write("a.txt", content)
    result = analyze(place, "a.txt")
    assert result["sha256"] == hashlib.sha256(content).hexdigest()
    assert result["lines"] == 187_500
    assert result["truncated"] is True
    assert "first 3000000 bytes" in result["notes"][0]


def test_lines_without_end_are_counted(place: Place) -> None:
    place.write("a.js", b"/*" + b"x" * 3_000_000 + b"\n" + b"y" * 3_000_000 + b"*/\ncode()\n")
    result = analyze(place, "a.js")
    assert (result["lines"], result["newline"]) == (3, "lf")


def test_a_file_that_shrinks_while_it_is_read_says_so(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.write("a.txt", b"x\n" * 2_000_000)
    real = os.read

    def read(fd: int, size: int) -> bytes:
        chunk = real(fd, size)
        os.truncate(path, 10)
        return chunk

    monkeypatch.setattr(os, "read", read)
    result = analyze(place, "a.txt")
    assert "shrank" in result["notes"][0]
    assert result["lines"] == 1024 * 1024 // 2


def test_a_file_that_grows_while_it_is_read_is_described_as_it_was(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.write("a.txt", b"x\n")
    real = os.read

    def read(fd: int, size: int) -> bytes:
        with open(path, "ab") as file:
            file.write(b"more\n")
        return real(fd, size)

    monkeypatch.setattr(os, "read", read)
    result = analyze(place, "a.txt")
    assert (result["size"], result["lines"]) == (2, 1)
    assert "changed" in result["notes"][0]


@pytest.mark.parametrize("path", ["../x", "/p-evil/x", "leak", "dir/etc/passwd", ".ipc"])
def test_nothing_outside_the_project_is_read(place: Place, path: str) -> None:
    """E11"""
    place.link("leak", "/etc/passwd")
    place.link("dir", "/")
    with pytest.raises(Forbidden):
        analyze(place, path)


def test_a_fifo_is_refused_at_once_and_a_missing_file_is_not_found(place: Place) -> None:
    """E07"""
    os.mkfifo(place.folder / "p")
    place.link("zero", "/dev/zero")
    with pytest.raises(Forbidden, match="not a regular file"):
        analyze(place, "p")
    with pytest.raises(Forbidden):
        analyze(place, "zero")
    with pytest.raises(NotFound):
        analyze(place, "none")


@not_as_root
def test_an_unreadable_file_is_forbidden(place: Place) -> None:
    place.write("a", "x", mode=0)
    with pytest.raises(Forbidden, match="permission denied"):
        analyze(place, "a")


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"target": 5},
        {"target": "a", "depth": -1},
        {"target": "a", "depth": 11},
        {"target": "a", "depth": "1"},
        {"target": "a", "dept": 1},
        {"target": ""},
    ],
)
def test_arguments_that_make_no_sense_are_invalid(place: Place, args: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgs):
        place.run(AnalyzeHandler(), args)


def test_the_work_is_done_in_a_process_of_its_own(place: Place, processes: ProcessExecutor) -> None:
    place.write("a.py", PYTHON)
    call = AnalyzeHandler().prepare({"target": "a.py", "depth": 2}, place.scope)
    there = strict(bytes(processes.run(call, place.job())))
    assert there == analyze(place, "a.py", 2)
    with pytest.raises(NotFound, match="no such file"):
        processes.run(AnalyzeHandler().prepare({"target": "b"}, place.scope), place.job())

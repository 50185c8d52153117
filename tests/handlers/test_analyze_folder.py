"""analyze_file on a folder: a bounded tree, totals, and no way to go round in circles."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from fileipc.handlers import analyze_tree
from fileipc.handlers.analyze import AnalyzeHandler

from .harness import Place, not_as_root


def analyze(place: Place, target: str = ".", depth: int = 1) -> dict[str, Any]:
    result: dict[str, Any] = place.run(AnalyzeHandler(), {"target": target, "depth": depth})
    return result


@pytest.fixture
def tree(place: Place) -> Place:
    place.write("a.py", "# c\nx = 1\n")
    place.write("src/b.py", "x = 1\n\n")
    place.write("src/deep/c.js", "// c\n")
    place.write("data.bin", b"\0" * 100)
    place.write(".git/config", "x")
    place.write(".ipc/commands/x.json", "{}")
    return place


def test_depth_0_is_identity(tree: Place) -> None:
    result = analyze(tree, "src", 0)
    assert (result["path"], result["kind"], result["entries"]) == ("src", "directory", 2)
    assert "tree" not in result
    assert analyze(tree, ".", 0)["entries"] == 3


def test_depth_is_the_number_of_levels_shown_and_totals_cover_all(tree: Place) -> None:
    one = analyze(tree, ".", 1)
    assert one["tree"] == [
        {"name": "a.py", "kind": "file", "size": 10, "language": "Python", "lines": 2},
        {"name": "data.bin", "kind": "file", "size": 100},
        {"name": "src", "kind": "directory", "files": 2, "bytes": 12},
    ]
    two = analyze(tree, ".", 2)
    assert [node["name"] for node in two["tree"][2]["children"]] == ["b.py", "deep"]
    assert two["tree"][2]["children"][1] == {
        "name": "deep",
        "kind": "directory",
        "files": 1,
        "bytes": 5,
    }
    for result in (one, two):
        assert result["totals"] == {
            "files": 4,
            "directories": 2,
            "bytes": 122,
            "lines": 5,
            "code": 2,
            "comments": 2,
            "blanks": 1,
            "binary": 1,
            "symlinks": 0,
            "special": 0,
            "unreadable": 0,
            "repeated": 0,
        }
        assert [(one["language"], one["files"], one["code"]) for one in result["languages"]] == [
            ("Python", 2, 2),
            ("JavaScript", 1, 0),
        ]
        assert result["truncated"] is False


def test_the_largest_files_are_named_from_the_project(place: Place) -> None:
    for number in range(60):
        place.write(f"sub/d{number % 7}/f{number}", b"x" * number)
    largest = analyze(place, "sub", 1)["largest"]
    assert [one["size"] for one in largest] == list(range(59, 49, -1))
    assert largest[0]["path"] == "sub/d3/f59"


def test_loops_of_links_end_and_count_each_file_once(place: Place) -> None:
    """E09"""
    place.write("one/a", "x\n")
    place.write("two/b", "x\n")
    place.link("one/loop", "..")
    place.link("one/self", "self")
    place.link("one/two", "../two")
    place.link("two/one", "../one")
    result = analyze(place, ".", 10)
    assert (result["totals"]["files"], result["totals"]["symlinks"]) == (2, 4)
    assert result["notes"] == ["4 symlinks were not followed"]
    assert result["truncated"] is False


def test_a_file_with_several_names_is_counted_once(place: Place) -> None:
    """E09"""
    path = place.write("a", "x\n")
    (place.folder / "sub").mkdir()
    os.link(path, place.folder / "sub/b")
    totals = analyze(place, ".")["totals"]
    assert (totals["files"], totals["repeated"], totals["lines"]) == (1, 1, 1)


def test_special_files_are_counted_and_never_opened(place: Place) -> None:
    """E07"""
    os.mkfifo(place.folder / "p")
    result = analyze(place, ".")
    assert result["totals"]["special"] == 1
    assert result["tree"] == [{"name": "p", "kind": "fifo"}]


@not_as_root
def test_what_cannot_be_read_is_counted(place: Place) -> None:
    place.write("a", "x", mode=0)
    place.write("sub/b", "x")
    (place.folder / "sub").chmod(0)
    try:
        assert analyze(place, ".")["totals"]["unreadable"] == 2
    finally:
        (place.folder / "sub").chmod(0o700)


def test_a_limit_of_entries_ends_the_walk_and_says_so(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyze_tree, "MAX_ENTRIES", 10)
    for number in range(30):
        place.write(f"d{number % 3}/f{number}", "x")
    result = analyze(place, ".", 5)
    assert result["truncated"] is True
    assert result["notes"] == ["only the first 10 entries were looked at"]
    assert result["totals"]["files"] + result["totals"]["directories"] == 10


def test_exactly_as_many_entries_as_the_limit_is_no_truncation(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyze_tree, "MAX_ENTRIES", 3)
    for number in range(3):
        place.write(f"f{number}", "x")
    assert analyze(place, ".")["truncated"] is False


def test_the_tree_is_cut_and_the_totals_are_not(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyze_tree, "MAX_NODES", 2)
    for number in range(5):
        place.write(f"d/f{number}", "x\n")
    result = analyze(place, ".", 3)
    assert len(result["tree"][0]["children"]) == 1
    assert result["totals"]["files"] == 5
    assert result["truncated"] is True


def test_a_limit_of_text_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyze_tree, "MAX_TEXT", 1000)
    for number in range(3):
        place.write(f"f{number}", "x\n" * 400)
    result = analyze(place, ".")
    assert result["truncated"] is True
    assert "1000 bytes of text" in result["notes"][0]


def test_names_that_are_not_utf8_are_shown_as_text(place: Place) -> None:
    with open(os.fsencode(place.folder) + b"/b\xff.py", "wb") as file:
        file.write(b"x\n")
    os.mkdir(os.fsencode(place.folder) + b"/d\xfe")
    result = analyze(place, ".", 2)
    assert [node["name"] for node in result["tree"]] == ["b\ufffd.py", "d\ufffd"]
    assert result["largest"][0]["path"] == "b\ufffd.py"


def test_a_very_deep_tree_is_walked(place: Place) -> None:
    here = os.open(place.folder, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("x", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=here))
    os.close(here)
    totals = analyze(place, ".")["totals"]
    assert (totals["directories"], totals["files"]) == (300, 1)


def test_a_tree_that_changes_under_the_walk_breaks_nothing(place: Place) -> None:
    done = threading.Event()
    started = threading.Event()

    def churn() -> None:
        number = 0
        while not done.is_set():
            number += 1
            path = place.write(f"d{number % 5}/f", "x\n")
            path.unlink()
            path.parent.rmdir()
            path.parent.symlink_to("/etc")
            path.parent.unlink()
            started.set()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        assert started.wait(10)
        for _ in range(50):
            assert analyze(place, ".", 3)["totals"]["files"] <= 5
    finally:
        done.set()
        thread.join()

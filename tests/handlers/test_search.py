"""search_pattern finds what ripgrep finds, in a documented shape and in bounded memory."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from fileipc.errors import Forbidden, HandlerError, InvalidArgs, NotFound, Outcome
from fileipc.handlers.search import SearchHandler, find_ripgrep
from fileipc.handlers.search_stream import BUDGET, MAX_LINE, MAX_TEXT, Matches

from .harness import Place, not_as_root

SEARCH = SearchHandler(find_ripgrep())


def search(place: Place, pattern: str, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = place.run(SEARCH, {"pattern": pattern, **more})
    result["matches"].sort(key=lambda match: (match["path"], match["line"]))
    return result


def paths(result: dict[str, Any]) -> list[str]:
    return [match["path"] for match in result["matches"]]


def test_a_match_tells_path_line_column_and_text(place: Place) -> None:
    place.write("src/a.py", "first\n  héllo world, world\n")
    result = search(place, "world")
    assert result["matches"] == [
        {
            "path": "src/a.py",
            "line": 2,
            "column": 9,
            "text": "  héllo world, world",
            "submatches": [[8, 13], [15, 20]],
        }
    ]
    assert (result["count"], result["files"], result["searched_files"]) == (1, 1, 1)
    assert (result["truncated"], result["warnings"]) == (False, [])


def test_nothing_found_is_an_answer_and_no_failure(place: Place) -> None:
    place.write("a", "text")
    result = search(place, "absent")
    assert (result["matches"], result["count"], result["truncated"]) == ([], 0, False)


def test_the_seeds_target_is_the_path(place: Place) -> None:
    place.write("one/a", "x")
    place.write("two/a", "x")
    assert paths(search(place, "x", target="one")) == ["one/a"]
    assert paths(search(place, "x", path="two/a")) == ["two/a"]
    assert paths(search(place, "x", path=str(place.folder / "two"))) == ["two/a"]


def test_context_is_given_before_and_after_each_match(place: Place) -> None:
    place.write("a", "\n".join(["one", "two", "HIT3", "HIT4", "five", "six", "seven", "HIT8"]))
    matches = search(place, "HIT", context=2)["matches"]
    assert [(m["before"], m["after"]) for m in matches] == [
        (["one", "two"], ["HIT4", "five"]),
        (["two", "HIT3"], ["five", "six"]),
        (["six", "seven"], []),
    ]


def test_context_does_not_cross_files(place: Place) -> None:
    place.write("a", "HIT\nrest of a\n")
    place.write("b", "start of b\nHIT\n")
    matches = search(place, "HIT", context=3)["matches"]
    assert [(m["before"], m["after"]) for m in matches] == [
        ([], ["rest of a"]),
        (["start of b"], []),
    ]


def test_the_options_do_what_they_say(place: Place) -> None:
    place.write("a.py", "a.c ABC abcd\n")
    place.write("b.txt", "a.c\n")
    place.write(".hidden", "a.c\n")
    place.write("sub/c.py", "a.c\n")
    assert paths(search(place, "abc", ignore_case=True)) == ["a.py"]
    assert paths(search(place, "bcd", word=True)) == []
    assert search(place, "a.c", fixed=True, path="a.py")["matches"][0]["submatches"] == [[0, 3]]
    assert paths(search(place, "a.c", glob="*.py")) == ["a.py", "sub/c.py"]
    assert paths(search(place, "a.c", glob=["*.py", "!sub/**"])) == ["a.py"]
    assert ".hidden" in paths(search(place, "a.c", hidden=True))
    assert ".hidden" not in paths(search(place, "a.c"))


def test_gitignore_is_honoured(place: Place) -> None:
    place.write(".git/HEAD", "x")
    place.write(".gitignore", "build/\n")
    place.write("build/a", "needle")
    place.write("src/a", "needle")
    assert paths(search(place, "needle")) == ["src/a"]
    assert paths(search(place, "needle", path="src")) == ["src/a"]


def test_the_ipc_and_git_folders_are_never_searched(place: Place) -> None:
    for folder in (".ipc/commands", ".git", "sub/.ipc", "sub/.git"):
        place.write(f"{folder}/a", "needle")
    for more in ({}, {"hidden": True}, {"hidden": True, "glob": [".ipc/**", ".git/**", "**"]}):
        assert paths(search(place, "needle", **more)) == []
    with pytest.raises(Forbidden):
        search(place, "needle", path=".ipc")


def test_a_root_of_another_name_is_never_searched(place: Place) -> None:
    place.write("que[ue/commands/a", "needle")
    place.write("other/que[ue/commands/a", "needle")
    scope = type(place.scope)(str(place.folder / "que[ue"), str(place.folder))
    place.scope = scope
    assert paths(search(place, "needle")) == ["other/que[ue/commands/a"]


@pytest.mark.parametrize("pattern", ["--files", "-e", "--pre=id", "$(id)", "-"])
def test_a_pattern_is_never_an_option(place: Place, pattern: str) -> None:
    place.write("a", f"x {pattern} y")
    assert paths(search(place, pattern, fixed=True)) == ["a"]


def test_a_glob_is_never_an_option(place: Place) -> None:
    place.write("--files", "needle")
    assert paths(search(place, "needle", glob="--files")) == ["--files"]


def test_a_path_that_looks_like_an_option_is_a_path(place: Place) -> None:
    place.write("--pre=id/--x", "needle")
    assert paths(search(place, "needle", path="--pre=id")) == ["--pre=id/--x"]
    assert paths(search(place, "needle", path="--pre=id/--x")) == ["--pre=id/--x"]


def test_a_configuration_of_ripgrep_is_not_read(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("a", "needle")
    place.write("rc", "--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(place.folder / "rc"))
    assert paths(search(place, "needle")) == ["a"]


@pytest.mark.parametrize("pattern", ["(a", "[z", "a{2,1}", r"\p{nope}"])
def test_an_invalid_pattern_is_explained(place: Place, pattern: str) -> None:
    with pytest.raises(InvalidArgs, match="error:") as caught:
        search(place, pattern)
    assert caught.value.actual_outcome is Outcome.NOT_STARTED
    assert pattern in caught.value.message


def test_the_explanation_of_an_endless_pattern_is_its_reason(place: Place) -> None:
    for pattern in ("(" * 2000 + ")" * 2000, "(" * 30_000 + "a" * 30_000):
        with pytest.raises(InvalidArgs) as caught:
            search(place, pattern)
        assert caught.value.message.startswith("error: ")
        assert len(caught.value.message) < 300
    with pytest.raises(InvalidArgs, match="unclosed character class") as caught:
        search(place, "x", glob="a" * 4000 + "[")
    assert len(caught.value.message) < 1100


@pytest.mark.parametrize(
    "more",
    [
        {"pattern": ""},
        {"pattern": "a\nb"},
        {"pattern": "a\0b"},
        {"pattern": "x" * 70_000},
        {"pattern": "\ud800"},
        {"pattern": "x", "glob": "["},
        {"pattern": "x", "glob": ""},
        {"pattern": "x", "glob": ["!"]},
        {"pattern": "x", "glob": ["a"] * 101},
        {"pattern": "x", "context": 21},
        {"pattern": "x", "max_matches": 0},
        {"pattern": "x", "max_matches": 100_001},
        {"pattern": "x", "patern": "y"},
        {"path": "."},
    ],
)
def test_arguments_that_make_no_sense_are_invalid(place: Place, more: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgs):
        place.run(SEARCH, more)


def test_a_missing_place_is_not_found(place: Place) -> None:
    with pytest.raises(NotFound):
        search(place, "x", path="none")


def test_a_catastrophic_pattern_ends(place: Place) -> None:
    """E06"""
    place.write("a", "a" * 40 + "!\n")
    assert search(place, "(a+)+$")["count"] == 0


def test_special_files_in_the_tree_are_skipped_and_refused_as_a_target(place: Place) -> None:
    """E07"""
    place.write("sub/a", "needle")
    os.mkfifo(place.folder / "sub/fifo")
    place.link("sub/zero", "/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(place.folder / "sub", os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{here}/socket")
        finally:
            os.close(here)
        assert paths(search(place, "needle")) == ["sub/a"]
    with pytest.raises(Forbidden, match="not a regular file"):
        search(place, "needle", path="sub/fifo")


def test_loops_of_links_end_and_count_each_file_once(place: Place) -> None:
    """E09"""
    place.write("one/a", "needle")
    place.link("one/loop", "..")
    place.link("one/self", "self")
    place.link("one/two", "../two")
    place.link("two/one", "../one")
    assert paths(search(place, "needle", hidden=True)) == ["one/a"]


def test_nothing_outside_the_project_is_read(place: Place) -> None:
    """E11"""
    evil = place.folder.parent / "p-evil"
    evil.mkdir()
    (evil / "x").write_text("needle")
    place.write("a", "needle")
    place.link("leak", str(evil / "x"))
    place.link("dir", str(evil))
    assert paths(search(place, "needle")) == ["a"]
    for path in ("..", "../p-evil", str(evil), "leak", "dir", "dir/x", "../p-evil/x"):
        with pytest.raises(Forbidden, match="outside the project"):
            search(place, "needle", path=path)


def test_a_target_swapped_after_the_check_is_still_the_one_that_was_checked(place: Place) -> None:
    """E11"""
    evil = place.folder.parent / "p-evil"
    evil.mkdir()
    (evil / "x").write_text("needle of another")
    place.write("d/x", "needle of mine")
    call = SEARCH.prepare({"pattern": "needle", "path": "d"}, place.scope)
    single = SEARCH.prepare({"pattern": "needle", "path": "d/x"}, place.scope)
    (place.folder / "d").rename(place.folder / "aside")
    place.link("d", str(evil))

    class Prepared:
        name, isolation, idempotent, timeout = "x", SEARCH.isolation, True, 1.0

        def __init__(self, call: Any) -> None:
            self.call = call

        def prepare(self, args: object, scope: object) -> Any:
            return self.call

    for one in (call, single):
        result = place.run(Prepared(one), {})
        assert [match["text"] for match in result["matches"]] == ["needle of mine"]


def test_text_and_names_that_are_not_utf8_are_shown_and_marked(place: Place) -> None:
    place.write("a", b"caf\xe9 needle\n")
    odd = os.fsencode(place.folder) + b"/b\xff"
    with open(odd, "wb") as file:
        file.write(b"needle\n")
    matches = search(place, "needle")["matches"]
    assert [(m["path"], m["text"], m["column"], m["lossy"]) for m in matches] == [
        ("a", "caf\ufffd needle", 6, True),
        ("b\ufffd", "needle", 1, True),
    ]


def test_the_limit_cuts_and_says_so_only_where_something_is_missing(place: Place) -> None:
    place.write("a", "x\n" * 10)
    full = search(place, "x", max_matches=10)
    assert (full["count"], full["truncated"], full["searched_files"]) == (10, False, 1)
    cut = search(place, "x", max_matches=9)
    assert (cut["count"], cut["truncated"], cut["searched_files"]) == (9, True, None)


def test_a_long_line_is_shown_around_its_first_match(place: Place) -> None:
    place.write("a", "x" * 100_000 + "needle" + "y" * 100_000 + "\n")
    (match,) = search(place, "needle")["matches"]
    (start, end) = match["submatches"][0]
    assert match["text"][start:end] == "needle"
    assert match["column"] == 100_001
    assert match["cut"] is True
    assert len(match["text"]) == MAX_TEXT


def test_a_line_beyond_all_measure_is_skipped_and_counted(place: Place) -> None:
    place.write("a", "needle" + "x" * (MAX_LINE + 10) + "\nneedle\n")
    result = search(place, "needle")
    assert [match["line"] for match in result["matches"]] == [2]
    assert result["skipped"] == {"long_lines": 1}


def test_a_flood_of_matches_stays_within_the_budget(place: Place) -> None:
    place.write("a", ("needle" + "x" * 4000 + "\n") * 4000)
    result = search(place, "needle", max_matches=100_000)
    assert result["truncated"] is True
    assert len(json.dumps(result)) < 1.1 * BUDGET


@not_as_root
def test_what_cannot_be_read_is_told_as_a_warning(place: Place) -> None:
    place.write("a", "needle")
    place.write("b", "needle", mode=0)
    result = search(place, "needle")
    assert paths(result) == ["a"]
    assert "Permission denied" in result["warnings"][0]


def test_without_ripgrep_nothing_is_started(place: Place) -> None:
    with pytest.raises(HandlerError, match="not installed") as caught:
        place.run(SearchHandler(None), {"pattern": "x"})
    assert caught.value.actual_outcome is Outcome.NOT_STARTED


def test_ripgrep_is_found_in_the_environment_of_the_interpreter() -> None:
    found = find_ripgrep()
    assert found is not None
    assert Path(found).name == "rg"


def test_the_stream_may_come_in_any_pieces() -> None:
    begin = {"type": "begin", "data": {"path": {"text": "./a"}}}
    match = {
        "type": "match",
        "data": {
            "path": {"text": "./a"},
            "lines": {"text": "needle\r\n"},
            "line_number": 7,
            "submatches": [{"match": {"text": "needle"}, "start": 0, "end": 6}],
        },
    }
    summary = {"type": "summary", "data": {"stats": {"searches": 3}}}
    stream = b"".join(json.dumps(one).encode() + b"\n" for one in (begin, match, summary))
    for size in (1, 7, 1000):
        matches = Matches(prefix=".", single=False, context=0, max_matches=5)
        assert all(matches.feed(stream[at : at + size]) for at in range(0, len(stream), size))
        assert matches.complete
        result = matches.result()
        assert result["matches"][0]["text"] == "needle"
        assert result["searched_files"] == 3


def test_what_is_not_of_the_stream_is_passed_over() -> None:
    matches = Matches(prefix=".", single=False, context=0, max_matches=5)
    assert matches.feed(b'garbage\n{"type": 5}\n{"type": "other", "data": {}}\n\n')
    assert matches.result()["count"] == 0

"""execute_script runs what the configuration allows, and says how it ended."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from typing import Any

import pytest

from fileipc.config.settings import ScriptSettings
from fileipc.errors import Forbidden, InvalidArgs, NotFound, Outcome, ScriptFailed
from fileipc.executors.port import ChildCall
from fileipc.handlers.script import ScriptHandler, matches

from .harness import Place

ALL = ScriptHandler(ScriptSettings(allow=("scripts/*", "deep/**/*.sh")))


def script(place: Place, text: str, name: str = "scripts/run.sh", mode: int = 0o755) -> str:
    place.write(name, text, mode)
    return name


def sh(place: Place, body: str, name: str = "scripts/run.sh") -> str:
    return script(place, f"#!/bin/sh\n{body}\n", name)


def test_a_script_is_run_in_the_project_with_arguments_and_input(place: Place) -> None:
    name = sh(place, 'pwd; echo "$#:$1:$2"; cat; echo problem >&2')
    args = {"script": name, "args": ["a b", "$(id); *"], "stdin": "given é\n"}
    result = place.run(ALL, args)
    assert result["stdout"] == f"{place.folder}\n2:a b:$(id); *\ngiven é\n"
    assert result["stderr"] == "problem\n"
    assert (result["exit_code"], result["signal"], result["truncated"]) == (0, None, False)
    assert result["stdout_bytes"] == len(result["stdout"].encode())
    assert result["stderr_bytes"] == 8
    assert result["duration_ms"] >= 0


def test_a_script_knows_its_own_folder(place: Place) -> None:
    name = sh(place, 'cat "$(dirname "$0")/beside"')
    place.write("scripts/beside", "found")
    assert place.run(ALL, {"target": name})["stdout"] == "found"


def test_a_script_ends_although_a_grandchild_holds_its_output(place: Place) -> None:
    """E01"""
    name = sh(place, "sleep 300 &\necho hi")
    result = place.run(ALL, {"script": name}, limit=20)
    assert (result["stdout"], result["exit_code"]) == ("hi\n", 0)


@pytest.mark.parametrize("body", ["yes | head -c 3000000", "head -c 3000000 /dev/urandom"])
def test_endless_output_is_counted_and_cut(place: Place, body: str) -> None:
    """E03"""
    result = place.run(ALL, {"script": sh(place, body)})
    assert result["truncated"] is True
    assert result["stdout_bytes"] == 3_000_000
    assert len(result["stdout"]) <= 256 * 1024


def test_only_the_listed_environment_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """E05"""
    monkeypatch.setenv("FAKE_API_KEY", "x")
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/x")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("PATH")
    name = script(place, "#!/usr/bin/env -S sh\n/usr/bin/env\n")
    seen = place.run(ALL, {"script": name})["stdout"]
    assert "TZ=UTC" in seen
    assert "PATH=/usr/local/bin:/usr/bin:/bin" in seen
    assert "FAKE_API_KEY" not in seen
    assert "NOTIFY_SOCKET" not in seen


def test_a_script_without_input_reads_an_empty_one(place: Place) -> None:
    """E05"""
    assert place.run(ALL, {"script": sh(place, "cat; echo end")})["stdout"] == "end\n"


def test_a_non_zero_exit_code_is_a_failure_with_all_the_output(place: Place) -> None:
    with pytest.raises(ScriptFailed, match="exit code 3") as caught:
        place.run(ALL, {"script": sh(place, "echo out; echo err >&2; exit 3")})
    details = caught.value.details
    assert (details["exit_code"], details["stdout"], details["stderr"]) == (3, "out\n", "err\n")
    assert caught.value.actual_outcome is Outcome.FINISHED


def test_a_signal_is_named(place: Place) -> None:
    with pytest.raises(ScriptFailed, match="SIGKILL") as caught:
        place.run(ALL, {"script": sh(place, "kill -9 $$")})
    assert (caught.value.details["signal"], caught.value.details["exit_code"]) == ("SIGKILL", None)


def test_output_that_is_not_utf8_is_text_all_the_same(place: Place) -> None:
    assert place.run(ALL, {"script": sh(place, r"printf 'a\377b'")})["stdout"] == "a\ufffdb"


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("scripts/*.sh", "scripts/a.sh", True),
        ("./scripts/*.sh", "scripts/a.sh", True),
        ("scripts/*.sh", "scripts/deep/a.sh", False),
        ("scripts/*.sh", "scripts/a.shx", False),
        ("scripts/*.sh", "other/scripts/a.sh", False),
        ("**/*.sh", "a.sh", True),
        ("**/*.sh", "x/y/a.sh", True),
        ("deep/**", "deep/x/y", True),
        ("deep/**", "deeper/x", False),
        ("a**b", "a/b", False),
        ("s?.sh", "s1.sh", True),
        ("s?.sh", "s/.sh", False),
        ("[ab].sh", "a.sh", True),
        ("[!ab].sh", "a.sh", False),
        ("[!ab].sh", "/.sh", False),
        ("[a-c].sh", "b.sh", True),
        ("[.sh", "[.sh", True),
        ("a.sh", "a.sh\n", False),
        ("a+.sh", "aa.sh", False),
        ("[]x].sh", "].sh", True),
        ("[z-a].sh", "b.sh", False),
        ("", "", True),
    ],
)
def test_an_allow_pattern_stays_within_one_folder_unless_it_says_otherwise(
    pattern: str, path: str, fits: bool
) -> None:
    assert matches(pattern, path) is fits


def test_what_is_not_allowed_is_refused(place: Place) -> None:
    sh(place, "echo no", "other/run.sh")
    sh(place, "echo no", "scripts/sub/run.sh")
    for name in ("other/run.sh", "scripts/sub/run.sh", "scripts/../other/run.sh"):
        with pytest.raises(Forbidden, match="does not allow"):
            place.run(ALL, {"script": name})
    nothing = ScriptHandler(ScriptSettings())
    with pytest.raises(Forbidden, match="does not allow"):
        place.run(nothing, {"script": sh(place, "echo no")})


def test_a_link_with_an_allowed_name_does_not_allow_its_target(place: Place) -> None:
    """E11"""
    sh(place, "echo no", "other/run.sh")
    place.link("scripts/inner.sh", "../other/run.sh")
    place.link("scripts/outer.sh", "/bin/sh")
    with pytest.raises(Forbidden, match="does not allow"):
        place.run(ALL, {"script": "scripts/inner.sh"})
    with pytest.raises(Forbidden, match="outside the project"):
        place.run(ALL, {"script": "scripts/outer.sh"})


def test_no_pattern_looks_at_a_part_of_the_path_more_often_than_it_has_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []

    def counted(part: str, pattern: str) -> bool:
        looked.append(part)
        return fnmatchcase(part, pattern)

    monkeypatch.setattr("fileipc.handlers.script.fnmatchcase", counted)
    pattern, path = "**/a/" * 20 + "b", "a/" * 60 + "c"
    assert not matches(pattern, path)
    assert matches(pattern, "a/" * 60 + "b")
    assert len(looked) <= 2 * 21 * 61


def test_a_script_outside_the_project_is_refused(place: Place) -> None:
    """E11"""
    everything = ScriptHandler(ScriptSettings(allow=("**",)))
    evil = place.folder.parent / "p-evil"
    evil.mkdir()
    (evil / "x").write_text("#!/bin/sh\n")
    place.link("way", str(evil))
    for name in ("../p-evil/x", str(evil / "x"), "way/x", ".ipc/commands/x"):
        with pytest.raises(Forbidden):
            place.run(everything, {"script": name})


def refused(place: Place, name: str, **args: Any) -> ScriptFailed:
    with pytest.raises(ScriptFailed) as caught:
        ALL.prepare({"script": name, **args}, place.scope)
    assert caught.value.actual_outcome is Outcome.NOT_STARTED
    return caught.value


def test_a_missing_script_is_not_found(place: Place) -> None:
    with pytest.raises(NotFound):
        ALL.prepare({"script": "scripts/none.sh"}, place.scope)


def test_special_files_are_not_scripts(place: Place) -> None:
    (place.folder / "scripts/sub").mkdir(parents=True)
    os.mkfifo(place.folder / "scripts/fifo", 0o755)
    for name in ("scripts/sub", "scripts/fifo"):
        with pytest.raises(Forbidden, match="not a regular file"):
            ALL.prepare({"script": name}, place.scope)


def test_a_script_without_execute_permission_says_so(place: Place) -> None:
    failure = refused(place, script(place, "#!/bin/sh\n", mode=0o644))
    assert failure.details["reason"] == "not_executable"
    assert "chmod +x" in failure.message


@pytest.mark.parametrize(
    ("text", "reason", "says"),
    [
        ("echo hi\n", "bad_format", "no interpreter line"),
        ("", "bad_format", "no interpreter line"),
        ("#!/bin/sh\r\necho hi\r\n", "bad_interpreter", "CR LF"),
        ("#!/usr/bin/env python3\r\n", "bad_interpreter", "CR LF"),
        ("#!/no/such/shell\n", "bad_interpreter", "/no/such/shell"),
        ("#!/etc\n", "bad_interpreter", "/etc"),
        ("#!sh\n", "bad_interpreter", "absolute"),
        ("#!\n", "bad_interpreter", "names no interpreter"),
        ("#!/usr/bin/env no-such-program\n", "bad_interpreter", "no-such-program"),
        ("#!/usr/bin/env -S\n", "bad_interpreter", "env"),
        ("#!/bin/sh " + "x" * 400, "bad_interpreter", "longer than"),
    ],
)
def test_a_script_that_cannot_start_says_why(
    place: Place, text: str, reason: str, says: str
) -> None:
    failure = refused(place, script(place, text))
    assert failure.details["reason"] == reason
    assert says in failure.message


def test_a_program_needs_no_interpreter_line(place: Place) -> None:
    with open("/bin/true", "rb") as file:
        place.write("scripts/true", file.read(), 0o755)
    assert place.run(ALL, {"script": "scripts/true"})["exit_code"] == 0


@pytest.mark.parametrize(
    "args",
    [["x" * 200_000], ["x" * 100_000] * 11, ["a\0b"], ["\ud800"]],
)
def test_arguments_that_no_program_can_be_given_are_invalid(place: Place, args: list[str]) -> None:
    with pytest.raises(InvalidArgs, match="args"):
        ALL.prepare({"script": sh(place, "true"), "args": args}, place.scope)


@pytest.mark.parametrize(
    "more", [{"args": "a"}, {"args": [1]}, {"stdin": 5}, {"stdin": "\0"}, {"shell": True}]
)
def test_arguments_of_another_shape_are_invalid(place: Place, more: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgs):
        ALL.prepare({"script": sh(place, "true"), **more}, place.scope)


def test_the_call_carries_the_limits_of_the_configuration(place: Place) -> None:
    settings = ScriptSettings(allow=("**",), timeout=5, memory=1 << 30, output=100)
    handler = ScriptHandler(settings)
    call = handler.prepare({"script": sh(place, "seq 1000")}, place.scope)
    assert isinstance(call, ChildCall)
    assert (handler.timeout, call.memory, call.capture) == (5, 1 << 30, 100)
    result = place.run(handler, {"script": "scripts/run.sh"})
    assert len(result["stdout"]) == 100
    assert result["truncated"] is True

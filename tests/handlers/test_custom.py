"""Handlers that a project brings itself."""

from __future__ import annotations

import os
from typing import Any

import pytest

from fileipc.errors import HandlerError, Outcome, ScriptFailed, TooLarge
from fileipc.executors.port import ChildCall, ProcessCall
from fileipc.executors.process import ProcessExecutor
from fileipc.handlers.exec_handler import ExecHandler
from fileipc.handlers.python_handler import PythonHandler

from .harness import Place

ECHO = """#!/usr/bin/env python3
import json, os, sys
request = json.load(sys.stdin)
print(json.dumps({**request, "argv": sys.argv[1:], "cwd": os.getcwd()}))
"""


def handler(*command: str, **settings: Any) -> ExecHandler:
    return ExecHandler(name="render", command=command, env=("PATH",), **settings)


def shell(body: str) -> ExecHandler:
    return handler("sh", "-c", body)


def test_a_program_gets_the_command_as_json_and_answers_in_json(place: Place) -> None:
    place.write("bin/render", ECHO, 0o755)
    result = place.run(handler("bin/render", "--json"), {"size": 3, "name": "é"})
    assert result == {
        "type": "render",
        "args": {"size": 3, "name": "é"},
        "project": str(place.folder),
        "argv": ["--json"],
        "cwd": str(place.folder),
    }


@pytest.mark.parametrize(("printed", "value"), [("[1, 2]", [1, 2]), ("null", None), ("1\n", 1)])
def test_any_json_value_is_a_result(place: Place, printed: str, value: Any) -> None:
    assert place.run(shell(f"echo '{printed}'"), {}) == value


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("true", "printed nothing"),
        ("echo hello", "must print its result as JSON"),
        ("echo NaN", "must print its result as JSON"),
        ("""echo '{"a": 1'""", "must print its result as JSON"),
        (r"""echo '"\ud800"'""", "must print its result as JSON"),
        (r"printf '\377'", "not UTF-8"),
        ("echo 1e999", "out of range"),
        ("printf '%1000d' 1 | tr ' ' 1", "400 digits"),
        ("echo 1; echo 2", "must print its result as JSON"),
        ("echo '{}'; exit 4", "exit code 4"),
        ("kill -9 $$", "SIGKILL"),
    ],
)
def test_anything_else_is_a_failure_with_the_end_of_stderr(
    place: Place, body: str, says: str
) -> None:
    with pytest.raises(HandlerError, match=says) as caught:
        place.run(shell(f"echo reason >&2; {body}"), {})
    assert caught.value.details["stderr"] == "reason\n"
    assert caught.value.actual_outcome is Outcome.FINISHED


def test_a_result_beyond_the_limit_is_a_failure(place: Place) -> None:
    noisy = handler("sh", "-c", "head -c 5000 /dev/zero", limit=1000)
    with pytest.raises(TooLarge, match="5000 bytes; the limit is 1000") as caught:
        place.run(noisy, {})
    assert caught.value.actual_outcome is Outcome.FINISHED


def test_what_a_program_prints_is_passed_on_as_it_is(place: Place) -> None:
    text = """{ "a": 1.50,\n "a": [1e2, "\\u00e9"]}"""
    place.write("answer", f"  {text}\n")
    call = shell("cat answer").prepare({}, place.scope)
    assert isinstance(call, ChildCall)
    assert bytes(place.children.run(call, place.job())) == text.encode()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_a_result_may_come_in_every_encoding_that_a_command_may(
    place: Place, encoding: str
) -> None:
    place.write("answer", '["é"]'.encode(encoding))
    assert place.run(shell("cat answer"), {}) == ["é"]


def test_a_python_handler_gets_no_more_memory_than_the_configuration_says(
    place: Place, processes: ProcessExecutor
) -> None:
    place.write("greedy.py", "def f(args):\n    return len(bytearray(args['bytes']))\n")
    limited = PythonHandler(name="s", target="greedy:f", memory=1 << 30)
    for count, fits in ((1 << 20, True), (1 << 31, False)):
        call = limited.prepare({"bytes": count}, place.scope)
        if fits:
            assert bytes(processes.run(call, place.job())) == b"%d" % count
        else:
            with pytest.raises(HandlerError, match="MemoryError"):
                processes.run(call, place.job())


def test_programs_that_cannot_be_started_say_why(place: Place) -> None:
    place.write("bin/plain", "x", 0o644)
    for command, reason in (
        ("bin/none", "not_found"),
        ("no-such-program", "not_found"),
        ("bin", "not_found"),
        ("./bin/plain", "not_executable"),
    ):
        with pytest.raises(ScriptFailed) as caught:
            place.run(handler(command), {})
        assert caught.value.details["reason"] == reason
        assert caught.value.actual_outcome is Outcome.NOT_STARTED


def test_a_program_sees_only_the_listed_environment(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E05"""
    monkeypatch.setenv("FAKE_API_KEY", "x")
    body = """env | grep -c KEY | sed 's/^/{"n": /; s/$/}/'"""
    assert place.run(shell(body), {}) == {"n": 0}


def test_a_relative_program_is_looked_for_in_the_project_and_not_in_path(place: Place) -> None:
    call = handler("sh").prepare({}, place.scope)
    assert isinstance(call, ChildCall)
    assert os.path.isabs(call.argv[0])
    with pytest.raises(ScriptFailed):
        handler("./sh").prepare({}, place.scope)


def test_a_python_handler_is_called_with_its_arguments_and_the_project_on_the_path(
    place: Place,
) -> None:
    call = PythonHandler(name="s", target="shop.ipc:f").prepare({"a": 1}, place.scope)
    assert call == ProcessCall(
        "shop.ipc:f", {"a": 1}, path=(str(place.folder),), single_argument=True
    )

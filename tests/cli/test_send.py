from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fileipc.cli.show import show
from fileipc.client.core import new_id

from ..client.fake_daemon import FakeDaemon, pending
from .conftest import Run


def responses(root: Path) -> list[str]:
    return os.listdir(root / "responses")


def test_a_completed_command_prints_its_result_as_json_and_nothing_else(
    fake: FakeDaemon, root: Path, run: Run
) -> None:
    done = run("send", "ping")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{\n  "pong": true\n}\n'
    assert responses(root) == []


def test_values_are_json_where_they_can_be_and_text_otherwise(fake: FakeDaemon, run: Run) -> None:
    words = ["a=3", "b=true", "c=[1,2]", "d=plain text", 'e="3"', "f=", "g=x=y", "h=NaN", "i=null"]
    done = run("send", "echo", *words)
    assert json.loads(done.stdout) == {
        "a": 3,
        "b": True,
        "c": [1, 2],
        "d": "plain text",
        "e": "3",
        "f": "",
        "g": "x=y",
        "h": "NaN",
        "i": None,
    }


def test_arguments_come_from_json_a_file_or_stdin_and_pairs_are_added(
    fake: FakeDaemon, run: Run, tmp_path: Path
) -> None:
    expected = {"a": 1, "b": 2}
    (tmp_path / "args.json").write_text('{"a": 1}')
    assert json.loads(run("send", "echo", "b=2", "--args", '{"a": 1}').stdout) == expected
    assert json.loads(run("send", "echo", "b=2", "--args=@args.json").stdout) == expected
    assert json.loads(run("send", "echo", "b=2", "--args=-", stdin='{"a": 1}').stdout) == expected


def test_options_reach_the_command(fake: FakeDaemon, run: Run) -> None:
    name = new_id()
    done = run(
        *("send", "ping", "--json", "--id", name.upper(), "--ttl", "2m", "--priority", "-7"),
        *("--meta", "who=me", "--meta", "n=1"),
    )
    response = json.loads(done.stdout)
    assert response["id"] == name
    assert response["meta"] == {"who": "me", "n": 1}
    assert (fake.seen[0].ttl, fake.seen[0].priority) == (120, -7)


def test_a_failed_command_says_code_message_and_what_to_do_on_stderr(
    fake: FakeDaemon, root: Path, run: Run
) -> None:
    done = run("send", "forbidden")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fileipc: forbidden: the configuration does not allow it\n")
    assert '"why": "no"' in done.stderr
    assert "safe to send it again" in done.stderr
    assert responses(root) == []


def test_json_prints_the_whole_response_on_one_line_failed_or_not(
    fake: FakeDaemon, run: Run
) -> None:
    for command, code, status in (("ping", 0, "completed"), ("forbidden", 1, "failed")):
        done = run("send", command, "--json")
        assert (done.returncode, done.stderr, done.stdout.count("\n")) == (code, "", 1)
        assert json.loads(done.stdout)["status"] == status


def test_nothing_from_a_response_can_drive_the_terminal(fake: FakeDaemon, run: Run) -> None:
    failed = run("send", "fail")
    assert "exit code 3\\x1b[31m" in failed.stderr
    echoed = run("send", "echo", "--args", '{"a": "\\u009b31m\\u001b"}')
    assert echoed.stdout.isascii()
    assert json.loads(echoed.stdout) == {"a": "\x9b31m\x1b"}


def test_output_is_utf_8_in_any_locale_and_lone_surrogates_stay_json(
    fake: FakeDaemon, root: Path, run: Run
) -> None:
    done = run("send", "echo", "a=ä€", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0
    assert fake.seen[0].args == {"a": "ä€"}
    sent = run("send", "silent", "--no-wait").stdout.strip()
    response = f'{{"id": "{sent}", "status": "completed", "result": "\\ud800"}}'
    (root / "responses" / f"{sent}.json").write_text(response)
    assert run("wait", sent).stdout == '"\\ud800"\n'


def test_without_a_daemon_nothing_is_sent_and_the_code_is_69(root: Path, run: Run) -> None:
    done = run("send", "ping")
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.startswith("fileipc: no daemon serves")
    assert "fileipc run --root" in done.stderr
    assert pending(root) == []


def test_without_waiting_a_command_may_wait_for_its_daemon_on_disk(root: Path, run: Run) -> None:
    done = run("send", "ping", "--no-wait")
    assert done.returncode == 0
    assert pending(root) == [done.stdout.strip()]
    assert "no daemon serves" in done.stderr


def test_with_a_daemon_no_wait_prints_the_id_alone(fake: FakeDaemon, run: Run) -> None:
    done = run("send", "silent", "--no-wait")
    assert (done.returncode, done.stderr, len(done.stdout)) == (0, "", 37)


def test_no_wait_with_json_prints_the_id_as_json(fake: FakeDaemon, root: Path, run: Run) -> None:
    done = run("send", "silent", "--no-wait", "--json")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert json.loads(done.stdout) == {"id": pending(root)[0]}


@pytest.mark.parametrize(
    ("details", "shown"),
    [
        ({"known": ["ping", "cancel"]}, False),
        ({}, False),
        ({"known": ["ping", "echo"]}, True),
        ({"field": "ping", "signal": None}, True),
        ({"field": "know"}, True),
    ],
)
def test_details_are_shown_where_the_message_lacks_them(
    details: dict[str, object], shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    error = {
        "code": "unknown_type",
        "message": "no type x; known are: ping, cancel",
        "outcome": "not_started",
        "details": details,
    }
    show({"status": "failed", "error": error, "result": None}, root="", whole=False)
    said = capsys.readouterr().err
    assert said.startswith("fileipc: unknown_type: no type x; known are: ping, cancel\n")
    assert ("{" in said) is shown


@pytest.mark.parametrize("args", [["echo", b"a=\xff"], [b"\xff"], ["echo", b"--meta=a=\xff"]])
def test_an_argument_that_is_not_utf_8_is_told(
    fake: FakeDaemon, root: Path, run: Run, args: list[str | bytes]
) -> None:
    done = run("send", *map(os.fsdecode, args))
    assert (done.returncode, done.stdout, pending(root)) == (2, "", [])
    assert "\\udcff' is not UTF-8" in done.stderr


def test_a_wait_in_vain_takes_the_command_back_and_the_code_is_124(
    fake: FakeDaemon, root: Path, run: Run
) -> None:
    done = run("send", "silent", "--timeout", "100ms")
    assert (done.returncode, done.stdout) == (124, "")
    assert "had not started and was withdrawn" in done.stderr
    assert pending(root) == []


def test_a_preview_tells_where_the_whole_is_and_leaves_it_there(
    fake: FakeDaemon, root: Path, run: Run
) -> None:
    done = run("send", "large")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert json.loads(Path(line.split()[-1]).read_text()) == ["x"] * 1000


def test_ctrl_c_takes_back_what_has_not_started(fake: FakeDaemon, root: Path) -> None:
    code, words = _interrupt("silent", fake, root)
    assert code == 130
    assert "had not started and was withdrawn" in words
    assert pending(root) == []


def test_ctrl_c_leaves_what_has_started_and_says_how_to_stop_it(
    fake: FakeDaemon, root: Path
) -> None:
    code, words = _interrupt("hang", fake, root)
    (sent,) = pending(root)
    assert code == 130
    assert f"fileipc cancel {sent}" in words


def _interrupt(command: str, fake: FakeDaemon, root: Path) -> tuple[int, str]:
    child = subprocess.Popen(
        [sys.executable, "-m", "fileipc", "send", command, "--root", str(root)],
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 30
    while not fake.seen or (command == "hang" and not responses(root)):
        assert time.monotonic() < end
        time.sleep(0.005)
    child.send_signal(signal.SIGINT)
    _, words = child.communicate(timeout=30)
    assert "Traceback" not in words
    return child.returncode, words


@pytest.mark.parametrize(
    "args",
    [
        ["send"],
        ["send", "ping", "word"],
        ["send", "ping", "=3"],
        ["send", "ping", "a=1", "a=2"],
        ["send", "ping", "--tll", "3"],
        ["send", "ping", "--ttl"],
        ["send", "ping", "--ttl", "3x"],
        ["send", "ping", "--ttl", "0"],
        ["send", "ping", "--ttl", "nan"],
        ["send", "ping", "--timeout", "-1"],
        ["send", "ping", "--priority", "high"],
        ["send", "ping", "--id", "cmd-001"],
        ["send", "ping", "--args", "{"],
        ["send", "ping", "--args", "[]"],
        ["send", "ping", "--args", "@missing.json"],
        ["send", ""],
    ],
)
def test_a_command_line_without_sense_is_a_usage_error_and_sends_nothing(
    fake: FakeDaemon, root: Path, run: Run, args: list[str]
) -> None:
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fileipc: ")
    assert "Traceback" not in done.stderr
    assert fake.seen == []
    assert pending(root) == []


def test_without_a_root_the_code_is_66(tmp_path: Path, run: Run) -> None:
    done = run("send", "ping")
    assert (done.returncode, done.stdout) == (66, "")
    assert "fileipc init" in done.stderr


def test_a_reader_that_went_away_is_no_traceback(fake: FakeDaemon, root: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "fileipc", "send", "ping", "--root", str(root)],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
    assert len(responses(root)) == 1  # not read by anybody, so not removed


def test_on_a_terminal_the_result_is_coloured_and_progress_is_shown(
    fake: FakeDaemon, root: Path
) -> None:
    shown = _on_a_terminal(fake, root, "slow")
    assert "\x1b[" in shown
    assert "slow" in shown
    assert "done" in shown


def _on_a_terminal(fake: FakeDaemon, root: Path, *args: str) -> str:
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "fileipc", "send", *args, "--root", str(root)],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            chunk = os.read(leader, 4096)
        except OSError:  # the last one that held the other side is gone
            break
        if not chunk:
            break
        shown += chunk
        if b"slow" in shown:
            fake.go_on.set()
    os.close(leader)
    assert child.wait(30) == 0
    return shown.decode()

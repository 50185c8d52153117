"""Programs: how they start, what they print, how they end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fileipc.errors import (
    Cancelled,
    CommandFailure,
    HandlerError,
    Interrupted,
    NotFound,
    Outcome,
    ScriptFailed,
    Timeout,
    TooLarge,
)
from fileipc.executors.child import ChildExecutor
from fileipc.executors.port import ChildEnd, Stop

from .support import job, program, running, shell, stop_once_written, value, written_pid

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def executor() -> Iterator[ChildExecutor]:
    executor = ChildExecutor()
    yield executor
    executor.close()


def executable(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_output_and_exit_code_come_back(executor: ChildExecutor) -> None:
    end = value(executor.run(shell("echo out; echo err >&2; exit 7"), job()))
    assert end == {
        "exit_code": 7,
        "signal": None,
        "stdout": "out\n",
        "stderr": "err\n",
        "stdout_bytes": 4,
        "stderr_bytes": 4,
        "enough": False,
    }


def test_a_signal_is_told_by_its_name(executor: ChildExecutor) -> None:
    end = value(executor.run(shell("kill -SEGV $$"), job()))
    assert (end["exit_code"], end["signal"]) == (None, "SIGSEGV")


def test_without_stdin_a_reader_ends_at_once(executor: ChildExecutor) -> None:
    assert value(executor.run(program("cat"), job()))["stdout"] == ""


def test_stdin_arrives_whole_while_output_flows(executor: ChildExecutor) -> None:
    given = b"0123456789abcde\n" * 64 * 1024
    end = value(executor.run(program("cat", stdin=given, capture=2 * MIB), job()))
    assert end["stdout"].encode() == given


def test_stdin_that_nobody_reads_blocks_nobody(executor: ChildExecutor) -> None:
    assert value(executor.run(program("true", stdin=b"x" * MIB), job()))["exit_code"] == 0


def test_only_the_given_environment_is_seen(
    executor: ChildExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_API_KEY", "secret")
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/notify")
    fresh = ChildExecutor()
    call = program("env", env={"PATH": os.defpath, "GIVEN": "yes é"})
    for one in (fresh, executor):
        lines = value(one.run(call, job()))["stdout"].splitlines()
        assert sorted(lines) == ["GIVEN=yes é", f"PATH={os.defpath}"]
    fresh.close()


def test_a_program_has_its_own_session_and_no_descriptor_but_the_three(
    executor: ChildExecutor,
) -> None:
    with Path("/dev/null").open() as open_here:
        os.set_inheritable(open_here.fileno(), True)
        end = value(executor.run(shell("ls /proc/self/fd; ps -o pid=,sid= -p $$"), job()))
    numbers = end["stdout"].split()
    assert numbers[:3] == ["0", "1", "2"]
    assert len(numbers[:-2]) == 4  # the fourth is that of `ls` itself
    assert numbers[-2] == numbers[-1]


def test_signals_are_as_a_shell_would_have_them(executor: ChildExecutor) -> None:
    script = "grep -E '^Sig(Ign|Blk):' /proc/self/status | cut -f 2"
    masks = value(executor.run(shell(script), job()))["stdout"].split()
    # The C library ignores its own signals from 32 on in what posix_spawn starts.
    assert [int(mask, 16) & 0x7FFFFFFF for mask in masks] == [0, 0]


def test_passed_descriptors_become_three_four_and_so_on(
    executor: ChildExecutor, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("first ")
    (tmp_path / "b").write_text("second")
    with (tmp_path / "a").open() as one, (tmp_path / "b").open() as two:
        call = shell("cat <&3 <&4; cat /dev/fd/3", pass_fds=(one.fileno(), two.fileno()))
        assert value(executor.run(call, job()))["stdout"] == "secondfirst "


def test_the_working_folder_may_be_a_passed_descriptor(
    executor: ChildExecutor, tmp_path: Path
) -> None:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        call = program("pwd", "-P", cwd="/proc/self/fd/3", pass_fds=(fd,))
        assert value(executor.run(call, job()))["stdout"].strip() == str(tmp_path.resolve())
    finally:
        os.close(fd)


def test_arguments_arrive_byte_for_byte(executor: ChildExecutor) -> None:
    odd = ["", " ", "a b", "$HOME", "*", "é", "line\nend", "\udcff"]
    call = program("printf", "%s|", *odd, finish=lambda end: list(end.stdout))
    assert bytes(value(executor.run(call, job()))) == b"| |a b|$HOME|*|\xc3\xa9|line\nend|\xff|"


def test_a_flood_is_cut_to_the_cap_and_counted(executor: ChildExecutor) -> None:
    before = psutil.Process().memory_info().rss
    call = shell("yes | head -c 200000000; head -c 100000000 /dev/zero >&2", capture=1000)
    end = value(executor.run(call, job()))
    assert (end["stdout_bytes"], end["stderr_bytes"]) == (200_000_000, 100_000_000)
    assert (len(end["stdout"]), len(end["stderr"])) == (1000, 1000)
    assert psutil.Process().memory_info().rss - before < 20 * MIB


def test_an_endless_flood_is_killed_at_the_deadline_with_the_end_of_its_output(
    executor: ChildExecutor,
) -> None:
    with pytest.raises(Timeout) as caught:
        executor.run(shell("yes; echo never", capture=1000), job(0.3))
    details = caught.value.details
    assert details["stdout"].endswith("y\n")
    assert len(details["stdout"]) <= 4096 < details["stdout_bytes"]


class Lines:
    """A sink that has enough after some bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0

    def feed(self, chunk: bytes) -> bool:
        self.taken += len(chunk)
        return self.taken < self.limit


def test_a_sink_gets_the_output_instead(executor: ChildExecutor) -> None:
    sink = Lines(MIB)
    end = value(executor.run(shell("printf 12345", sink=sink), job()))
    assert (sink.taken, end["stdout"], end["stdout_bytes"], end["enough"]) == (5, "", 5, False)


def test_a_sink_that_has_enough_ends_the_program(executor: ChildExecutor) -> None:
    sink = Lines(100_000)
    end = value(executor.run(program("yes", sink=sink), job()))
    assert end["enough"] is True
    assert end["signal"] == "SIGTERM"
    assert sink.taken >= 100_000


class Broken:
    def feed(self, chunk: bytes) -> bool:
        raise ValueError("cannot take it")


def test_a_sink_that_fails_ends_the_program_and_is_told(
    executor: ChildExecutor, tmp_path: Path
) -> None:
    script = f"echo $$ > {tmp_path}/pid; echo x; exec sleep 300"
    with pytest.raises(HandlerError, match="cannot take it"):
        executor.run(shell(script, sink=Broken()), job())
    assert not running(written_pid(tmp_path / "pid"))


def test_what_finish_raises_is_the_answer(executor: ChildExecutor) -> None:
    def refuse(end: ChildEnd) -> None:
        raise NotFound(f"exit code {end.exit_code}", outcome=Outcome.FINISHED)

    with pytest.raises(NotFound, match="exit code 0"):
        executor.run(program("true", finish=refuse), job())
    with pytest.raises(HandlerError, match="ZeroDivisionError"):
        executor.run(program("true", finish=lambda end: 1 / 0), job())
    with pytest.raises(TooLarge):
        executor.run(program("true", finish=lambda end: "x" * 99), job(result_limit=9))


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda folder: str(folder / "missing"), "not_found"),
        (lambda folder: "no-such-program-anywhere", "not_found"),
        (lambda folder: executable(folder / "s", "#!/bin/sh\n", 0o644), "not_executable"),
        (lambda folder: str(folder), "not_executable"),
        (lambda folder: executable(folder / "s", "#!/no/such/shell\n"), "bad_interpreter"),
        (lambda folder: executable(folder / "s", "just text\n"), "bad_format"),
        (lambda folder: executable(folder / "s", ""), "bad_format"),
        (lambda folder: "with\0nul", "invalid"),
    ],
)
def test_a_program_that_does_not_start_says_why(
    executor: ChildExecutor, tmp_path: Path, prepare: object, reason: str
) -> None:
    assert callable(prepare)
    with pytest.raises(ScriptFailed) as caught:
        executor.run(program(prepare(tmp_path)), job())
    assert caught.value.details["reason"] == reason
    assert caught.value.actual_outcome is Outcome.NOT_STARTED


def test_an_argument_that_the_kernel_refuses_is_named(executor: ChildExecutor) -> None:
    with pytest.raises(ScriptFailed) as caught:
        executor.run(program("echo", "x" * 200_000), job())
    assert caught.value.details["reason"] == "arguments_too_long"


def test_a_missing_working_folder_is_named(executor: ChildExecutor, tmp_path: Path) -> None:
    with pytest.raises(ScriptFailed) as caught:
        executor.run(program("true", cwd=str(tmp_path / "gone")), job())
    assert caught.value.details["reason"] == "no_folder"


def test_the_memory_cap_holds_for_the_program_and_what_it_starts(executor: ChildExecutor) -> None:
    # The soft limit is there from the start, the hard one a moment later.
    script = """
        ulimit -v; sh -c 'ulimit -v'
        while [ "$(ulimit -Hv)" = unlimited ]; do sleep 0.01; done; ulimit -Hv
    """
    end = value(executor.run(shell(script, memory=256 * MIB), job()))
    assert end["stdout"].split() == [str(256 * 1024)] * 3
    assert value(executor.run(shell("ulimit -v"), job()))["stdout"] == "unlimited\n"


def test_term_comes_first_so_a_script_may_tidy_up(executor: ChildExecutor, tmp_path: Path) -> None:
    stop = Stop()
    script = f"""
        trap 'echo tidied > {tmp_path}/tidied; exit 0' TERM
        echo $$ > {tmp_path}/pid
        while :; do sleep 0.01; done
    """
    watcher = stop_once_written(stop, "cancelled", tmp_path / "pid")
    with pytest.raises(Cancelled):
        executor.run(shell(script, grace=20.0), job(stop=stop))
    watcher.join()
    assert (tmp_path / "tidied").exists()


def test_what_ignores_term_is_killed_after_its_grace(
    executor: ChildExecutor, tmp_path: Path
) -> None:
    script = f"trap '' TERM HUP INT; echo $$ > {tmp_path}/pid; while :; do sleep 1; done"
    with pytest.raises(Timeout) as caught:
        executor.run(shell(script, grace=0.1), job(0.3))
    assert caught.value.actual_outcome is Outcome.UNKNOWN
    assert not running(written_pid(tmp_path / "pid"))


def test_a_stopped_program_hears_term_too(executor: ChildExecutor, tmp_path: Path) -> None:
    script = f"trap 'echo heard > {tmp_path}/heard; exit' TERM; kill -STOP $$; exit"
    with pytest.raises(Timeout):
        executor.run(shell(script, grace=20.0), job(0.3))
    assert (tmp_path / "heard").exists()


@pytest.mark.parametrize(
    ("reason", "failure"), [("cancelled", Cancelled), ("interrupted", Interrupted)]
)
def test_a_stop_before_the_start_starts_nothing(
    executor: ChildExecutor, tmp_path: Path, reason: str, failure: type[CommandFailure]
) -> None:
    stop = Stop()
    stop.request(reason)
    with pytest.raises(failure) as caught:
        executor.run(shell(f"touch {tmp_path}/ran"), job(stop=stop))
    assert caught.value.actual_outcome is Outcome.NOT_STARTED
    assert not (tmp_path / "ran").exists()


def test_a_stop_after_the_end_touches_nothing(executor: ChildExecutor) -> None:
    stop = Stop()
    executor.run(program("true"), job(stop=stop))
    read, write = os.pipe()
    os.set_blocking(read, False)
    stop.request("cancelled")
    with pytest.raises(BlockingIOError):
        os.read(read, 1)
    os.close(read)
    os.close(write)


def test_a_long_attempt_is_reported_once(executor: ChildExecutor) -> None:
    reports: list[object] = []
    executor.run(program("sleep", "0.5"), job(report=reports.append))
    executor.run(program("true"), job(report=reports.append))
    assert reports == [None]

"""What a program leaves behind is ended, and the executor itself leaves nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fileipc.errors import CommandFailure, Crashed, Interrupted, Outcome, Timeout
from fileipc.executors.child import ChildExecutor

from .support import job, program, running, shell, until, value, written_pid


@pytest.fixture
def executor() -> Iterator[ChildExecutor]:
    executor = ChildExecutor()
    yield executor
    executor.close()


def minders() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "minder.py" in _command(child)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


LEFT_BEHIND = {
    "a background job that holds stdout": "sh -c 'echo $$ > {pid}; exec sleep 300' &",
    "a session of its own": "setsid sh -c 'echo $$ > {pid}; exec sleep 300' &",
    "a double fork without environment": (
        "(env -i /usr/bin/setsid /bin/sh -c 'echo $$ > {pid}; exec /bin/sleep 300' "
        "</dev/null >/dev/null 2>&1 &) &"
    ),
    "one that ignores TERM": "setsid sh -c 'trap \"\" TERM; echo $$ > {pid}; sleep 300; :' &",
}


@pytest.mark.parametrize("kind", LEFT_BEHIND)
def test_what_a_script_leaves_behind_is_ended_with_it(
    executor: ChildExecutor, tmp_path: Path, kind: str
) -> None:
    pid_file = tmp_path / "pid"
    script = LEFT_BEHIND[kind].format(pid=pid_file) + (
        f"\nwhile [ ! -s {pid_file} ]; do sleep 0.01; done; echo hi"
    )
    end = value(executor.run(shell(script), job(60)))
    assert (end["stdout"], end["exit_code"]) == ("hi\n", 0)
    assert not running(written_pid(pid_file))


def test_a_timeout_ends_the_whole_tree(executor: ChildExecutor, tmp_path: Path) -> None:
    script = f"""
        setsid sh -c 'echo $$ > {tmp_path}/own; exec sleep 300' &
        sh -c 'trap "" TERM; echo $$ > {tmp_path}/deaf; sleep 300; :' &
        wait
    """
    with pytest.raises(Timeout):
        executor.run(shell(script), job(0.5))
    assert not running(written_pid(tmp_path / "own"))
    assert not running(written_pid(tmp_path / "deaf"))


def test_output_that_comes_shortly_after_the_script_is_kept(executor: ChildExecutor) -> None:
    end = value(executor.run(shell("(sleep 0.02; echo late) & echo early"), job()))
    assert end["stdout"] == "early\nlate\n"


def test_a_minder_is_used_again_and_shrink_ends_it() -> None:
    before = len(minders())
    executor = ChildExecutor(idle_timeout=0)
    for _ in range(3):
        executor.run(program("true"), job())
    assert len(minders()) == before + 1
    executor.shrink()
    assert until(lambda: len(minders()) == before)
    assert value(executor.run(program("true"), job()))["exit_code"] == 0
    executor.close()


def test_an_idle_minder_that_died_is_replaced(executor: ChildExecutor) -> None:
    before = {minder.pid for minder in minders()}
    executor.run(program("true"), job())
    for minder in minders():
        if minder.pid not in before:
            minder.kill()
            minder.wait()
    assert value(executor.run(program("true"), job()))["exit_code"] == 0


def test_a_minder_that_dies_takes_its_program_with_it(
    executor: ChildExecutor, tmp_path: Path
) -> None:
    script = f"echo $PPID > {tmp_path}/minder; echo $$ > {tmp_path}/pid; exec sleep 300"

    def kill_minder() -> None:
        written_pid(tmp_path / "pid")
        os.kill(written_pid(tmp_path / "minder"), signal.SIGKILL)

    killer = threading.Thread(target=kill_minder)
    killer.start()
    with pytest.raises(Crashed) as caught:
        executor.run(shell(script), job())
    killer.join()
    assert caught.value.actual_outcome is Outcome.UNKNOWN
    assert until(lambda: not running(written_pid(tmp_path / "pid")))


STANDING = {
    "at once": "kill -STOP $PPID; sleep 300",
    "when it is told to end": "trap 'kill -STOP $PPID' TERM; while :; do sleep 0.01; done",
}


@pytest.mark.parametrize("when", STANDING)
def test_a_program_that_stops_its_minder_is_ended_at_the_deadline_with_all_it_started(
    executor: ChildExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setattr("fileipc.executors.program._SLACK", 3600.0)  # the patience is not used up
    script = f"""
        setsid sh -c 'echo $$ > {tmp_path}/own; exec sleep 300' &
        while [ ! -s {tmp_path}/own ]; do sleep 0.01; done
        echo $PPID > {tmp_path}/minder; echo $$ > {tmp_path}/pid; echo ready
        {STANDING[when]}
    """
    with pytest.raises(Timeout) as caught:
        executor.run(shell(script, grace=1.0), job(1.0))
    assert caught.value.details["stdout"] == "ready\n"
    pids = [written_pid(tmp_path / name) for name in ("own", "minder", "pid")]
    assert [pid for pid in pids if running(pid)] == []
    assert value(executor.run(program("true"), job()))["exit_code"] == 0


def test_a_program_that_kills_its_minder_is_told_what_may_be_left(
    executor: ChildExecutor, tmp_path: Path
) -> None:
    script = f"echo $$ > {tmp_path}/pid; echo last words; kill -KILL $PPID; exec sleep 300"
    with pytest.raises(Crashed, match="may still run") as caught:
        executor.run(shell(script), job())
    assert caught.value.details["stdout"] == "last words\n"
    assert until(lambda: not running(written_pid(tmp_path / "pid")))


def test_the_end_interrupts_what_runs_and_leaves_nothing(tmp_path: Path) -> None:
    before = len(minders())
    executor = ChildExecutor()
    caught: list[CommandFailure] = []

    def run() -> None:
        try:
            executor.run(shell(f"echo $$ > {tmp_path}/pid; exec sleep 300"), job())
        except CommandFailure as failure:
            caught.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    pid = written_pid(tmp_path / "pid")
    executor.close()
    thread.join(20)
    assert [type(failure) for failure in caught] == [Interrupted]
    assert not running(pid)
    assert until(lambda: len(minders()) == before)
    with pytest.raises(Interrupted) as refused:
        executor.run(program("true"), job())
    assert refused.value.actual_outcome is Outcome.NOT_STARTED


def test_a_hundred_scripts_a_third_killed_a_third_forking_away_leave_nothing() -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    mark = f"30{os.getpid()}"
    executor = ChildExecutor()
    failures: list[str] = []

    def run(first: int) -> None:
        for number in range(first, 102, 3):
            if number // 3 % 3 == 0:
                _expect(failures, executor, "exit 0", 30.0, None)
            elif number // 3 % 3 == 1:
                _expect(failures, executor, f"sleep {mark}", 0.02, Timeout)
            else:
                _expect(failures, executor, f"(setsid sleep {mark} &) & exit 0", 30.0, None)

    threads = [threading.Thread(target=run, args=(first,)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert [p for p in psutil.process_iter() if mark in _command(p)] == []
    zombies = [
        child
        for child in psutil.Process().children(recursive=True)
        if child.status() == psutil.STATUS_ZOMBIE
    ]
    assert zombies == []
    executor.close()
    assert until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)


def _expect(
    failures: list[str],
    executor: ChildExecutor,
    script: str,
    limit: float,
    failure: type[CommandFailure] | None,
) -> None:
    try:
        end = value(executor.run(shell(script), job(limit)))
    except CommandFailure as error:
        if failure is None or not isinstance(error, failure):
            failures.append(f"{script}: {error!r}")
    else:
        if failure is not None or end["exit_code"] != 0:
            failures.append(f"{script}: {end}")

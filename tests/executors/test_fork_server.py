"""The fork server is stopped or killed: calls that run go on, and new workers come all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path

import pytest

from fileipc.errors import Cancelled, CommandFailure, Crashed, Interrupted, Outcome, Timeout
from fileipc.executors import fork_server, sweep
from fileipc.executors.port import ProcessCall, Stop
from fileipc.executors.process import ProcessExecutor

from .support import HERE, job, running, stop_once_written, until, value, work, written_pid

SOURCE = str(Path(HERE).parents[1])
OTHER = ProcessCall("os:getpid", {})  # of another path, so of another worker

EXITING_PROGRAM = """
import sys
sys.path.append({source!r})
from tests.executors.support import job, work
from fileipc.executors.process import ProcessExecutor

if __name__ == "__main__":
    ProcessExecutor().run(work("signals_its_parent", number={number}), job())
    print("over")
"""


@pytest.fixture
def executor() -> Iterator[ProcessExecutor]:
    executor = ProcessExecutor()
    yield executor
    executor.close()


def server() -> int:
    pid = getattr(forkserver, "_forkserver")._forkserver_pid  # noqa: B009
    assert isinstance(pid, int)
    return pid


@pytest.fixture
def standing(
    executor: ProcessExecutor, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.MonkeyPatch]:
    """A fork server that does not answer, and that nobody can see standing still."""
    executor.run(work("add", a=1, b=1), job())
    monkeypatch.setattr(sweep, "stopped", lambda _process: False)
    pid = server()
    os.kill(pid, signal.SIGSTOP)
    yield monkeypatch
    if server() == pid:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_handler_that_stops_or_kills_the_fork_server_stops_no_other_call(
    executor: ProcessExecutor, number: int
) -> None:
    pid = value(executor.run(work("signals_its_parent", number=number), job()))
    assert value(executor.run(OTHER, job())) != pid
    assert value(executor.run(work("where"), job()))["pid"] == pid


def test_a_call_that_runs_while_the_fork_server_dies_comes_to_its_end(
    executor: ProcessExecutor, tmp_path: Path
) -> None:
    go, pid_file = tmp_path / "go", tmp_path / "pid"
    results: list[str] = []

    def run() -> None:
        call = work("waits_for", pid_file=str(pid_file), go=str(go))
        results.append(value(executor.run(call, job())))

    thread = threading.Thread(target=run)
    thread.start()
    pid = written_pid(pid_file)
    os.kill(server(), signal.SIGKILL)
    assert value(executor.run(OTHER, job())) != pid
    go.touch()
    thread.join(20)
    assert results == ["went on"]
    assert value(executor.run(work("where"), job()))["pid"] == pid


def test_a_worker_without_its_fork_server_is_killed_at_the_deadline_and_replaced(
    executor: ProcessExecutor, tmp_path: Path
) -> None:
    executor.run(work("signals_its_parent", number=signal.SIGKILL), job())
    pid_file = tmp_path / "pid"
    with pytest.raises(Timeout):
        executor.run(work("sleeps", pid_file=str(pid_file)), job(0.4))
    assert not running(written_pid(pid_file))
    assert value(executor.run(work("add", a=1, b=2), job())) == 3


def test_a_death_that_the_fork_server_cannot_tell_of_is_noticed_and_told_honestly(
    executor: ProcessExecutor,
) -> None:
    with pytest.raises(Crashed, match="how is not known") as caught:
        executor.run(work("stops_its_parent_and_exits"), job())
    assert caught.value.details == {}
    assert value(executor.run(work("add", a=1, b=2), job())) == 3


def test_a_fork_server_that_does_not_answer_is_replaced(
    executor: ProcessExecutor, standing: pytest.MonkeyPatch
) -> None:
    standing.setattr(fork_server, "_LATE", 0.3)
    before = server()
    assert value(executor.run(OTHER, job())) > 0
    assert server() != before


def test_nobody_waits_for_a_fork_server_past_deadline_cancel_or_end(
    executor: ProcessExecutor, standing: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    standing.setattr(fork_server, "_LATE", 3600.0)
    with pytest.raises(Timeout) as late:
        executor.run(OTHER, job(0.3))
    assert late.value.actual_outcome is Outcome.NOT_STARTED

    stop = Stop()
    (tmp_path / "now").write_text("1\n")
    watcher = stop_once_written(stop, "cancelled", tmp_path / "now")
    with pytest.raises(Cancelled) as cancelled:
        executor.run(OTHER, job(3600, stop=stop))
    watcher.join()
    assert cancelled.value.actual_outcome is Outcome.NOT_STARTED

    other = ProcessExecutor()
    caught: list[CommandFailure] = []

    def run() -> None:
        try:
            other.run(OTHER, job(3600))
        except CommandFailure as failure:
            caught.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    assert until(lambda: bool(other._launches))
    standing.setattr("fileipc.executors.process._CLOSE_TIMEOUT", 0.1)
    other.close()
    thread.join(20)
    assert [(type(one), one.actual_outcome) for one in caught] == [
        (Interrupted, Outcome.NOT_STARTED)
    ]


def test_a_worker_that_came_too_late_serves_the_next_call(
    executor: ProcessExecutor, standing: pytest.MonkeyPatch
) -> None:
    standing.setattr(fork_server, "_LATE", 3600.0)
    stop = Stop()
    thread = threading.Timer(0.1, stop.request, ("cancelled",))
    thread.start()
    with pytest.raises(Cancelled):
        executor.run(OTHER, job(stop=stop))
    os.kill(server(), signal.SIGCONT)
    assert until(lambda: len(executor._idle) == 2)
    assert value(executor.run(OTHER, job())) > 0
    assert len(executor._idle) == 2


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_the_program_ends_whatever_became_of_the_fork_server(tmp_path: Path, number: int) -> None:
    script = tmp_path / "program.py"
    script.write_text(EXITING_PROGRAM.format(source=SOURCE, number=int(number)))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("over\n", 0), done.stderr

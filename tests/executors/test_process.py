"""Handlers in processes: what comes back, whatever they do."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fileipc.errors import (
    Cancelled,
    CommandFailure,
    Crashed,
    HandlerError,
    InternalError,
    Interrupted,
    NotFound,
    Outcome,
    Timeout,
    TooLarge,
)
from fileipc.executors.port import ProcessCall, Stop
from fileipc.executors.process import ProcessExecutor

from .support import HERE, job, running, stop_once_written, until, value, work, written_pid


@pytest.fixture(scope="module")
def executor() -> Iterator[ProcessExecutor]:
    executor = ProcessExecutor()
    yield executor
    executor.close()


def pid_of_worker(executor: ProcessExecutor) -> int:
    pid: int = value(executor.run(work("where"), job()))["pid"]
    return pid


def test_a_result_comes_back_as_json(executor: ProcessExecutor) -> None:
    assert bytes(executor.run(work("add", a=1, b=2), job())) == b"3"


def test_a_custom_handler_gets_its_arguments_as_one_dict(executor: ProcessExecutor) -> None:
    call = ProcessCall(
        target="work_in_workers:whole",
        arguments={"class": "a keyword", "n": [1]},
        path=(HERE,),
        single_argument=True,
    )
    assert value(executor.run(call, job())) == {"class": "a keyword", "n": [1]}


def test_a_worker_is_used_again(executor: ProcessExecutor) -> None:
    assert pid_of_worker(executor) == pid_of_worker(executor)


def test_a_worker_stands_apart_from_the_daemon(
    executor: ProcessExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/notify")
    fresh = ProcessExecutor()
    try:
        seen = value(fresh.run(work("where"), job(project=str(tmp_path))))
    finally:
        fresh.close()
    assert seen["session"] == seen["group"] == seen["pid"]
    assert seen["cwd"] == str(tmp_path)
    assert seen["path"][0] == HERE
    assert seen["notify"] is None
    assert seen["safe_path"] is None
    assert seen["stdin"] == ""


def test_what_a_handler_prints_is_no_part_of_the_result(executor: ProcessExecutor) -> None:
    assert value(executor.run(work("speak"), job())) == "quiet"


def test_values_that_json_lacks_become_text(executor: ProcessExecutor) -> None:
    assert value(executor.run(work("odd"), job())) == {
        "nan": "NaN",
        "bytes": "/wA=",
        "date": "2026-05-17",
        "uuid": "00000000-0000-0000-0000-000000000001",
        "set": [1],
    }


def test_a_result_without_a_json_form_is_a_handler_error(executor: ProcessExecutor) -> None:
    with pytest.raises(HandlerError, match="no JSON form") as caught:
        executor.run(work("thing"), job())
    assert caught.value.actual_outcome is Outcome.FINISHED


def test_a_large_result_comes_back_whole(executor: ProcessExecutor) -> None:
    assert len(bytes(executor.run(work("long", size=3_000_000), job()))) == 3_000_002


def test_a_result_over_the_limit_is_too_large_and_has_run(executor: ProcessExecutor) -> None:
    with pytest.raises(TooLarge) as caught:
        executor.run(work("long", size=5000), job(result_limit=4096))
    assert caught.value.actual_outcome is Outcome.FINISHED
    assert caught.value.details == {"bytes": 5002, "limit": 4096}


def test_an_exception_is_told_with_its_name_message_and_place(executor: ProcessExecutor) -> None:
    with pytest.raises(HandlerError) as caught:
        executor.run(work("fails"), job())
    assert caught.value.message == "ValueError: bad \\ud800 luck"
    assert "work_in_workers.py" in caught.value.details["traceback"]
    assert "worker_process.py" not in caught.value.details["traceback"]


def test_an_exception_that_cannot_be_shown_is_told_all_the_same(executor: ProcessExecutor) -> None:
    with pytest.raises(HandlerError, match="Speechless"):
        executor.run(work("fails_speechless"), job())


def test_a_command_failure_of_the_handler_passes_unchanged(executor: ProcessExecutor) -> None:
    with pytest.raises(NotFound, match="no such thing") as caught:
        executor.run(work("refuses"), job())
    assert caught.value.details == {"name": "x"}
    assert caught.value.actual_outcome is Outcome.FINISHED


def test_a_failure_of_no_known_code_is_a_handler_error(executor: ProcessExecutor) -> None:
    with pytest.raises(HandlerError, match="of no known code") as caught:
        executor.run(work("refuses_oddly"), job())
    assert caught.value.details == {}


@pytest.mark.parametrize(("kind", "name"), [("exit", "SystemExit"), ("interrupt", "Keyboard")])
def test_leaving_the_interpreter_is_a_handler_error(
    executor: ProcessExecutor, kind: str, name: str
) -> None:
    before = pid_of_worker(executor)
    with pytest.raises(HandlerError, match=name):
        executor.run(work("leaves", kind=kind), job())
    assert pid_of_worker(executor) == before


@pytest.mark.parametrize("target", ["no_such_module:f", "work_in_workers:no_such_function"])
def test_a_target_that_does_not_exist_is_a_handler_error(
    executor: ProcessExecutor, target: str
) -> None:
    with pytest.raises(HandlerError, match="no_such"):
        executor.run(ProcessCall(target=target, arguments={}, path=(HERE,)), job())


def test_arguments_that_cannot_be_sent_start_nothing(executor: ProcessExecutor) -> None:
    with pytest.raises(InternalError) as caught:
        executor.run(work("add", a=lambda: 1, b=2), job())
    assert caught.value.actual_outcome is Outcome.NOT_STARTED


@pytest.mark.parametrize("code", [0, 3])
def test_a_process_that_exits_is_a_crash_and_the_next_call_is_served(
    executor: ProcessExecutor, code: int
) -> None:
    with pytest.raises(Crashed) as caught:
        executor.run(work("dies", code=code), job())
    assert caught.value.actual_outcome is Outcome.UNKNOWN
    assert caught.value.details == {"exit_code": code}
    assert value(executor.run(work("add", a=1, b=1), job())) == 2


def test_a_segmentation_fault_is_a_crash_with_its_signal(executor: ProcessExecutor) -> None:
    with pytest.raises(Crashed, match="SIGSEGV") as caught:
        executor.run(work("segfaults"), job())
    assert caught.value.details == {"signal": "SIGSEGV"}


def test_a_child_that_a_handler_forgot_to_end_does_not_answer(executor: ProcessExecutor) -> None:
    assert value(executor.run(work("forks_and_forgets"), job())) == "parent"
    assert value(executor.run(work("add", a=2, b=2), job())) == 4


def test_memory_over_the_cap_is_a_handler_error_and_the_cap_ends_with_the_call(
    executor: ProcessExecutor,
) -> None:
    size = 600 * 1024 * 1024
    capped = ProcessCall(
        target="work_in_workers:hoards", arguments={"size": size}, path=(HERE,), memory=size
    )
    with pytest.raises(HandlerError, match="MemoryError"):
        executor.run(capped, job())
    assert value(executor.run(work("hoards", size=size), job())) == size


@pytest.mark.parametrize("kind", ["sleeps", "backtracks", "holds_the_lock", "ignores_term"])
def test_what_never_ends_is_killed_at_the_deadline(
    executor: ProcessExecutor, tmp_path: Path, kind: str
) -> None:
    pid_of_worker(executor)
    pid_file = tmp_path / "pid"
    with pytest.raises(Timeout, match="its limit of") as caught:
        executor.run(work(kind, pid_file=str(pid_file)), job(0.4))
    assert caught.value.actual_outcome is Outcome.UNKNOWN
    assert not running(written_pid(pid_file))
    assert value(executor.run(work("add", a=1, b=2), job())) == 3


def test_a_killed_handler_takes_its_children_with_it(
    executor: ProcessExecutor, tmp_path: Path
) -> None:
    stop = Stop()
    caught: list[CommandFailure] = []

    def run() -> None:
        try:
            executor.run(work("starts_children", folder=str(tmp_path)), job(stop=stop))
        except CommandFailure as failure:
            caught.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    pids = [written_pid(tmp_path / name) for name in ("child", "own", "orphan")]
    stop.request("cancelled")
    thread.join(20)
    assert [type(failure) for failure in caught] == [Cancelled]
    assert [pid for pid in pids if running(pid)] == []


@pytest.mark.parametrize(
    ("reason", "failure"), [("cancelled", Cancelled), ("interrupted", Interrupted)]
)
def test_a_stop_ends_the_attempt_with_its_reason(
    executor: ProcessExecutor, tmp_path: Path, reason: str, failure: type[CommandFailure]
) -> None:
    stop = Stop()
    pid_file = tmp_path / "pid"
    watcher = stop_once_written(stop, reason, pid_file)
    with pytest.raises(failure) as caught:
        executor.run(work("sleeps", pid_file=str(pid_file)), job(stop=stop))
    watcher.join()
    assert caught.value.actual_outcome is Outcome.UNKNOWN
    assert not running(written_pid(pid_file))


def test_a_stop_before_the_start_starts_nothing(executor: ProcessExecutor) -> None:
    stop = Stop()
    stop.request("cancelled")
    with pytest.raises(Cancelled) as caught:
        executor.run(work("add", a=1, b=2), job(stop=stop))
    assert caught.value.actual_outcome is Outcome.NOT_STARTED


def test_a_deadline_in_the_past_starts_nothing(executor: ProcessExecutor) -> None:
    with pytest.raises(Timeout) as caught:
        executor.run(work("add", a=1, b=2), job(-1))
    assert caught.value.actual_outcome is Outcome.NOT_STARTED


def test_a_long_attempt_is_reported_once(executor: ProcessExecutor, tmp_path: Path) -> None:
    reports: list[Any] = []
    with pytest.raises(Timeout):
        executor.run(
            work("sleeps", pid_file=str(tmp_path / "pid")), job(0.6, report=reports.append)
        )
    assert reports == [None]


def test_a_short_attempt_is_not_reported(executor: ProcessExecutor) -> None:
    pid_of_worker(executor)
    reports: list[Any] = []
    executor.run(work("add", a=1, b=2), job(report=reports.append))
    assert reports == []


def test_calls_run_side_by_side(executor: ProcessExecutor) -> None:
    results: list[int] = []

    def run(number: int) -> None:
        results.extend(value(executor.run(work("add", a=number, b=n), job())) for n in range(5))

    threads = [threading.Thread(target=run, args=(number,)) for number in (0, 10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(results) == sorted(a + n for a in (0, 10, 20) for n in range(5))


def test_modules_of_one_path_are_not_seen_by_calls_of_another(executor: ProcessExecutor) -> None:
    call = ProcessCall(target="os:getpid", arguments={})
    builtin = value(executor.run(call, job()))
    assert builtin != pid_of_worker(executor)
    assert value(executor.run(call, job())) == builtin


def test_the_next_call_after_an_idle_worker_died_is_served(executor: ProcessExecutor) -> None:
    pid = pid_of_worker(executor)
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not running(pid))
    assert pid_of_worker(executor) != pid

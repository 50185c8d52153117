"""A handler that does what it likes to its worker harms neither the daemon nor the next call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fileipc.errors import CommandFailure, Crashed, HandlerError, NotFound, Outcome
from fileipc.executors.answer import read
from fileipc.executors.process import ProcessExecutor

from .support import job, running, value, work, written_pid


@pytest.fixture(scope="module")
def executor() -> Iterator[ProcessExecutor]:
    executor = ProcessExecutor()
    yield executor
    executor.close()


def pid_of_worker(executor: ProcessExecutor) -> int:
    pid: int = value(executor.run(work("where"), job()))["pid"]
    return pid


ENGINE_ONLY = [
    "interrupted",
    "cancelled",
    "timeout",
    "expired",
    "stale",
    "busy",
    "duplicate",
    "crashed",
    "internal_error",
    "invalid_command",
    "unknown_type",
]

UNREADABLE: dict[str, Any] = {
    "nothing": None,
    "no tuple": [False, "ok", b"1"],
    "too short": (False, "ok"),
    "no flag": ("ok", b"1"),
    "text for bytes": (False, "ok", "1"),
    "no JSON": (False, "ok", b"{"),
    "no number of JSON": (False, "ok", b"NaN"),
    "a number that nobody can read": (False, "ok", b"1e999"),
    "no UTF-8": (False, "ok", b'"\xff"'),
    "two lines of JSON": (False, "ok", b"1\n2"),
    "endless depth": (False, "ok", b"[" * 100_000),
    "too large": (False, "ok", b'"' + b"x" * 5000 + b'"'),
    "a code that is no text": (False, "failed", 7, "m", "finished", b"{}"),
    "details that are no object": (False, "failed", "not_found", "m", "finished", b"[]"),
    "details without end": (False, "failed", "not_found", "m", "finished", b" " * 99_999 + b"{}"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_answer_out_of_form_is_a_crash_and_ends_the_worker(
    executor: ProcessExecutor, kind: str
) -> None:
    pid = value(executor.run(work("plants", answer=UNREADABLE[kind]), job()))
    with pytest.raises(Crashed, match="cannot be read") as caught:
        executor.run(work("add", a=1, b=1), job(result_limit=4096))
    assert caught.value.actual_outcome is Outcome.UNKNOWN
    assert not running(pid)
    assert value(executor.run(work("add", a=1, b=1), job())) == 2


def test_an_outcome_that_does_not_exist_is_unknown(executor: ProcessExecutor) -> None:
    answer = (True, "failed", "not_found", "lone \ud800", "excellent", b"{}")
    executor.run(work("plants", answer=answer), job())
    with pytest.raises(NotFound) as caught:
        executor.run(work("add", a=1, b=1), job())
    assert caught.value.message == "lone \\ud800"
    assert caught.value.actual_outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("code", ENGINE_ONLY)
def test_what_only_the_engine_can_say_is_a_handler_error(
    executor: ProcessExecutor, code: str
) -> None:
    with pytest.raises(HandlerError) as caught:
        executor.run(work("raises", code=code, outcome="not_started"), job())
    assert caught.value.message == "in its own words"
    assert caught.value.actual_outcome is Outcome.FINISHED


@pytest.mark.parametrize("outcome", [None, "not_started"])
def test_that_it_never_started_is_believed_of_no_handler_but_the_built_in_ones(
    executor: ProcessExecutor, outcome: str | None
) -> None:
    with pytest.raises(NotFound) as caught:
        executor.run(work("raises", code="not_found", outcome=outcome), job())
    assert caught.value.actual_outcome is Outcome.FINISHED
    answer = (False, "failed", "not_found", "m", "not_started", b"{}")
    failure, _used_up = read(answer, 100, trusted=True)
    assert isinstance(failure, CommandFailure)
    assert failure.actual_outcome is Outcome.NOT_STARTED


def test_a_flood_of_prints_blocks_nobody_and_reaches_nobody(
    executor: ProcessExecutor, capfd: pytest.CaptureFixture[str]
) -> None:
    call = work("prints", size=3_000_000, last="done", kind="returns")
    assert value(executor.run(call, job())) == "quiet"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("kind", "failure"), [("fails", HandlerError), ("exits", Crashed)])
def test_a_failure_tells_the_end_of_what_its_own_call_printed(
    executor: ProcessExecutor, kind: str, failure: type[CommandFailure]
) -> None:
    executor.run(work("prints", size=10, last="of the call before", kind="returns"), job())
    with pytest.raises(failure) as caught:
        executor.run(work("prints", size=0, last="last words\n", kind=kind), job())
    assert caught.value.details["output"] == "last words\n"
    with pytest.raises(failure) as caught:
        executor.run(work("prints", size=1_000_000, last="last words\n", kind=kind), job())
    assert caught.value.details["output"].endswith("x" * 4000 + "last words\n")
    assert len(caught.value.details["output"]) == 4096


@pytest.mark.parametrize(
    "kind", ["timer", "daemon thread", "child", "orphan", "alarm", "umask", "limit"]
)
def test_a_worker_in_which_something_was_left_behind_serves_no_other_call(
    executor: ProcessExecutor, tmp_path: Path, kind: str
) -> None:
    before = pid_of_worker(executor)
    call = work("leaves_behind", kind=kind, folder=str(tmp_path))
    assert value(executor.run(call, job())) == before
    assert not running(before)
    if kind == "child":
        assert not running(written_pid(tmp_path / "left"))
    assert pid_of_worker(executor) != before


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL", "SIGALRM"])
def test_a_signal_that_ends_the_process_is_told_by_its_name(
    executor: ProcessExecutor, how: str
) -> None:
    with pytest.raises(Crashed, match=how) as caught:
        executor.run(work("ends_itself", how=how), job())
    assert caught.value.details == {"signal": how}


def test_a_worker_that_lost_its_descriptors_is_told_as_such(executor: ProcessExecutor) -> None:
    with pytest.raises(Crashed, match="closed descriptors"):
        executor.run(work("ends_itself", how="descriptors"), job())

"""Workers come on demand and go when idle, at the end, and with a daemon that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fileipc.errors import CommandFailure, HandlerError, Interrupted, Outcome, Timeout
from fileipc.executors.port import ProcessCall
from fileipc.executors.process import ProcessExecutor

from .support import HERE, job, running, until, value, work, written_pid

SOURCE = str(Path(HERE).parents[1])

KILLED_PROGRAM = """
import sys, threading, time
sys.path.append({source!r})
from tests.executors.support import job, program, shell, work
from fileipc.executors.child import ChildExecutor
from fileipc.executors.process import ProcessExecutor

if __name__ == "__main__":
    folder = sys.argv[1]
    apart = f"setsid sh -c 'echo $$ > {{folder}}/apart; exec sleep 300' & wait"
    calls = [
        (ProcessExecutor(), work("holds_the_lock", pid_file=folder + "/lock")),
        (ProcessExecutor(), work("backtracks", pid_file=folder + "/regex")),
        (ChildExecutor(), shell(f"echo $$ > {{folder}}/script; exec sleep 300")),
        (ChildExecutor(), shell(apart)),
    ]
    for executor, call in calls:
        threading.Thread(target=executor.run, args=(call, job(300)), daemon=True).start()
    time.sleep(300)
"""

MAIN_PROGRAM = """
import sys
sys.path.append({source!r})
from tests.executors.support import job, value
from fileipc.executors.port import ProcessCall
from fileipc.executors.process import ProcessExecutor

def double(n):
    return n * 2

if __name__ == "__main__":
    executor = ProcessExecutor(import_main=True)
    print(value(executor.run(ProcessCall("__main__:double", {{"n": 4}}), job())))
    executor.close()
"""

UNGUARDED_PROGRAM = """
import sys
sys.path.append({source!r})
from tests.executors.support import job, value
from fileipc.executors.port import ProcessCall
from fileipc.executors.process import ProcessExecutor
print("loaded")
executor = ProcessExecutor()
print(value(executor.run(ProcessCall("os:getppid", {{}}), job())) > 0)
executor.close()
"""


def pid_of_worker(executor: ProcessExecutor) -> int:
    pid: int = value(executor.run(work("where"), job()))["pid"]
    return pid


def run_python(script: Path, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, str(script)], cwd=cwd, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_worker_exists_before_the_first_call() -> None:
    before = threading.active_count()
    executor = ProcessExecutor()
    assert threading.active_count() == before
    executor.close()


def test_shrink_ends_workers_that_are_idle_for_long_and_only_those() -> None:
    executor = ProcessExecutor(idle_timeout=3600)
    pid = pid_of_worker(executor)
    executor.shrink()
    assert pid_of_worker(executor) == pid
    executor.close()

    hasty = ProcessExecutor(idle_timeout=0)
    pid = pid_of_worker(hasty)
    hasty.shrink()
    assert until(lambda: not running(pid))
    assert pid_of_worker(hasty) != pid
    hasty.close()


def test_a_worker_is_replaced_after_its_number_of_calls() -> None:
    executor = ProcessExecutor(recycle=2)
    pids = [pid_of_worker(executor) for _ in range(4)]
    executor.close()
    assert pids[0] == pids[1] != pids[2] == pids[3]


def test_the_end_leaves_no_process_no_thread_and_no_descriptor() -> None:
    first = ProcessExecutor()  # what multiprocessing keeps for good exists from here on
    pid_of_worker(first)
    first.close()
    assert until(lambda: threading.active_count() == 1 or not _bury_threads())
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    executor = ProcessExecutor()
    pids = []
    for _ in range(3):
        pids.append(pid_of_worker(executor))
        with pytest.raises(CommandFailure):
            executor.run(work("dies", code=1), job())
    pids.append(pid_of_worker(executor))
    executor.close()
    assert not any(running(pid) for pid in pids)
    assert until(lambda: threading.active_count() <= threads)
    assert until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)


def _bury_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "fileipc-bury"]


def test_the_end_interrupts_what_runs(tmp_path: Path) -> None:
    executor = ProcessExecutor()
    caught: list[CommandFailure] = []

    def run() -> None:
        try:
            executor.run(work("sleeps", pid_file=str(tmp_path / "pid")), job())
        except CommandFailure as failure:
            caught.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    pid = written_pid(tmp_path / "pid")
    executor.close()
    thread.join(20)
    assert [type(failure) for failure in caught] == [Interrupted]
    assert not running(pid)


def test_after_the_end_nothing_is_started() -> None:
    executor = ProcessExecutor()
    executor.close()
    with pytest.raises(Interrupted) as caught:
        executor.run(work("add", a=1, b=1), job())
    assert caught.value.actual_outcome is Outcome.NOT_STARTED


def test_a_worker_that_stands_still_with_a_call_half_sent_is_killed_and_forgotten() -> None:
    executor = ProcessExecutor()
    threads = threading.active_count()
    pid = pid_of_worker(executor)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(Timeout):
        executor.run(work("whole", arguments={"a": "x" * 500_000}), job(0.3))
    assert not running(pid)
    executor.close()
    assert until(lambda: threading.active_count() <= threads)


def test_nothing_outlives_a_daemon_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(KILLED_PROGRAM.format(source=SOURCE))
    daemon = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        stderr=subprocess.DEVNULL,
    )
    try:
        names = ("lock", "regex", "script", "apart")
        pids = {name: written_pid(tmp_path / name) for name in names}
        assert all(running(pid) for pid in pids.values())
    finally:
        daemon.kill()
        daemon.wait()
    assert until(lambda: not any(running(pid) for pid in pids.values())), {
        name for name, pid in pids.items() if running(pid)
    }


def test_a_handler_of_the_embedding_program_itself_is_found(tmp_path: Path) -> None:
    script = tmp_path / "embedding.py"
    script.write_text(MAIN_PROGRAM.format(source=SOURCE))
    assert run_python(script) == "8\n"


def test_main_is_refused_where_no_program_embeds_the_executor() -> None:
    executor = ProcessExecutor()
    with pytest.raises(HandlerError, match="__main__") as caught:
        executor.run(ProcessCall("__main__:anything", {}), job())
    executor.close()
    assert caught.value.actual_outcome is Outcome.NOT_STARTED


def test_a_worker_does_not_run_the_main_program_again(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(UNGUARDED_PROGRAM.format(source=SOURCE))
    assert run_python(script) == "loaded\nTrue\n"


def test_modules_in_the_daemons_current_folder_are_not_loaded(tmp_path: Path) -> None:
    script = tmp_path / "program" / "program.py"
    hostile = tmp_path / "hostile"
    script.parent.mkdir()
    hostile.mkdir()
    script.write_text(UNGUARDED_PROGRAM.format(source=SOURCE))
    for name in ("selectors", "socket", "pickle", "msgspec", "fileipc", "pebble", "signal"):
        (hostile / f"{name}.py").write_text("open('loaded', 'w')\n")
    assert run_python(script, cwd=hostile) == "loaded\nTrue\n"
    assert not (hostile / "loaded").exists()

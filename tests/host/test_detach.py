from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ..daemon.harness import until

HEAD = """
import json, os, signal, subprocess, sys, threading, time
from fileipc.host.detach import detach
def report(**more):
    facts = dict(
        pid=os.getpid(), ppid=os.getppid(), sid=os.getsid(0), cwd=os.getcwd(),
        umask=os.umask(0o077),
        files=sorted(int(fd) for fd in os.listdir("/dev/fd")),
        ignored=[int(n) for n in (1, 13, 15, 20, 21, 22)
                 if signal.getsignal(n) is signal.SIG_IGN], **more)
    with open(sys.argv[1] + ".new", "w") as file:
        json.dump(facts, file)
    os.rename(sys.argv[1] + ".new", sys.argv[1])
"""


@pytest.fixture
def report(tmp_path: Path) -> Iterator[Path]:
    """Where a daemon leaves word; whoever did is ended with the test."""
    path = tmp_path / "report"
    yield path
    if path.exists():
        pid = json.loads(path.read_text())["pid"]
        try:
            process = psutil.Process(pid)
            if str(path) in process.cmdline():
                process.kill()
        except psutil.NoSuchProcess:
            pass


def run(body: str, report: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HEAD + body, str(report)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def read(report: Path) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while not report.exists():
        assert time.monotonic() < deadline, "the daemon left no word"
        time.sleep(0.01)
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def test_the_caller_returns_when_the_daemon_is_ready_and_tells_its_pid(report: Path) -> None:
    done = run("d = detach(); report(); d.ready(); time.sleep(60)", report)
    found = read(report)
    assert done.stdout == f"fileipc runs as pid {found['pid']}\n"
    assert (done.returncode, done.stderr) == (0, "")
    assert psutil.pid_exists(found["pid"])


def test_the_daemon_has_its_own_session_a_sane_folder_and_no_open_files(report: Path) -> None:
    leak = "kept = open(os.devnull); os.dup2(kept.fileno(), 50, inheritable=True)\n"
    body = leak + "d = detach(); d.ready(); report(); time.sleep(60)"
    found = (run(body, report), read(report))[1]
    assert found["cwd"] == "/"
    assert found["umask"] == 0o077
    assert found["sid"] not in (found["pid"], os.getsid(0)), "it must never get a terminal"
    # 3 is the folder that lists them
    assert found["files"] == [0, 1, 2, 3]
    # SIGPIPE is Python's own doing
    assert found["ignored"] == [13]


def test_children_of_the_daemon_inherit_its_standard_streams(report: Path, tmp_path: Path) -> None:
    child = '["sh", "-c", "echo out; echo err >&2; cat"]'
    body = f"""
d = detach(log_file=LOG); d.ready()
print("from the daemon", flush=True)
report(code=subprocess.run({child}).returncode)
"""
    log = tmp_path / "log"
    run(body.replace("LOG", repr(str(log))), report)
    assert read(report)["code"] == 0
    assert log.read_text() == "from the daemon\nout\nerr\n"
    assert log.stat().st_mode & 0o777 == 0o600
    report.unlink()
    run(body.replace("LOG", "None"), report)
    assert read(report)["code"] == 0


def test_a_daemon_that_fails_to_start_gives_the_caller_its_words_and_its_code(
    report: Path,
) -> None:
    body = 'd = detach(); d.failed("cannot serve:\\nno such folder \\udcff", 78); sys.exit(78)'
    done = run(body, report)
    assert done.returncode == 78
    assert done.stdout == ""
    assert done.stderr == "cannot serve:\nno such folder \\udcff\n"


@pytest.mark.parametrize("end", ["os._exit(3)", "raise ValueError", "os.kill(os.getpid(), 9)"])
def test_a_daemon_that_dies_before_it_is_ready_does_not_leave_the_caller_waiting(
    report: Path, end: str
) -> None:
    done = run(f"d = detach(); {end}", report)
    assert done.returncode == 1
    assert done.stderr == "fileipc died before it was ready\n"


def test_what_is_said_after_ready_is_heard_by_nobody_and_harms_nobody(report: Path) -> None:
    body = 'd = detach(); d.ready(); d.failed("late", 5); d.ready(); report(); time.sleep(60)'
    done = run(body, report)
    assert (done.returncode, done.stderr) == (0, "")
    read(report)


def test_ctrl_c_at_the_waiting_caller_ends_the_daemon(report: Path) -> None:
    # A shell may have started these tests with Ctrl-C ignored.
    body = "signal.signal(2, signal.default_int_handler); d = detach()\n"
    body += "signal.signal(15, lambda *_: os._exit(0)); report(); time.sleep(60)"
    caller = subprocess.Popen(
        [sys.executable, "-c", HEAD + body, str(report)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    daemon = psutil.Process(read(report)["pid"])
    caller.send_signal(signal.SIGINT)
    caller.communicate(timeout=20)
    assert caller.returncode != 0
    psutil.wait_procs([daemon], timeout=20)
    assert not daemon.is_running() or daemon.status() == psutil.STATUS_ZOMBIE


def test_ctrl_c_before_the_daemon_told_its_pid_ends_it_all_the_same(report: Path) -> None:
    body = f"""
signal.signal(2, signal.default_int_handler)
fork = os.fork
def slow_fork():
    child = fork()
    if not child:
        os.setpgid(0, 0)
        os.close(os.open({str(report)!r} + ".forked", os.O_CREAT))
        while not os.path.exists({str(report)!r} + ".go"):
            time.sleep(0.01)
        os.fork = fork
    return child
os.fork = slow_fork
d = detach(); signal.signal(15, lambda *_: os._exit(0)); report(); d.ready(); time.sleep(60)
"""
    caller = subprocess.Popen(
        [sys.executable, "-c", HEAD + body, str(report)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    forked, go = Path(f"{report}.forked"), Path(f"{report}.go")
    until(forked.exists, "the first fork")
    caller.send_signal(signal.SIGINT)
    go.write_text("")
    said, _ = caller.communicate(timeout=20)
    assert caller.returncode != 0
    assert said == b""
    left = [process for process in psutil.process_iter(["cmdline"]) if is_of(process, report)]
    _, alive = psutil.wait_procs(left, timeout=20)
    assert not alive


def is_of(process: psutil.Process, report: Path) -> bool:
    return str(report) in (process.info["cmdline"] or [])


def test_closed_standard_streams_are_no_trap(report: Path) -> None:
    body = "d = detach(); d.ready(); report(); time.sleep(60)"
    command = '"$0" "$@" <&- >&- 2>&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, "-c", HEAD + body, str(report)],
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert read(report)["files"] == [0, 1, 2, 3]


def test_detaching_after_threads_began_is_refused(report: Path) -> None:
    body = """
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
try:
    detach()
except RuntimeError as error:
    print(error)
"""
    assert run(body, report).stdout == "detaching must come before the first thread\n"


def test_a_log_file_that_cannot_be_opened_is_an_error_of_the_caller(
    report: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    body = f"""
try:
    detach(log_file={str(tmp_path / "link")!r})
except OSError as error:
    print(error.strerror)
"""
    assert "symbolic link" in run(body, report).stdout
    assert not (tmp_path / "victim").exists()

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fileipc import Client, WaitTimeout
from fileipc.client.health import State

from .fake_daemon import FakeDaemon

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def process(root: Path) -> Iterator[subprocess.Popen[str]]:
    """A fake daemon in a process of its own."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.client.fake_daemon", str(root)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def test_a_root_that_nobody_serves_is_not_running(root: Path) -> None:
    assert Client(root).health().state is State.NOT_RUNNING


def test_a_fresh_heartbeat_means_serving(fake: FakeDaemon, root: Path) -> None:
    assert Client(root).health().state is State.SERVING


def test_a_daemon_with_trouble_is_degraded_and_the_reason_told(
    fake: FakeDaemon, root: Path
) -> None:
    fake.beat("degraded", reason="the disk is full")
    health = Client(root).health()
    assert (health.state, health.reason) == (State.DEGRADED, "the disk is full")


def test_three_missed_heartbeats_mean_not_responding(fake: FakeDaemon, root: Path) -> None:
    fake.beat(age=29.0)
    assert Client(root).health().state is State.SERVING
    fake.beat(age=31.0)
    assert Client(root).health().state is State.NOT_RESPONDING


def test_a_daemon_that_has_just_started_is_not_judged_by_the_last_ones_heartbeat(
    fake: FakeDaemon, root: Path
) -> None:
    fake.beat("stopped", age=3600.0, instance="the one before")
    assert Client(root).health().state is State.SERVING


@pytest.mark.parametrize("junk", ["", "{", "[]", '{"state": "serving"}', "\x00" * 100])
def test_a_status_file_that_cannot_be_read_is_no_heartbeat(
    fake: FakeDaemon, root: Path, junk: str
) -> None:
    (root / "status.json").write_text(junk)
    assert Client(root).health().state is State.SERVING  # it has just started
    assert Client(root).survey().heartbeat is None


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_a_suspended_daemon_is_not_responding_and_a_timeout_says_so(
    process: subprocess.Popen[str], root: Path
) -> None:
    client = Client(root)
    assert client.call("ping") == {"pong": True}
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    assert client.health().state is State.NOT_RESPONDING
    with pytest.raises(WaitTimeout, match=f"process {process.pid} is suspended"):
        client.call("ping", timeout=0.05)
    process.send_signal(signal.SIGCONT)
    assert client.call("ping") == {"pong": True}


def test_a_killed_daemon_is_not_running(process: subprocess.Popen[str], root: Path) -> None:
    process.kill()
    process.wait()
    assert Client(root).health().state is State.NOT_RUNNING


def test_a_survey_counts_what_waits_and_runs_from_the_files(fake: FakeDaemon, root: Path) -> None:
    client = Client(root)
    client.submit("silent")
    client.submit("hang")
    end = time.monotonic() + 30
    while (found := client.survey()).running < 1 and time.monotonic() < end:
        time.sleep(0.005)
    assert (found.waiting, found.running) == (1, 1)
    assert found.oldest_age is not None
    assert found.oldest_age >= 0.0
    assert found.holder is not None
    assert found.holder.pid == os.getpid()


def test_a_survey_leaves_out_what_is_no_command(root: Path) -> None:
    for name in (".x.tmp", "notes.txt", "half.json.part", "x~"):
        (root / "commands" / name).touch()
    found = Client(root).survey()
    assert (found.waiting, found.running, found.oldest_age) == (0, 0, None)

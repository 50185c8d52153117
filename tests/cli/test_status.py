from __future__ import annotations

import json
import os
from pathlib import Path

from fileipc.cli.status import _span

from ..client.fake_daemon import FakeDaemon
from .conftest import Run


def test_a_served_root_exits_with_0_and_says_who_serves_it(
    fake: FakeDaemon, root: Path, run: Run
) -> None:
    done = run("status")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"{root}: serving"
    assert f"pid {os.getpid()} on here, version 9.9, up " in lines[1]


def test_status_works_from_disk_alone_with_the_daemon_down(root: Path, run: Run) -> None:
    with FakeDaemon(root):
        pass
    sent = run("send", "ping", "--no-wait").stdout.strip()
    begun = run("send", "ping", "--no-wait").stdout.strip()
    (root / "locks" / f"{begun}.lock").touch()
    done = run("status")
    assert done.returncode == 3
    assert done.stdout.startswith(f"{root}: not running\n")
    assert "last heard of" in done.stdout
    assert "1 waiting (the oldest for" in done.stdout
    assert "1 to be finished by the next start" in done.stdout
    assert "interrupted" not in done.stdout
    assert sent != begun


def test_trouble_and_silence_exit_with_1_and_a_reason(
    fake: FakeDaemon, root: Path, run: Run
) -> None:
    fake.beat("degraded", reason="disk full\x1b[2J")
    done = run("status", "--root", str(root))
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        1,
        f"{root}: degraded (disk full\\x1b[2J)",
    )
    fake.beat(age=3600)
    done = run("status")
    assert done.returncode == 1
    assert "not responding (no heartbeat for 36" in done.stdout


def test_json_is_one_line_with_everything(fake: FakeDaemon, root: Path, run: Run) -> None:
    done = run("status", "--json")
    (line,) = done.stdout.splitlines()
    found = json.loads(line)
    assert found["state"] == "serving"
    assert found["root"] == str(root)
    assert found["holder"]["pid"] == found["heartbeat"]["pid"] == os.getpid()
    assert (found["waiting"], found["running"], found["oldest_age"]) == (0, 0, None)


def test_without_a_root_it_exits_with_4(run: Run) -> None:
    done = run("status")
    assert (done.returncode, done.stdout) == (4, "")
    assert "fileipc init" in done.stderr


def test_ages_are_told_in_two_units_at_most() -> None:
    assert [_span(s) for s in (0.04, 59.9, 60, 3725, 90000)] == [
        "0.0 s",
        "59.9 s",
        "1 min 0 s",
        "1 h 2 min",
        "1 d 1 h",
    ]

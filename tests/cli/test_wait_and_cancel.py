from __future__ import annotations

import json
import os
from pathlib import Path

from fileipc.client.core import new_id

from ..client.fake_daemon import FakeDaemon, pending
from .conftest import Run


def sent(run: Run, *args: str) -> str:
    return run("send", *args, "--no-wait").stdout.strip()


def test_wait_prints_results_in_the_order_asked_for(fake: FakeDaemon, root: Path, run: Run) -> None:
    first, second = sent(run, "echo", "n=1"), sent(run, "echo", "n=2")
    done = run("wait", second, first.upper())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{\n  "n": 2\n}\n{\n  "n": 1\n}\n'
    assert os.listdir(root / "responses") == []


def test_wait_ends_with_the_worst_code_and_still_prints_the_rest(
    fake: FakeDaemon, root: Path, run: Run
) -> None:
    silent, failing, fine = sent(run, "silent"), sent(run, "forbidden"), sent(run, "ping")
    done = run("wait", failing, fine)
    assert done.returncode == 1
    assert "forbidden" in done.stderr
    fine = sent(run, "ping")
    done = run("wait", "--timeout", "0.2", silent, fine)
    assert done.returncode == 124
    assert json.loads(done.stdout) == {"pong": True}
    assert "still waits and may run yet" in done.stderr
    assert pending(root) == [silent]


def test_wait_keeps_responses_when_asked_to(fake: FakeDaemon, root: Path, run: Run) -> None:
    name = sent(run, "ping")
    first = run("wait", name, "--keep", "--json")
    second = run("wait", name, "--json")
    assert first.stdout == second.stdout
    assert json.loads(first.stdout)["id"] == name


def test_wait_refuses_what_is_no_id(fake: FakeDaemon, run: Run) -> None:
    done = run("wait", "../../etc/passwd")
    assert done.returncode == 2
    assert "is not the id of a command" in done.stderr


def test_wait_reads_the_answer_to_a_file_that_was_refused(root: Path, run: Run) -> None:
    response = '{"id": "cmd-001", "status": "failed", "error": {"code": "invalid_command"}}'
    (root / "responses" / "cmd-001.json").write_text(response)
    done = run("wait", "cmd-001")
    assert done.returncode == 1
    assert done.stderr.startswith("fileipc: invalid_command: ")


def test_cancel_prints_what_came_of_it(fake: FakeDaemon, run: Run) -> None:
    done = run("cancel", sent(run, "silent"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "cancelled\n", "")
    done = run("cancel", new_id(), "--timeout=30s")
    assert (done.returncode, done.stdout) == (1, "unknown\n")


def test_cancel_without_a_daemon_withdraws_what_has_not_started(root: Path, run: Run) -> None:
    name = sent(run, "ping")
    assert run("cancel", name).stdout == "cancelled\n"
    assert pending(root) == []
    assert run("cancel", name).returncode == 69


def test_a_bad_timeout_is_a_usage_error_that_names_the_command(fake: FakeDaemon, run: Run) -> None:
    done = run("wait", new_id(), "--timeout", "soon")
    assert done.returncode == 2
    assert "fileipc wait --help" in done.stderr

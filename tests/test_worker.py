"""The engine inside another program."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from fileipc import Client, Worker
from fileipc.errors import CommandFailed, RootHeld

PROGRAM = """
import sys
from fileipc import Worker

worker = Worker(sys.argv[1], workers=2)

@worker.handler(timeout=5, idempotent=True)
def double(args):
    return {"twice": 2 * args["n"]}

@worker.handler(timeout=0.5)
def hang(args):
    while True:
        pass

if __name__ == "__main__":
    worker.run()
"""


def test_handlers_of_a_program_run_in_processes_of_their_own(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    process = subprocess.Popen([sys.executable, str(program), str(tmp_path)])
    try:
        from tests.daemon.harness import Project, until

        project = Project(tmp_path)
        until((project.root / "status.json").exists, "the worker to serve")
        assert project.ask("double", {"n": 21})["result"] == {"twice": 42}
        assert project.ask("hang")["error"]["code"] == "timeout"
        assert project.ping()["status"] == "completed"
    finally:
        process.terminate()
        assert process.wait(30) == 0


def test_a_thread_that_outlives_the_worker_changes_nothing_any_more(tmp_path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()
    worker = Worker(tmp_path)

    @worker.handler(isolation="thread")
    def slow(args: dict[str, Any]) -> str:
        inside.set()
        leave.wait(30)
        return "late"

    worker.start()
    client = Client(tmp_path)
    command_id = client.submit("slow")
    inside.wait(30)
    worker.stop(drain=0.0)
    with Worker(tmp_path):
        response = client.wait(command_id, timeout=30, discard=False)
        leave.set()
        assert client.call("ping")["pong"]
        assert client.wait(command_id, timeout=30) == response
    assert response.error is not None
    assert response.error.code == "interrupted"


def test_a_second_worker_on_the_same_root_is_refused(tmp_path: Path) -> None:
    with Worker(tmp_path), pytest.raises(RootHeld):
        Worker(tmp_path).start()


def test_what_a_worker_cannot_take_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="wrokers"):
        Worker(tmp_path, wrokers=3)
    worker = Worker(tmp_path)
    with pytest.raises(ValueError, match="already"):
        worker.handler("ping")(lambda args: None)
    with pytest.raises(ValueError, match="inside another"):
        worker.handler("inner")(lambda args: None)


def test_an_error_of_a_thread_handler_is_told(tmp_path: Path) -> None:
    worker = Worker(tmp_path)

    @worker.handler(isolation="thread")
    def fail(args: dict[str, Any]) -> None:
        raise KeyError("nothing there")

    with worker, pytest.raises(CommandFailed) as caught:
        Client(tmp_path).call("fail")
    assert caught.value.code == "handler_error"

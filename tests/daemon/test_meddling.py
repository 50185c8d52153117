"""Hands that meddle with a root's folders hurt themselves at most."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path

import pytest

from .harness import Daemon, Project, until


@pytest.fixture
def served(project: Project, daemon: Daemon) -> Project:
    daemon.configure({"path": project.root, "settle": "500ms", "rescan": "1s"}).start()
    return project


def test_a_folder_in_a_responses_place_stops_nobody(served: Project) -> None:
    command_id = str(uuid.uuid4())
    (served.root / "responses" / f"{command_id}.json" / "full").mkdir(parents=True)
    served.send("ping", id=command_id)
    assert served.ping()["status"] == "completed"
    response = served.root / "responses" / f"{command_id}.json"
    until(response.is_file, "the response in the folder's place")
    assert served.wait(command_id)["status"] == "completed"


def test_a_file_in_the_place_of_an_archive_day_stops_nobody(
    project: Project, daemon: Daemon, tmp_path: Path
) -> None:
    daemon.configure({"path": project.root}).start()
    project.ping()
    day = next((project.root / "archive").glob("????-??-??"))
    shutil.rmtree(day)
    day.write_text("in the way")
    assert project.ping()["status"] == "completed"
    shutil.rmtree(day)
    (tmp_path / "elsewhere").mkdir()
    daemon.stop()
    day.symlink_to(tmp_path / "elsewhere")
    daemon.start()
    assert project.ping()["status"] == "completed"
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_good_command_under_a_name_that_is_no_text_is_set_aside(served: Project) -> None:
    command = {"id": str(uuid.uuid4()), "type": "ping"}
    served.drop(json.dumps(command).encode(), os.fsdecode(b"\xff\xfe"))
    until(served.rejected, "the record of the rejected file")
    assert served.ping()["status"] == "completed"
    assert served.events("feeder_failed") == []


def test_a_file_that_is_appended_to_all_the_time_does_not_end_the_daemon(
    served: Project, daemon: Daemon
) -> None:
    path = served.command_path("growing")
    for _ in range(300):
        with path.open("ab") as file:
            file.write(b"{")
    assert served.ping()["status"] == "completed"
    assert daemon.alive


def test_a_waiting_command_of_an_upper_case_name_can_be_cancelled(
    project: Project, daemon: Daemon
) -> None:
    project.write("gate.sh", "#!/bin/sh\nread line < fifo\n", 0o755)
    os.mkfifo(project.folder / "fifo")
    root = {"path": project.root, "workers": 1, "scripts": {"allow": ["gate.sh"]}}
    daemon.configure(root, stop_timeout="0s").start()
    busy = project.send("execute_script", {"script": "gate.sh"})
    project.wait_running(busy)
    command_id = str(uuid.uuid4())
    command = {"id": command_id, "type": "execute_script", "args": {"script": "gate.sh"}}
    project.drop(json.dumps(command).encode(), command_id.upper())
    project.ping()
    assert project.ask("cancel", {"target": command_id})["result"]["state"] == "cancelled"
    assert project.wait(command_id)["error"]["code"] == "cancelled"


def test_an_idempotent_command_that_began_and_then_expired_is_not_called_not_started(
    project: Project, daemon: Daemon
) -> None:
    project.write(
        "handlers.py",
        "import time\n\ndef long(args):\n    open('began', 'w').close()\n    time.sleep(1000)\n",
    )
    handlers = {"long": {"python": "handlers:long", "idempotent": True}}
    daemon.configure({"path": project.root, "handlers": handlers}).start()
    command_id = project.send("long", ttl=3)
    until((project.folder / "began").exists, "the handler to begin")
    daemon.kill()
    until(lambda: _age(project, command_id) > 3, "the ttl to pass")
    daemon.start()
    error = project.wait(command_id)["error"]
    assert error["code"] == "expired"
    assert error["outcome"] == "unknown"


def _age(project: Project, command_id: str) -> float:
    import time

    return time.time() - project.command_path(command_id).stat().st_ctime

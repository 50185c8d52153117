"""Handlers that hang, crash or never end are ended, while ping is answered throughout."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from .harness import Daemon, Project, until

HANDLERS = """
import os, re, time

def sleep(args):
    time.sleep(10_000)

def leave(args):
    os._exit(3)

def regex(args):
    return bool(re.match(r"(a+)+$", "a" * 60 + "!"))

def fail(args):
    raise ValueError("no such thing")

def odd(args):
    return {"when": __import__("datetime").date(2026, 5, 17), "nan": float("nan"), "raw": b"\\xff"}

def big(args):
    return "x" * 400_000

def env(args):
    return dict(os.environ)
"""
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c"


@pytest.fixture
def served(project: Project, daemon: Daemon) -> Project:
    project.write("handlers.py", HANDLERS)
    for name, body in {
        "sleep": "sleep 1000",
        "stubborn": "trap '' TERM\nsleep 1000",
        "server": "sleep 1000 & echo started",
        "flood": "yes",
        "env": "env",
        "cat": "cat; echo end",
        "die": "kill -9 $$",
    }.items():
        project.write(f"bin/{name}.sh", f"#!/bin/sh\n{body}\n", 0o755)
    sqlite3.connect(project.folder / "app.db").close()
    names = ("sleep", "leave", "regex", "fail", "odd", "big", "env")
    daemon.configure(
        {
            "path": project.root,
            "workers": 2,
            "scripts": {"allow": ["bin/*.sh"], "timeout": "2s"},
            "databases": {"default": {"url": "sqlite:///app.db", "timeout": "2s"}},
            "handlers": {name: {"python": f"handlers:{name}", "timeout": "2s"} for name in names},
        }
    )
    daemon._env |= {"FAKE_API_KEY": "x", "NOTIFY_SOCKET": "/nowhere"}
    daemon.start()
    return project


@pytest.mark.parametrize(
    ("type_", "args"),
    [
        ("sleep", {}),
        ("regex", {}),
        ("run_query", {"query": ENDLESS}),
        ("execute_script", {"script": "bin/sleep.sh"}),
        ("execute_script", {"script": "bin/stubborn.sh"}),
        ("execute_script", {"script": "bin/flood.sh"}),
    ],
)
def test_what_never_ends_is_ended_and_pings_are_answered_meanwhile(
    served: Project, type_: str, args: dict[str, object]
) -> None:
    """Cases A07, E03, E14."""
    ids = [served.send(type_, args) for _ in range(3)]  # more than there are workers
    pings = 0
    while any(served.final(command_id) is None for command_id in ids):
        assert served.ping()["status"] == "completed"
        pings += 1
    assert pings > 10
    for command_id in ids:
        assert served.wait(command_id)["error"]["code"] == "timeout"


def test_the_ttl_ends_a_running_command_before_its_handlers_own_limit(served: Project) -> None:
    assert served.ask("sleep", ttl=0.5)["error"]["code"] == "timeout"


def test_a_handler_that_leaves_its_process_is_told_crashed_and_the_next_is_served(
    served: Project,
) -> None:
    response = served.ask("leave")
    assert response["error"]["code"] == "crashed"
    assert "3" in str(response["error"])
    assert served.ask("odd")["status"] == "completed"


def test_a_handlers_own_error_is_told_with_its_trace(served: Project) -> None:
    error = served.ask("fail")["error"]
    assert error["code"] == "handler_error"
    assert error["outcome"] == "finished"
    assert "no such thing" in error["message"]


def test_a_result_of_odd_values_becomes_strict_json(served: Project) -> None:
    result = served.ask("odd")["result"]
    assert result == {"when": "2026-05-17", "nan": "NaN", "raw": "/w=="}


def test_a_large_result_is_a_preview_with_the_whole_beside_it(served: Project) -> None:
    response = served.ask("big")
    result = response["result"]
    assert result["truncated"] is True
    whole = served.root / result["path"]
    assert whole.stat().st_size == result["bytes"] == 400_002


def test_both_custom_forms_reach_the_handler(served: Project) -> None:
    assert served.ask("custom", {"target": "odd"})["status"] == "completed"
    assert served.ask("custom", {"target": "nope"})["error"]["code"] == "unknown_type"
    assert served.ask("nope")["error"]["code"] == "unknown_type"


def test_scripts_see_a_clean_environment_and_an_empty_input(served: Project) -> None:
    """Case E05."""
    env = served.ask("execute_script", {"script": "bin/env.sh"})["result"]["stdout"]
    assert "PATH=" in env
    assert "FAKE_API_KEY" not in env
    assert "NOTIFY_SOCKET" not in env
    assert served.ask("execute_script", {"script": "bin/cat.sh"})["result"]["stdout"] == "end\n"
    assert "NOTIFY_SOCKET" not in served.ask("env")["result"]


def test_a_script_that_leaves_a_server_behind_is_answered_when_it_ends(served: Project) -> None:
    """Cases A05, E01."""
    response = served.ask("execute_script", {"script": "bin/server.sh"})
    assert response["result"]["stdout"] == "started\n"


def test_a_killed_script_is_told_with_its_signal(served: Project) -> None:
    """Case A03."""
    error = served.ask("execute_script", {"script": "bin/die.sh"})["error"]
    assert error["code"] == "script_failed"
    assert "KILL" in str(error)


def test_a_running_command_can_be_cancelled(served: Project) -> None:
    command_id = served.send("execute_script", {"script": "bin/sleep.sh"}, ttl=100)
    served.wait_running(command_id)
    assert served.ask("cancel", {"target": command_id})["result"]["state"] == "cancelling"
    assert served.wait(command_id)["error"]["code"] == "cancelled"
    assert served.ask("cancel", {"target": command_id})["result"]["state"] == "finished"


def test_a_waiting_command_can_be_cancelled_and_withdrawn(served: Project) -> None:
    busy = [served.send("sleep") for _ in range(2)]
    for command_id in busy:
        served.wait_running(command_id)
    waiting, withdrawn = served.send("odd"), served.send("odd")
    served.ping()
    served.command_path(withdrawn).unlink()
    assert served.ask("cancel", {"target": waiting})["result"]["state"] == "cancelled"
    response = served.wait(waiting)
    assert response["error"]["code"] == "cancelled"
    assert response["error"]["outcome"] == "not_started"
    for command_id in busy:
        served.wait(command_id)
    assert served.ask("odd")["status"] == "completed"
    assert served.look(withdrawn) is None


def test_what_expires_while_every_worker_is_busy_is_told_meanwhile(served: Project) -> None:
    """Case A07."""
    busy = [served.send("sleep", ttl=60) for _ in range(2)]
    short = served.send("odd", ttl=0.2)
    assert served.wait(short)["error"]["code"] == "expired"
    assert all(served.wait(command_id)["error"]["code"] == "timeout" for command_id in busy)


def test_other_roots_are_answered_while_one_is_full(tmp_path: Path, daemon: Daemon) -> None:
    """Case A07."""
    full, other = Project(tmp_path / "full").make(), Project(tmp_path / "other").make()
    full.write("s.sh", "#!/bin/sh\nexec sleep 1000\n", 0o755)
    daemon.configure(
        {"path": full.root, "workers": 2, "scripts": {"allow": ["s.sh"]}},
        {"path": other.root},
        stop_timeout="0s",
    ).start()
    ids = [full.send("execute_script", {"script": "s.sh"}) for _ in range(50)]
    until(lambda: full.look(ids[0]), "the first to run")
    for _ in range(20):
        assert other.ping()["result"]["waiting"] == 0
        assert full.ping()["result"]["running"] == 2
    assert os.path.exists(full.root / "status.json")

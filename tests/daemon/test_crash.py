"""kill -9, stops and restarts: one final response each, effects as promised."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from functools import partial
from pathlib import Path

from .harness import Daemon, Project, until

HANDLERS = """
import os, time
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent

def note(args):
    with open(HERE / "ran", "a") as file:
        file.write(args["word"] + "\\n")
    gate = HERE / "gate"
    while not gate.exists():
        time.sleep(0.01)
    return {"word": args["word"]}
"""


def prepare(project: Project, daemon: Daemon, **settings: object) -> None:
    project.write("handlers.py", HANDLERS)
    project.write(
        "slow.sh", "#!/bin/sh\necho $1 >> ran\nread line < fifo\necho done >> ran\n", 0o755
    )
    if not (project.folder / "fifo").exists():
        os.mkfifo(project.folder / "fifo")
    daemon.configure(
        {
            "path": project.root,
            "scripts": {"allow": ["*.sh"]},
            "handlers": {
                "again": {"python": "handlers:note", "idempotent": True},
                "once": {"python": "handlers:note"},
            },
            **settings,
        },
        stop_timeout="1s",
    )


def ran(project: Project) -> Counter[str]:
    path = project.folder / "ran"
    return Counter(path.read_text().split() if path.exists() else [])


def ran_times(project: Project, word: str, times: int) -> bool:
    return ran(project)[word] == times


def started(project: Project, *words: str) -> None:
    """Wait until each handler has left its mark: `running` may be told a moment before."""
    until(lambda: set(words) <= set(ran(project)), f"{words} to start")


def settled_wholly(project: Project, command_id: str) -> None:
    """One final response, the command archived, no claim and nothing in two places."""
    until(lambda: not (project.root / "locks" / f"{command_id}.lock").exists(), "the claim to go")
    names = [path.name for path in project.archived(command_id)]
    assert names == [f"{command_id}.command.json", f"{command_id}.response.json"]
    assert not project.command_path(command_id).exists()


def test_an_idempotent_command_is_run_again_after_a_kill(project: Project, daemon: Daemon) -> None:
    prepare(project, daemon)
    daemon.start()
    command_id = project.send("again", {"word": "w"})
    assert project.wait_running(command_id)["status"] == "running"
    started(project, "w")
    daemon.kill()
    (project.folder / "gate").touch()
    daemon.start()
    response = project.wait(command_id)
    assert response["status"] == "completed"
    assert response["attempt"] == 2
    assert ran(project)["w"] == 2
    settled_wholly(project, command_id)


def test_a_command_that_may_run_only_once_is_settled_interrupted_after_a_kill(
    project: Project, daemon: Daemon
) -> None:
    """Cases A03, S08."""
    prepare(project, daemon)
    daemon.start()
    ids = [project.send("once", {"word": "a"})]
    ids.append(project.send("execute_script", {"script": "slow.sh", "args": ["b"]}))
    for command_id in ids:
        project.wait_running(command_id)
    started(project, "a", "b")
    daemon.kill()
    daemon.start()
    for command_id in ids:
        response = project.wait(command_id)
        assert response["error"]["code"] == "interrupted"
        assert response["error"]["outcome"] == "unknown"
        settled_wholly(project, command_id)
    assert ran(project) == {"a": 1, "b": 1}


def test_a_command_that_kills_the_daemon_is_given_up(project: Project, daemon: Daemon) -> None:
    prepare(project, daemon, max_attempts=2)
    daemon.start()
    command_id = project.send("again", {"word": "w"})
    for attempt in (1, 2):
        until(partial(ran_times, project, "w", attempt), "the handler to start")
        daemon.kill()
        daemon.start()
    response = project.wait(command_id)
    assert response["error"]["code"] == "crashed"
    assert response["attempt"] == 2
    assert ran(project)["w"] == 2


def test_nothing_says_running_while_nothing_runs(project: Project, daemon: Daemon) -> None:
    """Case A03."""
    prepare(project, daemon, workers=1)
    daemon.start()
    command_id = project.send("again", {"word": "w"})
    project.wait_running(command_id)
    daemon.kill()
    # A higher priority takes the only worker first: the other one waits again.
    first = project.send("again", {"word": "first"}, priority=9)
    daemon.start()
    until(lambda: ran(project)["first"], "the other one to run")
    assert project.look(command_id) is None
    (project.folder / "gate").touch()
    project.wait(first)
    assert project.wait(command_id)["attempt"] == 2


def test_five_thousand_waiting_pings_survive_a_kill_and_are_answered_once(
    project: Project, daemon: Daemon
) -> None:
    ids = [project.send("ping") for _ in range(5000)]
    daemon.configure({"path": project.root}).start(ready=False)
    until(lambda: len(os.listdir(project.root / "responses")) > 500, "some to be answered")
    daemon.kill()
    assert list((project.root / "commands").iterdir()), "killed too late to show anything"
    daemon.start()
    until(lambda: not os.listdir(project.root / "commands"), "the rest", 120)
    for command_id in ids:
        response = project.final(command_id)
        assert response is not None
        assert response["status"] == "completed"
    lines = (project.root / "log" / "results.jsonl").read_text().splitlines()
    answered = Counter(json.loads(line)["id"] for line in lines)
    # A kill between commit and log line loses the line, never the answer.
    assert max(answered.values()) == 1
    assert len(answered) >= 4995
    assert [path.name for path in (project.root / "locks").glob("*.lock")] == ["daemon.lock"]
    assert daemon.stop() == 0
    assert sorted(os.listdir(project.root / "locks")) == ["daemon.json", "daemon.lock"]


def test_a_foreign_or_empty_claim_is_no_endless_wait(project: Project, daemon: Daemon) -> None:
    """Case L03."""
    prepare(project, daemon)
    (project.folder / "gate").touch()
    daemon.start()
    foreign = {"owner": "x", "pid": 999999, "host": "otherhost", "attempt": 1, "claimed_at": "t"}
    for content in (json.dumps(foreign), ""):
        for type_, code in (("again", None), ("once", "interrupted")):
            command_id = project.drop(b"", None)
            project.command_path(command_id).unlink(missing_ok=True)
            (project.root / "locks" / f"{command_id}.lock").write_text(content)
            response = project.ask(type_, {"word": "w"}, id=command_id)
            assert (response["error"] or {}).get("code") == code
            if content and code:
                assert "otherhost" in response["error"]["message"]


def test_a_stop_lets_what_runs_end_and_leaves_what_waits(project: Project, daemon: Daemon) -> None:
    """Case V03."""
    prepare(project, daemon, workers=1)
    daemon.configure({**json.loads(daemon.config.read_text())["roots"][0]}, stop_timeout="30s")
    daemon.start()
    command_id = project.send("once", {"word": "w"})
    project.wait_running(command_id)
    waiting = [project.send("once", {"word": "later"}) for _ in range(5)]
    daemon.signal(signal.SIGTERM)
    until(lambda: any(e["event"] == "daemon_stopping" for e in daemon.lines()), "the stop to begin")
    until(lambda: project.status()["state"] == "stopping", "the heartbeat to tell of the stop")
    (project.folder / "gate").touch()
    assert daemon.wait() == 0
    assert project.status()["waiting"] == 5
    assert project.wait(command_id)["status"] == "completed"
    assert all(project.command_path(each).exists() for each in waiting)
    assert ran(project) == {"w": 1}


def test_past_the_stop_timeout_idempotent_commands_wait_again_and_others_are_interrupted(
    project: Project, daemon: Daemon
) -> None:
    """Case V03."""
    prepare(project, daemon)
    daemon.start()
    once, again = project.send("once", {"word": "a"}), project.send("again", {"word": "b"})
    script = project.send("execute_script", {"script": "slow.sh", "args": ["c"]})
    for command_id in (once, again, script):
        project.wait_running(command_id)
    started(project, "a", "b", "c")
    assert daemon.stop() == 0
    for command_id in (once, script):
        assert project.wait(command_id)["error"]["code"] == "interrupted"
    assert project.command_path(again).exists()
    assert project.look(again) is None
    (project.folder / "gate").touch()
    daemon.start()
    assert project.wait(again)["attempt"] == 1
    assert ran(project) == {"a": 1, "b": 2, "c": 1}


def test_a_second_signal_stops_at_once(project: Project, daemon: Daemon) -> None:
    """Case V03."""
    prepare(project, daemon)
    daemon.configure({**json.loads(daemon.config.read_text())["roots"][0]}, stop_timeout="1h")
    daemon.start()
    command_id = project.send("once", {"word": "a"})
    project.wait_running(command_id)
    daemon.signal(signal.SIGINT)
    until(lambda: any(e["event"] == "daemon_stopping" for e in daemon.lines()), "the stop to begin")
    daemon.signal(signal.SIGINT)
    assert daemon.wait() == 0
    assert project.wait(command_id)["error"]["code"] == "interrupted"


def test_no_process_is_left_when_the_daemon_was_killed(project: Project, daemon: Daemon) -> None:
    prepare(project, daemon)
    project.write("pid.sh", "#!/bin/sh\necho $$ > pid\nexec sleep 1000\n", 0o755)
    daemon.start()
    command_id = project.send("execute_script", {"script": "pid.sh"})
    project.wait_running(command_id)
    pid_file = project.folder / "pid"
    until(lambda: pid_file.exists() and pid_file.read_text().strip(), "the pid")
    pid = int(pid_file.read_text())
    daemon.kill()
    until(lambda: not Path(f"/proc/{pid}").exists(), "the script to end with its daemon")

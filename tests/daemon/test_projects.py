"""Many projects under one configuration, each served whatever happens to the others."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest

from .harness import Daemon, Project, until


def test_three_projects_are_served_and_a_fourth_as_soon_as_it_appears(
    tmp_path: Path, daemon: Daemon
) -> None:
    """Case V08."""
    projects = [Project(tmp_path / name, name).make() for name in ("one", "two", "three")]
    late = Project(tmp_path / "mount" / "four", "four")
    daemon.configure(*({"path": project.root} for project in (*projects, late))).start()
    for project in projects:
        assert project.ping()["result"]["root"] == project.name
    assert not late.folder.parent.exists()
    waiting = [line for line in daemon.lines() if line["event"] == "root_waiting"]
    assert [line["root"] for line in waiting] == ["four"]
    late.make()
    assert late.ping()["status"] == "completed"
    assert daemon.stop() == 0


def test_a_root_that_is_removed_and_made_again_is_served_again(
    tmp_path: Path, daemon: Daemon
) -> None:
    """Case W03."""
    project, other = Project(tmp_path / "a").make(), Project(tmp_path / "b").make()
    daemon.configure({"path": project.root}, {"path": other.root}).start()
    project.ping()
    shutil.rmtree(project.root)
    other.ping()
    project.make()
    project.ping()
    shutil.rmtree(project.root / "commands")
    (project.root / "commands").mkdir()
    project.ping()
    (project.root / "commands").rename(project.root / "old")
    (project.root / "commands").mkdir()
    stray = Path(project.root / "old" / project.command_path(project.send("ping")).name)
    project.ping()
    assert not stray.exists()
    assert other.ping()["status"] == "completed"
    assert daemon.stop() == 0


def test_a_second_daemon_is_told_who_serves_the_root_and_leaves(
    tmp_path: Path, project: Project, daemon: Daemon
) -> None:
    """Case L07."""
    daemon.configure({"path": project.root}).start()
    (tmp_path / "second").mkdir()
    second = Daemon(tmp_path / "second").configure({"path": project.root}).start(ready=False)
    assert second.wait() == 75
    assert f"already running: {project.root} is already served by pid {daemon.pid}" in (
        second.stderr.read_text()
    )
    assert project.ping()["status"] == "completed"


def test_the_daemon_starts_again_at_once_after_each_kill(project: Project, daemon: Daemon) -> None:
    """Case L05."""
    daemon.configure({"path": project.root})
    for _ in range(4):
        daemon.start()
        project.ping()
        daemon.kill()


def test_a_removed_daemon_lock_is_taken_anew(project: Project, daemon: Daemon) -> None:
    """Case L01."""
    daemon.configure({"path": project.root}).start()
    (project.root / "locks" / "daemon.lock").unlink()
    # A root that gets work is looked after at once, an idle one at its next heartbeat.
    project.ask("analyze_file", {"target": "."})
    until((project.root / "locks" / "daemon.lock").exists, "a new daemon lock")
    assert project.ping()["status"] == "completed"


def test_the_heartbeat_tells_who_serves_and_that_it_stopped(
    project: Project, daemon: Daemon
) -> None:
    daemon.configure({"path": project.root, "name": "shop"}).start()
    status = project.status()
    assert status["state"] == "serving"
    assert status["pid"] == daemon.pid
    assert "ping" in status["types"]
    project.ping()
    until(lambda: project.status()["completed"] == 1, "the count of answered commands")
    assert daemon.stop() == 0
    assert project.status()["state"] == "stopped"


def test_hangup_does_not_end_the_daemon(project: Project, daemon: Daemon) -> None:
    daemon.configure({"path": project.root}).start()
    for _ in range(10):
        daemon.signal(signal.SIGHUP)
    assert project.ping()["status"] == "completed"
    assert daemon.stop() == 0


@pytest.mark.skipif(os.getuid() != 0, reason="files of other users need root")
def test_files_of_other_users_are_refused_unless_they_are_named(
    tmp_path: Path, daemon: Daemon
) -> None:
    closed, opened = Project(tmp_path / "closed").make(), Project(tmp_path / "opened").make()
    daemon.configure(
        {"path": closed.root}, {"path": opened.root, "allow_users": ["me", "nobody"]}
    ).start()
    codes = []
    for project in (closed, opened):
        command_id = str(uuid.uuid4())
        source = tmp_path / "foreign.json"
        source.write_text(json.dumps({"id": command_id, "type": "ping"}))
        os.chown(source, pwd.getpwnam("nobody").pw_uid, -1)
        source.rename(project.command_path(command_id))
        codes.append((project.wait(command_id)["error"] or {}).get("code"))
        assert project.ping()["status"] == "completed"
    assert codes == ["forbidden", None]


def test_the_projects_own_file_is_taken_where_the_daemons_file_allows_it(
    tmp_path: Path, daemon: Daemon
) -> None:
    projects = [Project(tmp_path / name).make() for name in ("asked", "not_asked")]
    for project in projects:
        project.write("fileipc.yaml", "scripts: {allow: ['*.sh']}\n")
        project.write("hello.sh", "#!/bin/sh\necho hello\n", 0o755)
    late = Project(tmp_path / "late")
    daemon.configure(
        {"path": projects[0].root, "project_config": True},
        {"path": projects[1].root},
        {"path": late.root, "project_config": True},
    ).start()
    late.write("fileipc.yaml", "scripts: {allow: ['*.sh']}\n")
    late.write("hello.sh", "#!/bin/sh\necho hello\n", 0o755)
    late.make()
    codes = [
        (each.ask("execute_script", {"script": "hello.sh"})["error"] or {}).get("code")
        for each in (*projects, late)
    ]
    assert codes == [None, "forbidden", None]


@pytest.mark.skipif(os.getuid() != 0, reason="acting as another user needs root")
def test_in_group_mode_a_member_of_the_folders_group_may_ask_and_no_more(daemon: Daemon) -> None:
    nobody = pwd.getpwnam("nobody")
    # Not below tmp_path: pytest closes that to other users.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        project = Project(folder)
        project.root.mkdir(mode=0o2750)
        os.chown(project.root, -1, nobody.pw_gid)
        daemon.configure({"path": project.root, "mode": "group"}).start()
        command_id = str(uuid.uuid4())
        script = (
            f'printf \'{{"id":"{command_id}","type":"ping"}}\' > commands/.x.tmp &&'
            f" mv commands/.x.tmp commands/{command_id}.json &&"
            f" until cat responses/{command_id}.json; do sleep 0.05; done &&"
            f" rm responses/{command_id}.json && ! touch stray 2>&1 && ! touch locks/stray 2>&1"
        )
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=project.root,
            user=nobody.pw_uid,
            group=nobody.pw_gid,
            extra_groups=[],
            stdout=subprocess.PIPE,
            timeout=30,
            check=True,
        )
        assert b'"completed"' in done.stdout
        assert daemon.stop() == 0

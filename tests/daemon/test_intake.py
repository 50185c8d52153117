"""What writers of every kind put into commands/ is run once, or answered, or left alone."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import uuid
from pathlib import Path

import pytest

from .harness import Daemon, Project, until


@pytest.fixture
def served(project: Project, daemon: Daemon) -> Project:
    """A project whose scripts append to `ran`, served with a short settle time."""
    project.write("bin/note.sh", '#!/bin/sh\necho "$1" >> ran\n', 0o755)
    daemon.configure(
        {"path": project.root, "settle": "1s", "rescan": "2s", "scripts": {"allow": ["bin/*.sh"]}}
    ).start()
    return project


def ran(project: Project) -> list[str]:
    path = project.folder / "ran"
    return path.read_text().split() if path.exists() else []


def test_a_naive_writer_with_a_pause_in_the_middle_gets_one_answer(served: Project) -> None:
    """Case W04: cat > commands/$id.json, in two halves."""
    command_id = str(uuid.uuid4())
    script = json.dumps(
        {
            "id": command_id,
            "type": "execute_script",
            "args": {"script": "bin/note.sh", "args": ["x"]},
        }
    )
    with served.command_path(command_id).open("w") as file:
        file.write(script[:40])
        file.flush()
        os.fsync(file.fileno())
        # Longer than the settle time: an open file is not judged, however long it takes.
        threading.Event().wait(1.5)
        assert served.look(command_id) is None
        file.write(script[40:])
    assert served.wait(command_id)["status"] == "completed"
    served.ping()
    assert ran(served) == ["x"]
    assert served.rejected() == []


def test_an_empty_file_that_is_filled_later_is_run(served: Project) -> None:
    """Case W04."""
    command_id = served.drop(b"", atomic=False)
    served.ping()
    command = json.dumps({"id": command_id, "type": "ping"}).encode()
    served.drop(command, command_id, atomic=False)
    assert served.wait(command_id)["status"] == "completed"


def test_touching_and_rewriting_a_command_does_not_run_it_twice(served: Project) -> None:
    """Case W06."""
    served.write("bin/slow.sh", "#!/bin/sh\necho go >> ran\nread line < gate\n", 0o755)
    os.mkfifo(served.folder / "gate")
    command_id = served.send("execute_script", {"script": "bin/slow.sh"})
    until(lambda: ran(served), "the script to run")
    path = served.command_path(command_id)
    raw = path.read_bytes()
    path.touch()
    path.chmod(0o600)
    path.write_bytes(raw)
    path.open("ab").close()
    (served.folder / "gate").write_text("go\n")
    assert served.wait(command_id)["status"] == "completed"
    served.ping()
    assert ran(served) == ["go"]


def test_temporaries_of_editors_are_left_alone(served: Project) -> None:
    """Case W12."""
    names = [".x.json.swp", "4913", "x.json~", "x.json.part", "x.json.filepart", "x.tmp",
             ".hidden.json", "README.md"]  # fmt: skip
    for name in names:
        (served.root / "commands" / name).write_text("{}")
    served.ping()
    # The answer comes a moment before the command is archived.
    until(
        lambda: sorted(os.listdir(served.root / "commands")) == sorted(names),
        "the ping to be archived, and only that",
    )
    assert served.rejected() == []


def test_a_hard_link_into_the_folder_is_seen(served: Project) -> None:
    command_id = str(uuid.uuid4())
    temporary = served.folder / "outside.json"
    temporary.write_text(json.dumps({"id": command_id, "type": "ping"}))
    os.link(temporary, served.command_path(command_id))
    temporary.unlink()
    assert served.wait(command_id)["status"] == "completed"


BROKEN = {
    "cut": (b'{"id":"x","type":"ping"', "line 1 column"),
    "empty": (b"", "empty"),
    "nuls": (b"\0" * 64, "empty"),
    "cp1252": (b'{"id":"caf\xe9"}', "offset 10"),
    "list": (b"[]", "a list"),
    "number": (b"5", "a number"),
    "deep": (b"[" * 100_000 + b"]" * 100_000, "nested"),
    "no_uuid": (b'{"id": "cmd-001", "type": "ping"}', "not a UUID"),
}


@pytest.mark.parametrize("stem", BROKEN)
def test_a_broken_file_gets_one_clear_answer_and_a_ping_after_it_another(
    served: Project, stem: str
) -> None:
    """Cases W01, S03, S04, S07."""
    raw, named = BROKEN[stem]
    served.drop(raw, stem)
    assert served.ping()["status"] == "completed"
    response = served.wait(stem)
    assert response["error"]["code"] == "invalid_command"
    assert response["error"]["outcome"] == "not_started"
    assert named in response["error"]["message"]
    assert not served.command_path(stem).exists()
    assert len(served.rejected()) == 1
    assert len(served.events("file_rejected")) == 1


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "link"])
def test_what_is_no_file_is_set_aside_at_once(served: Project, kind: str, tmp_path: Path) -> None:
    """Case E07."""
    path = served.command_path(kind)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "s"))
        os.rename(tmp_path / "s", path)
        listener.close()
    else:
        path.symlink_to("/dev/zero")
    response = served.wait(kind)
    assert "regular" in response["error"]["message"]
    assert served.ping()["status"] == "completed"


@pytest.mark.parametrize(
    "stem", ["-rf", "CON", "a b", "é", "x" * 220, "x.result", "a:b", os.fsdecode(b"\xff")]
)
def test_an_unsafe_name_is_set_aside_without_a_response_file(served: Project, stem: str) -> None:
    """Case S11."""
    served.drop(b'{"id": "../../evil", "type": "ping"}', stem)
    until(served.rejected, "the rejected record")
    served.ping()
    names = os.listdir(served.root / "responses")
    assert all(len(name) == 41 for name in names), names


def test_the_same_command_again_is_answered_again_and_not_run_again(served: Project) -> None:
    """Case S10."""
    args = {"script": "bin/note.sh", "args": ["once"]}
    command_id = str(uuid.uuid4())
    raw = json.dumps({"id": command_id, "type": "execute_script", "args": args}).encode()
    served.drop(raw, command_id)
    first = served.wait(command_id)
    (served.root / "responses" / f"{command_id}.json").unlink()
    served.drop(raw, command_id)
    assert served.wait(command_id) == first
    until(lambda: not served.command_path(command_id).exists(), "the second file to go")
    assert ran(served) == ["once"]


def test_the_same_id_with_other_contents_is_a_duplicate(served: Project) -> None:
    """Case S10."""
    command_id = served.send("ping")
    first = served.wait(command_id)
    served.drop(json.dumps({"id": command_id, "type": "cancel"}).encode(), command_id)
    until(served.rejected, "the duplicate to be rejected")
    assert served.wait(command_id) == first  # never overwritten
    served.drop(json.dumps({"id": command_id, "type": "ping"}).encode(), "other-name")
    assert served.wait("other-name")["error"]["code"] == "duplicate"


def test_a_file_not_named_after_its_id_is_told_how_to_be_named(served: Project) -> None:
    command_id = str(uuid.uuid4())
    served.drop(json.dumps({"id": command_id, "type": "ping"}).encode(), "my-ping")
    response = served.wait("my-ping")
    assert f"{command_id}.json" in response["error"]["message"]


def test_a_misspelt_field_is_a_warning_in_the_response(served: Project) -> None:
    command_id = served.send("ping", tll=3)
    assert "ttl" in served.wait(command_id)["warnings"][0]


def test_an_expired_command_never_runs_and_is_told(served: Project) -> None:
    """Case S15."""
    args = {"script": "bin/note.sh", "args": ["late"]}
    response = served.ask("execute_script", args, ttl=1, timestamp="2020-01-01T00:00:00")
    assert response["error"]["code"] == "expired"
    assert response["attempt"] == 0
    assert ran(served) == []


def test_old_and_future_file_times_do_not_matter(served: Project, tmp_path: Path) -> None:
    """Case S14."""
    for offset in (-3 * 3600, 2 * 86400):
        command_id = str(uuid.uuid4())
        source = tmp_path / "copied.json"
        source.write_text(json.dumps({"id": command_id, "type": "ping", "ttl": 60}))
        moment = source.stat().st_mtime + offset
        os.utime(source, (moment, moment))
        source.rename(served.command_path(command_id))
        assert served.wait(command_id)["status"] == "completed"


def test_meta_is_echoed_and_the_trace_is_logged(served: Project) -> None:
    meta = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "n": [1]}
    command_id = served.send("ping", meta=meta)
    assert served.wait(command_id)["meta"] == meta
    line = until(
        lambda: [e for e in served.events("command_settled") if e["command_id"] == command_id],
        "the log line",
    )[0]
    assert line["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_hundred_waiting_commands_and_one_half_written_are_answered_after_the_start(
    project: Project, daemon: Daemon
) -> None:
    """Case W10."""
    ids = [project.send("ping") for _ in range(100)]
    last = str(uuid.uuid4())
    whole = json.dumps({"id": last, "type": "ping"})
    with project.command_path(last).open("w") as file:
        file.write(whole[:20])
        file.flush()
        daemon.configure({"path": project.root, "settle": "300ms"}).start()
        for command_id in ids:
            project.wait(command_id)
        assert project.look(last) is None
        file.write(whole[20:])
    assert project.wait(last)["status"] == "completed"
    assert project.rejected() == []


def test_higher_priority_goes_first_then_age(project: Project, daemon: Daemon) -> None:
    project.write("note.sh", '#!/bin/sh\necho "$1" >> ran\n', 0o755)
    for name, priority in [("c", 0), ("a", 5), ("d", 0), ("b", 5), ("e", -1)]:
        project.send("execute_script", {"script": "note.sh", "args": [name]}, priority=priority)
        # Arrival is the inode's change time: coarse, so let it move on.
        threading.Event().wait(0.02)
    root = {"path": project.root, "workers": 1, "scripts": {"allow": ["note.sh"]}}
    daemon.configure(root).start()
    until(lambda: len(ran(project)) == 5, "all to run")
    assert ran(project) == ["a", "b", "c", "d", "e"]


def test_past_max_pending_the_newest_are_refused_busy_but_pings_are_not(
    project: Project, daemon: Daemon
) -> None:
    project.write("note.sh", '#!/bin/sh\necho "$1" >> ran\n', 0o755)
    ids = []
    for number in range(12):
        args = {"script": "note.sh", "args": [str(number)]}
        ids.append(project.send("execute_script", args))
        threading.Event().wait(0.02)  # arrival is the inode's change time, which is coarse
    ping = project.send("ping")
    root = {"path": project.root, "max_pending": 5, "scripts": {"allow": ["note.sh"]}}
    daemon.configure(root).start()
    codes = [(project.wait(i)["error"] or {}).get("code") for i in ids]
    assert codes == [None] * 5 + ["busy"] * 7
    assert sorted(ran(project), key=int) == [str(number) for number in range(5)]
    assert project.wait(ping)["status"] == "completed"


@pytest.mark.skipif(shutil.which("vim.tiny") is None, reason="vim.tiny is not installed")
def test_a_command_saved_by_an_editor_is_run_once(served: Project) -> None:
    """Case W12."""
    command_id = str(uuid.uuid4())
    command = {
        "id": command_id,
        "type": "execute_script",
        "args": {"script": "bin/note.sh", "args": ["once"]},
    }
    source = served.write("command.txt", json.dumps(command))
    target = served.command_path(command_id)
    save = ["-c", f"saveas {target}", "-c", "wq"]
    subprocess.run(["vim.tiny", "-n", "-es", "-u", "NONE", *save, str(source)], check=True)
    assert served.wait(command_id)["status"] == "completed"
    served.ping()
    assert ran(served) == ["once"]

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fileipc.watch import choose, make_observer

from .hints_recorder import Recorder

LINUX = sys.platform.startswith("linux")


def test_a_local_folder_is_watched_by_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "file_system", lambda _folder: "ext4")
    observer, warning = make_observer(str(tmp_path), Recorder(), kind="auto")
    assert observer.kind == ("inotify" if LINUX else "native")
    assert warning is None


def test_polling_is_had_for_the_asking(tmp_path: Path) -> None:
    observer, warning = make_observer(str(tmp_path), Recorder(), kind="polling")
    assert (observer.kind, warning) == ("polling", None)


@pytest.mark.skipif(not LINUX, reason="file system types are known on Linux only")
def test_a_network_folder_is_polled_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "file_system", lambda _folder: "nfs4")
    observer, warning = make_observer(str(tmp_path), Recorder(), kind="auto", poll_interval=0.5)
    assert observer.kind == "polling"
    assert warning is not None
    assert "nfs4" in warning
    assert "0.5 s" in warning


@pytest.mark.skipif(not LINUX, reason="file system types are known on Linux only")
def test_insisting_on_inotify_on_a_network_folder_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "file_system", lambda _folder: "fuse.sshfs")
    observer, warning = make_observer(str(tmp_path), Recorder(), kind="inotify")
    assert observer.kind == "inotify"
    assert warning is not None
    assert "fuse.sshfs" in warning


def test_a_missing_folder_is_left_to_start(tmp_path: Path) -> None:
    observer, warning = make_observer(str(tmp_path / "missing"), Recorder(), kind="auto")
    assert warning is None
    with pytest.raises(FileNotFoundError):
        observer.start()


CHILD = """
import json, sys
from fileipc.watch import choose, make_observer
choose.file_system = lambda _folder: "ext4"
class Nobody:
    def hint(self, name): ...
    def rescan(self, reason): ...
    def lost(self, reason): ...
found = []
for folder in sys.argv[1:]:
    observer, warning = make_observer(folder, Nobody(), kind="auto")
    observer.start()
    found.append([observer.kind, warning])
print(json.dumps(found))
try:
    make_observer(sys.argv[-1], Nobody(), kind="inotify")[0].start()
except OSError as error:
    print(error.strerror)
"""


def under_limit(sysctl: str, value: int, folders: list[Path]) -> tuple[list[list[str]], str]:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    limit = f"echo {value} > /proc/sys/user/{sysctl}"
    if subprocess.run(
        ["unshare", "-U", "-r", "sh", "-c", limit], capture_output=True, check=False
    ).returncode:
        pytest.skip("user namespaces are not to be had here")
    done = subprocess.run(
        [
            *("unshare", "-U", "-r", "sh", "-c", f'{limit} && exec "$0" "$@"'),
            *(sys.executable, "-c", CHILD, *map(str, folders)),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    first, last = done.stdout.splitlines()
    return json.loads(first), last


def test_a_folder_past_the_limit_of_watches_is_polled_and_names_the_sysctl(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    found, insisted = under_limit("max_inotify_watches", 1, folders)
    assert found[0] == ["inotify", None]
    assert found[1][0] == "polling"
    assert "fs.inotify.max_user_watches (now " in found[1][1]
    assert insisted == "inotify watch limit reached"


def test_without_an_inotify_instance_the_folder_is_polled_and_names_the_sysctl(
    tmp_path: Path,
) -> None:
    found, insisted = under_limit("max_inotify_instances", 0, [tmp_path])
    assert found[0][0] == "polling"
    assert "fs.inotify.max_user_instances (now " in found[0][1]
    assert insisted == "inotify instance limit reached"


def test_watching_needs_neither_the_engine_nor_the_logs(tmp_path: Path) -> None:
    script = "import sys, fileipc.watch; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert "structlog" not in done.stdout.split()
    assert "pebble" not in done.stdout.split()

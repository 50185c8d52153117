"""`fileipc run --detach`: the daemon goes on alone, and says at the terminal how it went."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from .harness import Project, until


def detach(folder: Path, *options: str, umask: int = 0o022) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fileipc", "run", "--detach", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        umask=umask,
        check=False,
    )


def test_relative_paths_count_from_the_callers_folder_and_files_are_private(
    tmp_path: Path,
) -> None:
    """Case L08."""
    project = Project(tmp_path / "shop").make()
    (tmp_path / "daemon.yaml").write_text("roots: [{path: shop/.ipc}, {path: later/.ipc}]\n")
    done = detach(tmp_path, "--config", "daemon.yaml", umask=0)
    assert done.returncode == 0, done.stderr
    assert "not served yet: later:" in done.stderr
    assert "fileipc init" in done.stderr
    pid = int(done.stdout.split()[-1])
    try:
        command_id = project.send("ping")
        assert project.wait(command_id)["status"] == "completed"
        response = project.root / "responses" / f"{command_id}.json"
        assert response.stat().st_mode & 0o777 == 0o600
        assert project.events("command_settled")
        assert project.status()["pid"] == pid
        again = detach(tmp_path, "--config", "daemon.yaml")
        assert again.returncode == 0  # the other root is still to be served by somebody
        os.kill(int(again.stdout.split()[-1]), signal.SIGTERM)
        alone = detach(tmp_path, "--root", "shop")
        assert alone.returncode == 75
        assert f"served by pid {pid}" in alone.stderr
    finally:
        os.kill(pid, signal.SIGTERM)
        until(lambda: not Path(f"/proc/{pid}").exists(), "the daemon to end")
    assert project.status()["state"] == "stopped"


def test_a_wrong_configuration_is_told_at_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "daemon.yaml").write_text("roots:\n  - path: shop\n    wrokers: 2\n")
    done = detach(tmp_path, "--config", "daemon.yaml")
    assert done.returncode == 78
    assert "daemon.yaml:3" in done.stderr
    assert "workers" in done.stderr

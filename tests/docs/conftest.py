"""The README's sample project, served; and commands run as a reader would run them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fileipc.spool.layout import Layout
from fileipc.spool.probe import is_served

from ..daemon.harness import until
from .readme import Document


class Shell:
    """Runs commands with this environment's `fileipc` and `python3`, and a home of its own."""

    def __init__(self, home: Path) -> None:
        kept = {
            name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ
        }
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {**kept, "PATH": path, "HOME": str(home)}

    def run(self, *argv: str, cwd: Path) -> str:
        """Run to the end and return stdout; a failure shows everything it printed."""
        done = subprocess.run(
            argv, cwd=cwd, env=self.env, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def stop_daemon(root: Path) -> None:
    """End the detached daemon of a root, and wait until it is gone."""
    status = json.loads((root / "status.json").read_bytes())
    os.kill(status["pid"], signal.SIGTERM)
    until(lambda: not is_served(Layout(str(root))), "the daemon to stop")


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def shop(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The project that the README makes to try the types on, served as it says."""
    readme = Document()
    folder = tmp_path_factory.mktemp("readme")
    (folder / "fileipc.yaml").write_text(readme.block("try-config"))
    shell.run("sh", "-euc", readme.block("try-project"), cwd=folder)
    project = folder / "shop"
    shell.run("sh", "-euc", readme.block("try-run"), cwd=project)
    yield project
    stop_daemon(project / ".ipc")

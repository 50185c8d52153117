"""A root, a fake daemon that serves it, and the program run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..client.fake_daemon import FakeDaemon, make_root

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


@pytest.fixture
def fake(root: Path) -> Iterator[FakeDaemon]:
    with FakeDaemon(root) as fake:
        yield fake


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run("send", "ping", stdin="")`: the program, in the project's folder."""

    def run(*args: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "fileipc", *args],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, **env},
        )

    return run

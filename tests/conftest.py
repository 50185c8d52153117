"""What every test may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .daemon.harness import Daemon, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project with a root."""
    return Project(tmp_path / "project").make()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that is configured and started by the test, and surely gone after it."""
    daemon = Daemon(tmp_path)
    yield daemon
    if daemon.alive:
        daemon.kill()

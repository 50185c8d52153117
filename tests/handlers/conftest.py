"""A project for handlers, and one executor of each kind for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fileipc.executors.child import ChildExecutor
from fileipc.executors.process import ProcessExecutor

from .harness import Place


@pytest.fixture(scope="session")
def children() -> Iterator[ChildExecutor]:
    executor = ChildExecutor()
    yield executor
    executor.close()


@pytest.fixture(scope="session")
def processes() -> Iterator[ProcessExecutor]:
    executor = ProcessExecutor()
    yield executor
    executor.close()


@pytest.fixture
def place(tmp_path: Path, children: ChildExecutor) -> Place:
    return Place(tmp_path / "p", children)

"""A root, and a fake daemon that serves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .fake_daemon import FakeDaemon, make_root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


@pytest.fixture
def fake(root: Path) -> Iterator[FakeDaemon]:
    with FakeDaemon(root) as fake:
        yield fake

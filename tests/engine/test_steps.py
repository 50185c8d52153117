"""Steps: patience while the disk fails, and an end after which nothing changes the root."""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fileipc.engine.health import Health
from fileipc.engine.steps import Abandoned, Steps
from fileipc.spool.atomic import Writer
from fileipc.spool.create import create_root, prepare_root
from fileipc.spool.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(str(tmp_path / ".ipc"))
    create_root(layout, Writer())
    prepare_root(layout, Writer())
    return layout


@pytest.fixture
def health() -> Health:
    return Health("root", lambda _fact: None, lambda: None)


def failing(times: int, number: int = errno.ENOSPC) -> Callable[[], str]:
    left = [times]

    def step() -> str:
        if left[0] > 0:
            left[0] -= 1
            raise OSError(number, "no")
        return "done"

    return step


def test_a_full_disk_is_waited_out_and_told_meanwhile(layout: Layout, health: Health) -> None:
    """Case S01."""
    steps = Steps(layout, health)
    assert steps.do(failing(2)) == "done"
    assert health.reason is None
    with pytest.raises(OSError, match="no"):
        steps.do(failing(1), patient=False)


def test_a_hurried_step_gives_up_at_its_first_failure(layout: Layout, health: Health) -> None:
    steps = Steps(layout, health)
    steps.hurry()
    assert steps.do(failing(0)) == "done"
    with pytest.raises(Abandoned):
        steps.do(failing(1))
    assert health.reason is not None


def test_after_the_close_no_step_is_done_and_the_close_waits_for_the_last(
    layout: Layout, health: Health
) -> None:
    steps = Steps(layout, health)
    inside, leave = threading.Event(), threading.Event()
    done: list[str] = []

    def long_step() -> None:
        inside.set()
        leave.wait(30)
        done.append("long")

    worker = threading.Thread(target=lambda: steps.do(long_step))
    worker.start()
    inside.wait(30)
    assert not steps.close(0.01)
    threading.Timer(0.05, leave.set).start()
    assert steps.close(30)
    assert done == ["long"]
    with pytest.raises(Abandoned):
        steps.do(lambda: done.append("late"))
    worker.join()
    assert done == ["long"]


def test_a_vanished_folder_breaks_the_root_and_a_vanished_file_does_not(
    layout: Layout, health: Health
) -> None:
    steps = Steps(layout, health)
    with pytest.raises(FileNotFoundError):
        steps.do(failing(1, errno.ENOENT))
    assert health.broken is None
    shutil.rmtree(layout.archive)
    with pytest.raises(OSError, match="no"):
        steps.do(failing(1, errno.ENOENT), patient=False)
    assert health.broken is not None

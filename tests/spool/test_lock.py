"""One daemon per root, told by a lock that the kernel gives back when its holder dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fileipc.errors import RootHeld
from fileipc.spool.atomic import Writer
from fileipc.spool.create import create_root, prepare_root
from fileipc.spool.layout import Layout
from fileipc.spool.lock import DaemonLock, Holder
from fileipc.spool.probe import is_served, wait_until_served

HOLD = """
import sys, signal
from fileipc.spool.atomic import Writer
from fileipc.spool.layout import Layout
from fileipc.spool.lock import DaemonLock, Holder
lock = DaemonLock(Layout(sys.argv[1]), Writer())
lock.acquire(Holder(instance="other", pid=4711, host="there", started_at="noon"))
print("held", flush=True)
signal.pause()
"""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(str(tmp_path / ".ipc"))
    create_root(layout, Writer())
    prepare_root(layout, Writer())
    return layout


def holder() -> Holder:
    return Holder(instance="me", pid=os.getpid(), host="here", started_at="now")


def test_a_second_daemon_is_told_who_holds_the_root_and_gets_it_after_a_kill(
    layout: Layout,
) -> None:
    """Cases L05, L07."""
    other = subprocess.Popen([sys.executable, "-c", HOLD, layout.path], stdout=subprocess.PIPE)
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == b"held\n"
        assert is_served(layout)
        with pytest.raises(RootHeld, match="pid 4711 on there since noon"):
            DaemonLock(layout, Writer()).acquire(holder())
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()
        other.stdout.close()
    assert not is_served(layout)
    lock = DaemonLock(layout, Writer())
    lock.acquire(holder())
    assert wait_until_served(layout, 1.0)
    lock.release()
    assert not is_served(layout)


def test_a_removed_lock_is_noticed(layout: Layout) -> None:
    """Case L01."""
    lock = DaemonLock(layout, Writer())
    lock.acquire(holder())
    assert lock.intact()
    os.unlink(layout.daemon_lock)
    assert not lock.intact()
    Path(layout.daemon_lock).touch()
    assert not lock.intact()
    lock.release()


def test_a_client_that_looks_does_not_keep_a_daemon_out(layout: Layout) -> None:
    lock = DaemonLock(layout, Writer())
    lock.acquire(holder())
    lock.release()
    for _ in range(50):
        assert not is_served(layout)
        lock.acquire(holder())
        lock.release()

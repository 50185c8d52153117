"""Killing a helper process with everything it started."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import psutil

_ROUNDS = 50  # a fork bomb may outrun any number; this one ends within a second or two
_WAIT = 2.0  # seconds to wait for the death of what was killed


def kill_tree(root: psutil.Process) -> None:
    """SIGKILL a process and all its descendants, and wait until they are dead.

    The process is stopped first, so that it starts nothing more, and killed last: as a
    subreaper it keeps the orphans of what is killed before it. A process that moved to a
    session of its own is found all the same. Does nothing where `root` is dead already, except
    for what is left of its process group.
    """
    gone: dict[int, psutil.Process] = {}
    with contextlib.suppress(psutil.Error):
        root.suspend()
    for _ in range(_ROUNDS):
        new = [child for child in _living(root) if child.pid not in gone]
        if not new:
            break
        for child in new:
            gone[child.pid] = child
            with contextlib.suppress(psutil.Error):
                child.kill()
    _kill_group(root)
    with contextlib.suppress(psutil.Error):
        root.kill()
    _await_death([root, *gone.values()])
    for pid in gone:  # orphans come to this process where it is process 1
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)


def end(process: psutil.Process) -> None:
    """SIGKILL one process, and wait until it is dead."""
    with contextlib.suppress(psutil.Error):
        process.kill()
    _await_death([process])


def stopped(process: psutil.Process) -> bool:
    """Whether it stands still until somebody lets it go on."""
    try:
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    except psutil.Error:
        return False


def alive(process: psutil.Process) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _living(root: psutil.Process) -> list[psutil.Process]:
    try:
        found = root.children(recursive=True)
    except psutil.Error:
        return []
    return [child for child in found if alive(child)]


def _await_death(processes: list[psutil.Process]) -> None:
    until = time.monotonic() + _WAIT
    pause = 0.0005
    while any(alive(process) for process in processes) and time.monotonic() < until:
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def _kill_group(root: psutil.Process) -> None:
    # While a group has members its number is given to no new process. So where the number now
    # belongs to another process than `root`, nothing of the group is left.
    if root.is_running() or not psutil.pid_exists(root.pid):
        with contextlib.suppress(OSError):
            os.killpg(root.pid, signal.SIGKILL)

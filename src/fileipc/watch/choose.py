"""The right observer for a folder: events where they can be trusted, polling where not."""

from __future__ import annotations

import errno
import os
import sys
from typing import Literal

from .mounts import events_are_silent, file_system
from .polling import PollingObserver
from .port import Hints, Observer

Kind = Literal["auto", "inotify", "polling"]

_SYSCTLS = {
    errno.EMFILE: "fs.inotify.max_user_instances",
    errno.ENOSPC: "fs.inotify.max_user_watches",
}


def make_observer(
    folder: str, hints: Hints, *, kind: Kind, poll_interval: float = 1.0
) -> tuple[Observer, str | None]:
    """An observer of `folder`, not yet started, and a warning where there is one to give.

    Args:
        kind: "inotify" and "polling" insist; "auto" polls (every `poll_interval` seconds)
            where the file system gives no events for changes from elsewhere, or where a kernel
            limit stands against inotify.

    Raises:
        OSError: inotify was insisted on, on a system that has none.
    """
    if kind == "polling":
        return PollingObserver(folder, hints, poll_interval), None
    if not sys.platform.startswith("linux"):
        if kind == "inotify":
            raise OSError(errno.ENOSYS, "inotify exists on Linux only; use observer: auto")
        from .native import NativeObserver

        return NativeObserver(folder, hints), None
    # Not at the top: elsewhere this module cannot even be imported.
    from .inotify import InotifyObserver, probe

    fs_type = file_system(folder)
    silent = fs_type is not None and events_are_silent(fs_type)
    if kind == "inotify":
        warning = None
        if silent:
            warning = (
                f"{folder} lies on {fs_type}: commands written from elsewhere come without an "
                "event and wait for the next scan; observer: polling sees them sooner"
            )
        return InotifyObserver(folder, hints), warning
    if silent:
        return PollingObserver(folder, hints, poll_interval), (
            f"{folder} lies on {fs_type}, which does not tell of changes made elsewhere; "
            f"it is polled every {poll_interval:g} s"
        )
    obstacle = probe(folder)
    if obstacle is not None and obstacle.errno in (*_SYSCTLS, errno.ENOSYS):
        return PollingObserver(folder, hints, poll_interval), _limit_warning(
            folder, obstacle, poll_interval
        )
    return InotifyObserver(folder, hints), None


def _limit_warning(folder: str, obstacle: OSError, poll_interval: float) -> str:
    polled = f"{folder} is polled every {poll_interval:g} s"
    sysctl = _SYSCTLS.get(obstacle.errno or 0)
    if sysctl is None:
        return f"this system has no inotify; {polled}"
    now = _sysctl(sysctl)
    shown = f" (now {now})" if now else ""
    return f"{obstacle.strerror}; {polled}. Raise {sysctl}{shown} to have events"


def _sysctl(name: str) -> str:
    try:
        with open(os.path.join("/proc/sys", *name.split(".")), encoding="ascii") as file:
            return file.read(32).strip()
    except OSError:
        return ""

"""What a call leaves behind in its worker that could strike the next one."""

from __future__ import annotations

import _thread
import os
import resource
import signal
from dataclasses import dataclass

_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


@dataclass(frozen=True, slots=True)
class State:
    """What of the process a call can change for the calls after it."""

    threads: int
    children: bool
    timers: bool
    umask: int
    limits: tuple[tuple[int, int], ...]

    @staticmethod
    def now() -> State:
        umask = os.umask(0o77)
        os.umask(umask)
        return State(
            threads=_thread._count(),
            children=_has_children(),
            timers=any(signal.getitimer(timer)[0] for timer in _TIMERS),
            umask=umask,
            limits=tuple(resource.getrlimit(limit) for limit in _LIMITS),
        )


def _has_children() -> bool:
    """Whether there is a child, dead or alive; orphaned descendants are children here."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True

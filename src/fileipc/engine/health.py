"""What is wrong with a root at the moment, told once when it begins and once when it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..protocol.facts import Fact, Level, Listener


class Health:
    """The troubles of one root, each under a key; safe from any thread.

    `broken` is set where the root must be taken down and started anew. `on_change` is called
    with each new trouble, so that the heartbeat tells of it at once.
    """

    def __init__(self, root: str, tell: Listener, on_change: Callable[[], None]) -> None:
        self._root = root
        self._tell = tell
        self._on_change = on_change
        self._lock = threading.Lock()
        self._troubles: dict[str, str] = {}
        self.broken: str | None = None

    def trouble(self, key: str, reason: str) -> None:
        """Something does not work now; the work goes on and tries again."""
        with self._lock:
            new = key not in self._troubles
            self._troubles[key] = reason
        if new:
            self._say("root_degraded", Level.WARNING, trouble=key, reason=reason)
            self._on_change()

    def clear(self, key: str) -> None:
        if not self._troubles:  # the usual case, without the lock
            return
        with self._lock:
            reason = self._troubles.pop(key, None)
        if reason is not None:
            self._say("root_recovered", Level.INFO, trouble=key, reason=reason)

    def break_down(self, reason: str) -> None:
        """The root cannot go on as it is; the first reason counts."""
        with self._lock:
            if self.broken is not None:
                return
            self.broken = reason
        self._say("root_broken", Level.WARNING, reason=reason)
        self._on_change()

    @property
    def reason(self) -> str | None:
        """All troubles in words; None where there are none."""
        with self._lock:
            return "; ".join(self._troubles.values()) or None

    def _say(self, event: str, level: Level, **fields: str) -> None:
        self._tell(Fact(event, level, self._root, fields))

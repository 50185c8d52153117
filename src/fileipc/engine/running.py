"""Which commands run at this moment: nothing here runs twice, and anything here can be stopped."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from ..executors.port import Stop


@dataclass(slots=True)
class Attempt:
    """One command in a worker's hands."""

    command_id: str
    type: str
    stop: Stop = field(default_factory=Stop)
    began: float = field(default_factory=time.monotonic)


class Running:
    """The table of attempts of one root; safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: dict[str, Attempt] = {}

    def begin(self, command_id: str, type_: str) -> Attempt | None:
        """Enter an attempt; None where the id is in somebody's hands already."""
        attempt = Attempt(command_id, type_)
        with self._lock:
            if self._attempts.setdefault(command_id, attempt) is not attempt:
                return None
        return attempt

    def end(self, attempt: Attempt) -> None:
        with self._lock:
            self._attempts.pop(attempt.command_id, None)

    def stop(self, command_id: str, reason: str) -> bool:
        """Ask one attempt to stop; False where it is not running."""
        with self._lock:
            attempt = self._attempts.get(command_id)
        if attempt is None:
            return False
        attempt.stop.request(reason)
        return True

    def stop_all(self, reason: str) -> None:
        with self._lock:
            attempts = list(self._attempts.values())
        for attempt in attempts:
            attempt.stop.request(reason)

    def __contains__(self, command_id: str) -> bool:
        return command_id in self._attempts

    def __len__(self) -> int:
        return len(self._attempts)

"""What the feeder's thread is told by others, and which names are in a worker's hands."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """What to do in one turn of the feeder.

    `scan`: why the whole folder is to be looked at, or None. `ended`: answer what ran out of
    time while it waited.
    """

    names: list[str]
    scan: str | None
    ended: bool


class Inbox:
    """Hints to one feeder; safe from any thread."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._names: dict[str, None] = {}
        self._scan: str | None = "start"
        self._ended = False
        self._woken = False
        self._in_flight: set[str] = set()
        self._again: set[str] = set()
        self.next_scan = 0.0
        self.stopping = False

    def hint(self, name: str) -> None:
        with self._condition:
            self._names[name] = None
            self._condition.notify()

    def rescan(self, reason: str) -> None:
        with self._condition:
            self._scan = self._scan or reason
            self._condition.notify()

    def sweep_ended(self) -> None:
        with self._condition:
            self._ended = True
            self._condition.notify()

    def wake(self) -> None:
        """Something changed that the feeder has to look at for itself."""
        with self._condition:
            self._woken = True
            self._condition.notify()

    def stop(self) -> None:
        with self._condition:
            self.stopping = True
            self._condition.notify()

    def collect(self, wait_time: Callable[[float], float]) -> Turn | None:
        """Wait until there is something to do; None: the feeder stops.

        `wait_time(now)` says how many seconds the feeder can wait without being told anything.
        """
        with self._condition:
            while True:
                if self.stopping:
                    return None
                now = time.monotonic()
                if self._scan is None and now >= self.next_scan:
                    self._scan = "timer"
                if self._names or self._scan or self._ended or self._woken:
                    break
                wait = min(wait_time(now), self.next_scan - now)
                if wait <= 0:
                    break
                self._condition.wait(wait)
            turn = Turn(list(self._names), self._scan, self._ended)
            self._names.clear()
            self._scan, self._ended, self._woken = None, False, False
        return turn

    def give(self, name: str) -> None:
        """A worker takes the name."""
        with self._condition:
            self._in_flight.add(name)

    def take_back(self, name: str) -> None:
        """The worker is done with it; hints that came meanwhile count now."""
        with self._condition:
            self._in_flight.discard(name)
            if name in self._again:
                self._again.discard(name)
                self._names[name] = None
                self._condition.notify()

    def is_given(self, name: str) -> bool:
        """Whether a worker has the name; it is looked at again when the worker is done."""
        with self._condition:
            if name not in self._in_flight:
                return False
            self._again.add(name)
            return True

    def __contains__(self, name: str) -> bool:
        return name in self._names or name in self._in_flight

    def __len__(self) -> int:
        return len(self._names)

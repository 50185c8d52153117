"""Files that cannot be judged yet wait here, silently, until they are whole or given up."""

from __future__ import annotations

import heapq
import threading
from dataclasses import dataclass

from .intake import Refusal, Unfinished


@dataclass(slots=True)
class _Held:
    fingerprint: tuple[int, int, int, int]
    unchanged_since: float
    first_seen: float
    due: float


class Holding:
    """Unfinished files of one root; safe from any thread.

    A file is judged once nobody has it open for writing and it has not changed for `settle`
    seconds; one that a writer never lets go is judged after `give_up` seconds. Times are
    monotonic except for `wall`.
    """

    def __init__(self, settle: float, give_up: float) -> None:
        self._settle = settle
        self._give_up = give_up
        self._held: dict[str, _Held] = {}
        self._due: list[tuple[float, str]] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, name: str) -> bool:
        return name in self._held

    def hold(self, file: Unfinished, *, now: float, wall: float) -> Refusal | None:
        """Keep the file waiting, or return the verdict."""
        with self._lock:
            return self._hold(file, now, wall)

    def _hold(self, file: Unfinished, now: float, wall: float) -> Refusal | None:
        held = self._held.get(file.name)
        if held is None or held.fingerprint != file.fingerprint:
            # Unchanged before it was first seen counts, unless the clock went back.
            age = min(max(0.0, wall - file.changed_at), self._settle)
            first = now if held is None else held.first_seen
            held = _Held(file.fingerprint, now - age, first, 0.0)
            self._held[file.name] = held
        quiet = now - held.unchanged_since >= self._settle
        if (quiet and not file.writer) or now - held.first_seen >= self._give_up:
            self.forget(file.name)
            return Refusal(file.name, file.failure)
        wait = self._settle if quiet else held.unchanged_since + self._settle - now
        self._schedule(file.name, held, now + max(wait, 0.05))
        return None

    def retry(self, name: str, *, now: float, delay: float) -> None:
        """Look at a name again after `delay` seconds, whatever it is."""
        with self._lock:
            held = self._held.setdefault(name, _Held((0, 0, 0, 0), now, now, 0.0))
            self._schedule(name, held, now + delay)

    def forget(self, name: str) -> None:
        self._held.pop(name, None)

    def next_due(self) -> float | None:
        with self._lock:
            return self._due[0][0] if self._due else None

    def take_due(self, now: float) -> list[str]:
        """The names to look at again; they stay held until `hold` or `forget` says otherwise."""
        names = []
        with self._lock:
            while self._due and self._due[0][0] <= now:
                due, name = heapq.heappop(self._due)
                held = self._held.get(name)
                if held is not None and held.due == due:
                    names.append(name)
        return names

    def _schedule(self, name: str, held: _Held, due: float) -> None:
        held.due = due
        heapq.heappush(self._due, (due, name))

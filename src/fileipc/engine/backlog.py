"""The waiting commands of one root: names in memory, commands on disk."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from .intake import Envelope

_Entry = tuple[int, float, str]  # priority (negated), arrival, name


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is remembered of a waiting command; seconds since 1970."""

    arrival: float
    ends_at: float


class Backlog:
    """Two lanes, each first in, first out within a priority; used by one thread.

    The inline lane is served even when every worker is busy.
    """

    def __init__(self) -> None:
        self._inline: list[_Entry] = []
        self._work: list[_Entry] = []
        self._waiting: dict[str, Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, name: str) -> bool:
        return name in self._waiting

    def push(self, envelope: Envelope, *, inline: bool) -> None:
        name = envelope.file.name
        times = envelope.timing
        self._waiting[name] = Waiting(envelope.file.arrival, min(times.expires_at, times.stale_at))
        entry = (-envelope.command.priority, envelope.file.arrival, name)
        heapq.heappush(self._inline if inline else self._work, entry)

    def pop_inline(self) -> str | None:
        return self._pop(self._inline)

    def pop_work(self) -> str | None:
        return self._pop(self._work)

    @property
    def has_inline(self) -> bool:
        return bool(self._inline)

    @property
    def has_work(self) -> bool:
        return bool(self._work)

    def take_ended(self, now: float) -> list[str]:
        """Remove and return the names whose time has passed while they waited."""
        ended = [name for name, waiting in self._waiting.items() if waiting.ends_at <= now]
        for name in ended:
            del self._waiting[name]
        return ended

    def keep_only(self, present: Iterable[str]) -> None:
        """Forget the names that are no longer on disk (withdrawn commands)."""
        gone = self._waiting.keys() - set(present)
        for name in gone:
            del self._waiting[name]

    def name_of(self, command_id: str) -> str | None:
        """The file name under which an id waits; it may differ in upper and lower case."""
        name = f"{command_id}.json"
        if name in self._waiting:
            return name
        return next((each for each in self._waiting if each.lower() == name), None)

    def oldest(self) -> float | None:
        """The arrival of the command that waits longest."""
        waiting = list(self._waiting.values())
        return min((entry.arrival for entry in waiting), default=None)

    def _pop(self, lane: list[_Entry]) -> str | None:
        while lane:
            name = heapq.heappop(lane)[2]
            if self._waiting.pop(name, None) is not None:
                return name
        return None

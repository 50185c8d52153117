"""Helper processes that wait for work: last in, first out, so that the rest can be let go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Idle(Generic[T]):
    """A stack of idle things; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: list[tuple[T, float]] = []

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        with self._lock:
            self._items.append((item, time.monotonic()))

    def take(self, fits: Callable[[T], bool] = lambda _item: True) -> T | None:
        """The one that was used last among those that fit."""
        with self._lock:
            for place in range(len(self._items) - 1, -1, -1):
                if fits(self._items[place][0]):
                    return self._items.pop(place)[0]
        return None

    def expired(self, age: float) -> list[T]:
        """Take out all that have been idle for `age` seconds."""
        limit = time.monotonic() - age
        with self._lock:
            gone = [item for item, since in self._items if since <= limit]
            self._items = [(item, since) for item, since in self._items if since > limit]
        return gone

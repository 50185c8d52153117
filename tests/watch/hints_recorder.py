"""Records what an observer tells, and lets a test wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Recorder:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.hints: list[str] = []
        self.rescans: list[str] = []
        self.losses: list[str] = []

    def hint(self, name: str) -> None:
        self._add(self.hints, name)

    def rescan(self, reason: str) -> None:
        self._add(self.rescans, reason)

    def lost(self, reason: str) -> None:
        self._add(self.losses, reason)

    def _add(self, where: list[str], text: str) -> None:
        with self._changed:
            where.append(text)
            self._changed.notify_all()

    def wait(self, done: Callable[[], object], timeout: float = 20.0) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: bool(done()), timeout), (
                f"never came; hints {self.hints}, rescans {self.rescans}, losses {self.losses}"
            )

    def wait_hint(self, name: str) -> None:
        self.wait(lambda: name in self.hints)

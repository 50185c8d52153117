"""Steps: the one way in which the engine changes a root.

A step is one of the spool's methods. It is tried again while the disk is full or failing, it is
refused once the root has been given up, and giving up waits for the steps under way: after that
another daemon may have the root.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from ..spool.layout import Layout
from .health import Health

T = TypeVar("T")
_RETRY = (0.1, 0.5, 1.0, 2.0, 5.0)  # seconds between tries


class Abandoned(Exception):
    """The root is given up, or goes down while the disk takes nothing; the next start settles."""


class Steps:
    """Steps of one root; safe from any thread."""

    def __init__(self, layout: Layout, health: Health) -> None:
        self._layout = layout
        self._health = health
        self._condition = threading.Condition()
        self._under_way = 0
        self._closed = False
        self._hurried = threading.Event()

    def do(self, step: Callable[[], T], *, patient: bool = True) -> T:
        """Do one step.

        Args:
            patient: try again until it is done. Where False, the first failure is raised: for
                threads that must not wait, and for work that may simply be done again.

        Raises:
            Abandoned: it may not be done any more.
            FileNotFoundError: the file it is about is gone (a lost race). Where one of the
                root's own folders is gone, the root is broken instead.
            OSError: it failed, and there is no patience.
        """
        tries = 0
        while True:
            self._enter()
            try:
                done = step()
            except OSError as error:
                if isinstance(error, FileNotFoundError) and self.folders_stand():
                    raise
                if not patient:
                    raise
                failed = error
            else:
                self._health.clear("write")
                return done
            finally:
                self._leave()
            self._health.trouble("write", f"cannot write to the root: {failed.strerror}")
            if self._hurried.wait(_RETRY[min(tries, len(_RETRY) - 1)]):
                raise Abandoned from failed
            tries += 1

    def folders_stand(self) -> bool:
        """Whether all folders of the root are there; breaks the root where one is gone."""
        gone = [path for path in self._layout.folders if not os.path.isdir(path)]
        if gone:
            self._health.break_down(f"{gone[0]} is gone")
        return not gone

    def hurry(self) -> None:
        """From now on the first failure of a step ends it."""
        self._hurried.set()

    def close(self, timeout: float) -> bool:
        """Refuse every further step; False where one under way did not end in `timeout` s."""
        self._hurried.set()
        end = time.monotonic() + timeout
        with self._condition:
            self._closed = True
            while self._under_way:
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._condition.wait(left)
        return True

    def _enter(self) -> None:
        with self._condition:
            if self._closed:
                raise Abandoned
            self._under_way += 1

    def _leave(self) -> None:
        with self._condition:
            self._under_way -= 1
            if self._closed:
                self._condition.notify_all()

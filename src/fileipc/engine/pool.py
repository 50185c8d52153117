"""Worker threads of one root: started when there is work, gone when there is none."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

Task = Callable[[], None]


class WorkerPool:
    """At most `size` threads; each waits `idle` seconds for more work, then ends.

    The threads are daemons of the interpreter: one that hangs in a system call must not keep
    the process from exiting.
    """

    def __init__(self, size: int, name: str, idle: float = 10.0) -> None:
        self.size = size
        self._name = name
        self._idle_for = idle
        self._condition = threading.Condition()
        self._tasks: deque[Task] = deque()
        self._threads = 0
        self._idle = 0
        self._busy = 0
        self._closed = False
        self.on_free: Callable[[], None] = lambda: None
        """Called whenever a thread is free again; must not block."""

    @property
    def free(self) -> bool:
        """Whether one more task would start at once."""
        return not self._closed and self._busy + len(self._tasks) < self.size

    @property
    def busy(self) -> int:
        return self._busy

    def submit(self, task: Task) -> None:
        """Start a task, which must not raise; only while `free`."""
        with self._condition:
            self._tasks.append(task)
            if self._idle >= len(self._tasks):
                self._condition.notify()
                return
            self._threads += 1
            number = self._threads
        thread = threading.Thread(
            target=self._work, name=f"{self._name}-worker-{number}", daemon=True
        )
        thread.start()

    def drain(self, deadline: float) -> bool:
        """Wait until no task is left; False where the deadline (monotonic) came first."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
            while self._busy or self._tasks:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._condition.wait(left)
            return True

    def _work(self) -> None:
        while (task := self._next()) is not None:
            try:
                task()
            finally:
                with self._condition:
                    self._busy -= 1
                    if self._closed:
                        self._condition.notify_all()
                self.on_free()

    def _next(self) -> Task | None:
        with self._condition:
            while not self._tasks:
                self._idle += 1
                woken = self._closed or self._condition.wait(self._idle_for)
                self._idle -= 1
                if not self._tasks and (self._closed or not woken):
                    self._threads -= 1
                    return None
            self._busy += 1
            return self._tasks.popleft()

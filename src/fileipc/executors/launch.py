"""A worker on its way, in a thread of its own: whoever waits for it can walk away.

Starting a process waits for the fork server, which may never answer; a deadline, a cancel and
the daemon's end must not wait for it too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .edge import describe
from .worker import Worker, WorkerStartError

_TRIES = 2  # the first may have met a fork server that was dying


class Launch:
    """Starts one worker. `wake` is set when it is over, and by whoever wants a look up.

    `over` is called in the launch's own thread; `worker` or `error` is set by then.
    """

    def __init__(
        self, path: tuple[str, ...], main: bool, until: float, over: Callable[[Launch], None]
    ) -> None:
        self.path = path
        self.main = main
        self.wake = threading.Event()
        self.over = False
        self.wanted = True  # somebody waits for it
        self.worker: Worker | None = None
        self.error = "it was given up"
        self._until = until
        self._over = over
        self._given_up = False
        self._trying: Worker | None = None

    def start(self) -> None:
        """Begin, in the background.

        Raises:
            RuntimeError: there can be no more threads.
        """
        threading.Thread(target=self._run, name="fileipc-launch", daemon=True).start()

    def give_up(self) -> None:
        """End it soon: nobody will want the worker."""
        self._given_up = True
        if (trying := self._trying) is not None:
            trying.give_up()
        self.wake.set()

    def _run(self) -> None:
        try:
            for _ in range(_TRIES):
                if self._given_up or time.monotonic() >= self._until or self._launched():
                    break
        finally:
            self._over(self)

    def _launched(self) -> bool:
        try:
            worker = self._trying = Worker(self.path, main=self.main)
        except Exception as error:  # noqa: BLE001  a thread's top: no descriptors, no threads
            self.error = describe(error)
            return False
        if self._given_up:
            worker.give_up()
        try:
            worker.launch(self._until)
        except WorkerStartError as error:
            self.error = str(error)
            worker.close()
            return False
        self.worker = worker
        return True

"""For folders whose events cannot be trusted: a look at regular times, whatever happened."""

from __future__ import annotations

import os
from contextlib import suppress

from watchdog.observers.api import EventEmitter, EventQueue, ObservedWatch

from .port import Hints


class PollEmitter(EventEmitter):
    """Asks for a scan of the folder every `interval` seconds."""

    def __init__(self, folder: str, hints: Hints, interval: float) -> None:
        # The queue is the emitter's way to a dispatcher; hints go straight to the root.
        super().__init__(EventQueue(), ObservedWatch(folder, recursive=False), timeout=interval)
        self.name = "fileipc-poll"
        self._folder = folder
        self._hints = hints
        self.blind = False

    def on_thread_start(self) -> None:
        # An unreadable folder must reach the caller of `start`.
        os.scandir(self._folder).close()

    def queue_events(self, timeout: float) -> None:
        if self.stopped_event.wait(timeout):
            return
        try:
            # Looked at here, in a thread of its own: a server that is away blocks for minutes.
            # Not compared by inode: some FUSE servers make up new ones.
            if os.path.isdir(self._folder):
                self._hints.rescan("poll")
            else:
                self.blind = True
                self.stopped_event.set()
                self._hints.lost("the watched folder is gone")
        except Exception as error:  # noqa: BLE001 a thread's top
            with suppress(Exception):
                self._hints.rescan(f"a poll failed: {type(error).__name__}: {error}")


class PollingObserver:
    """Watches one folder with a thread of its own; `poll_interval` in seconds."""

    kind = "polling"

    def __init__(self, folder: str, hints: Hints, poll_interval: float = 1.0) -> None:
        self._emitter = PollEmitter(os.path.abspath(folder), hints, poll_interval)

    def start(self) -> None:
        self._emitter.start()

    def stop(self) -> None:
        self._emitter.stop()
        # The thread may hang in a file system that does not answer; it is a daemon thread.
        with suppress(RuntimeError):
            self._emitter.join(timeout=1.0)

    def healthy(self) -> bool:
        return self._emitter.is_alive() and not self._emitter.blind

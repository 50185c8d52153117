"""Systems other than Linux: watchdog's own observer for the platform."""

from __future__ import annotations

import os
from contextlib import suppress

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer as PlatformObserver

from ..protocol.names import command_stem
from .port import Hints


class _Handler(FileSystemEventHandler):
    """Turns watchdog's events into hints; an error in here would end watchdog's thread."""

    def __init__(self, folder: str, hints: Hints) -> None:
        self._folder = folder
        self._hints = hints
        self.blind = False

    def on_any_event(self, event: FileSystemEvent) -> None:
        try:
            self._tell(event)
        except Exception as error:  # noqa: BLE001 a thread's top
            with suppress(Exception):
                self._hints.rescan(f"a hint failed: {type(error).__name__}: {error}")

    def _tell(self, event: FileSystemEvent) -> None:
        source, target = os.fsdecode(event.src_path), os.fsdecode(event.dest_path)
        if source == self._folder and event.event_type in ("deleted", "moved"):
            if not self.blind:
                self.blind = True
                self._hints.lost(f"the watched folder was {event.event_type}")
            return
        path = target if event.event_type == "moved" else source
        if event.is_directory or event.event_type not in ("created", "moved", "modified", "closed"):
            return
        folder, name = os.path.split(path)
        if folder == self._folder and command_stem(name) is not None:
            self._hints.hint(name)


class NativeObserver:
    """Watches one folder in whatever way the platform offers."""

    kind = "native"

    def __init__(self, folder: str, hints: Hints) -> None:
        # FSEvents reports resolved paths.
        self._folder = os.path.realpath(folder)
        self._handler = _Handler(self._folder, hints)
        self._observer = PlatformObserver()

    def start(self) -> None:
        if not os.path.isdir(self._folder):
            raise FileNotFoundError(2, "there is no such folder", self._folder)
        self._observer.schedule(self._handler, self._folder, recursive=False)
        self._observer.start()

    def stop(self) -> None:
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join(timeout=5.0)

    def healthy(self) -> bool:
        emitters = self._observer.emitters
        return (
            self._observer.is_alive()
            and bool(emitters)
            and all(emitter.is_alive() for emitter in emitters)
            and not self._handler.blind
            and os.path.isdir(self._folder)
        )

"""The supervisor: many roots, one end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from ..config.settings import RootSettings
from ..protocol.facts import Fact, Level
from ..protocol.requests import Request
from .root import Root, State
from .serving import Surroundings

_START_POLL = 0.01
_LAST_WORD = 12.0  # seconds past the drain for kills to be settled


class Requests(Protocol):
    """Where requests come from (signals, an embedding program)."""

    def wait(self, timeout: float | None) -> frozenset[Request]:
        """Block until there is a request, or for `timeout` seconds."""
        ...


class Supervisor:
    """Starts a `Root` for each one configured, and stops them together."""

    def __init__(
        self, roots: Sequence[RootSettings], around: Surroundings, *, stop_timeout: float
    ) -> None:
        self._around = around
        self._stop_timeout = stop_timeout
        self.roots = [Root(settings, around) for settings in roots]

    def start(self) -> None:
        """Start all roots; each has a thread of its own, and none waits for another."""
        for root in self.roots:
            root.start()

    @property
    def tried(self) -> bool:
        """Whether each root has been tried for the first time."""
        return all(root.wait_first(0.0) for root in self.roots)

    @property
    def all_held(self) -> bool:
        """Whether every root is served by another daemon."""
        return bool(self.roots) and all(root.state is State.STANDBY for root in self.roots)

    def holders(self) -> str:
        """Who serves the roots in our place, in words."""
        return "; ".join(str(root.held_by) for root in self.roots if root.held_by is not None)

    def unserved(self) -> list[str]:
        """The roots that are not served at the moment, each with the reason."""
        reasons = ((root.settings.name, root.why_not()) for root in self.roots)
        return [f"{name}: {reason}" for name, reason in reasons if reason is not None]

    def run(self, requests: Requests, on_tried: Callable[[], bool]) -> None:
        """Start, wait for the request to stop, then stop.

        `on_tried` is called once every root was tried; False from it ends the run.
        """
        self.start()
        pending = True
        while True:
            asked = requests.wait(_START_POLL if pending else None)
            if pending and self.tried:
                pending = False
                served = sum(root.state is State.SERVING for root in self.roots)
                self._say("daemon_ready", Level.INFO, roots=len(self.roots), served=served)
                if not on_tried():
                    asked |= {Request.STOP}
            if Request.RELOAD in asked:
                self._say("reload_ignored", Level.WARNING, reason="restart to load changes")
            if Request.STOP in asked or Request.STOP_NOW in asked:
                self.stop(requests, now=Request.STOP_NOW in asked)
                return

    def stop(self, requests: Requests | None = None, *, now: bool = False) -> bool:
        """Drain and stop; a STOP_NOW among the requests cuts it short.

        Returns whether every root came to its end.
        """
        self._say("daemon_stopping", Level.INFO, now=now)
        drain = 0.0 if now else self._stop_timeout
        for root in self.roots:
            root.stop(drain)
        if now:
            self._hurry()
        end = time.monotonic() + drain + _LAST_WORD
        while not all(root.join(0.0) for root in self.roots) and time.monotonic() < end:
            if requests is None:
                time.sleep(0.02)
            elif {Request.STOP, Request.STOP_NOW} & requests.wait(0.05):
                self._hurry()
                end = min(end, time.monotonic() + _LAST_WORD)
        clean = all(root.join(0.0) for root in self.roots)
        self._say("daemon_stopped", Level.INFO, clean=clean)
        return clean

    def _hurry(self) -> None:
        for root in self.roots:
            root.hurry()

    def _say(self, event: str, level: Level, **fields: object) -> None:
        self._around.tell(Fact(event, level, None, fields))

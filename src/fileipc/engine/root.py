"""The life of one root: waiting, serving, broken, serving again; alone, whatever others do."""

from __future__ import annotations

import threading
import time
import traceback
from enum import StrEnum

from ..config.project import apply_project_config
from ..config.settings import RootSettings
from ..errors import ConfigError, RootError, RootHeld, RootMissing
from ..protocol.facts import Fact, Level
from .serving import Serving, Surroundings

_BACKOFF = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
_BROKEN_FOR = 2.0  # seconds a broken root is left alone at least
_MISSING_EVERY = 1.0  # a folder that is not there is looked for this often
_STANDBY_EVERY = 1.0


class State(StrEnum):
    """Where a root stands."""

    STARTING = "starting"
    WAITING = "waiting"  # its folder is not there
    STANDBY = "standby"  # another daemon serves it
    SERVING = "serving"
    BROKEN = "broken"
    STOPPED = "stopped"


class Root:
    """One thread that takes the root, looks after it, and takes it again when it broke."""

    def __init__(self, settings: RootSettings, around: Surroundings) -> None:
        self.settings = settings
        self._around = around
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._settled = threading.Event()
        self._drain = 0.0
        self._serving: Serving | None = None
        self._said: str | None = None
        self.state = State.STARTING
        self.held_by: RootHeld | None = None
        self._thread = threading.Thread(
            target=self._live, name=f"{settings.name}-root", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def wait_first(self, timeout: float | None = None) -> bool:
        """Wait until the first try to serve the root has ended, well or not."""
        return self._settled.wait(timeout)

    def stop(self, drain: float) -> None:
        """Ask the root to stop, with `drain` seconds for what runs; does not wait."""
        self._drain = drain
        self._stopping.set()
        self._wake.set()

    def hurry(self) -> None:
        """Stop now, whatever runs."""
        self._drain = 0.0
        self._stopping.set()
        self._wake.set()
        serving = self._serving
        if serving is not None:
            serving.hurry()

    def join(self, timeout: float) -> bool:
        """Wait for the end; False where it did not come in time."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _live(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            pause = self._serve_once(failures)
            self._settled.set()
            failures = 0 if time.monotonic() - began > 60.0 else failures + 1
            self._stopping.wait(pause)
        self.state = State.STOPPED
        self._settled.set()

    def _serve_once(self, failures: int) -> float:
        """Serve until it stops or breaks; returns seconds to wait before the next try."""
        backoff = _BACKOFF[min(failures, len(_BACKOFF) - 1)]
        try:
            settings = apply_project_config(self.settings)
            serving = Serving(settings, self._around, self._wake.set)
        except RootMissing as error:
            self._pause(State.WAITING, "root_waiting", Level.WARNING, str(error))
            return _MISSING_EVERY
        except RootHeld as error:
            self.held_by = error
            self._pause(State.STANDBY, "root_held", Level.WARNING, str(error))
            return _STANDBY_EVERY
        except (RootError, ConfigError) as error:
            self._pause(State.BROKEN, "root_refused", Level.ERROR, str(error))
            return backoff
        except Exception as error:  # noqa: BLE001  a thread's top: this root is tried again
            trace = traceback.format_exc()
            self._pause(State.BROKEN, "root_failed", Level.ERROR, str(error), trace=trace)
            return backoff
        self._keep(serving)
        # Whoever removes the root must find it still for a moment, or `rm -rf` never ends.
        return 0.0 if self._stopping.is_set() else max(backoff, _BROKEN_FOR)

    def why_not(self) -> str | None:
        """Why the root is not served at the moment; None where it is."""
        return None if self.state is State.SERVING else self._said or str(self.state)

    def _keep(self, serving: Serving) -> None:
        self._serving = serving
        self.held_by, self._said = None, None
        try:
            serving.start()
            self.state = State.SERVING
            self._settled.set()
            while not self._stopping.is_set() and serving.health.broken is None:
                self._wake.wait(serving.tick())
                self._wake.clear()
        except Exception:  # noqa: BLE001  a thread's top: this root is taken down and tried again
            self._say("root_failed", Level.ERROR, trace=traceback.format_exc())
        finally:
            if not self._stopping.is_set():
                self.state = State.BROKEN
            self._stop(serving)
            self._serving = None

    def _stop(self, serving: Serving) -> None:
        try:
            # A broken root gives what runs a moment, not the whole drain.
            serving.stop(self._drain if self._stopping.is_set() else 1.0)
        except Exception:  # noqa: BLE001  a thread's top: the root may still be taken again
            self._say("root_failed", Level.ERROR, trace=traceback.format_exc())

    def _pause(self, state: State, event: str, level: Level, reason: str, **more: str) -> None:
        """Note why the root is not served; said once, not at each try."""
        self.state = state
        if reason != self._said:
            self._said = reason
            self._say(event, level, reason=reason, **more)

    def _say(self, event: str, level: Level, **fields: str) -> None:
        self._around.tell(Fact(event, level, self.settings.name, fields))

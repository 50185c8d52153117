"""One root while it is served: every part of it, built, started and stopped in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from ..config.owners import Owners
from ..config.settings import Durability, Mode, RootSettings
from ..dialects import NATIVE
from ..executors.child import ChildExecutor
from ..executors.inline import InlineExecutor
from ..executors.process import ProcessExecutor
from ..handlers.port import Handler, Scope
from ..handlers.registry import Registry
from ..protocol.facts import Fact, Level, Listener
from ..protocol.identity import Identity
from ..protocol.models import RootStatus
from ..protocol.names import parse_id
from ..protocol.times import iso
from ..spool.atomic import GROUP, PRIVATE, Writer
from ..spool.create import folder_group, folder_identity, prepare_root
from ..spool.layout import Layout
from ..spool.lock import DaemonLock, Holder
from ..spool.store import Spool
from ..watch.choose import make_observer
from .feeder import Feeder, FeederRules
from .health import Health
from .intake import Intake, IntakeRules
from .janitor import Janitor
from .pool import WorkerPool
from .recovery import recover_claims
from .running import Running
from .settle import Settler
from .work import Executors, Work, WorkRules

IDLE_INTERVAL = 20.0  # seconds between heartbeats of an idle root
BUSY_INTERVAL = 1.0
_KILL_TIME = 8.0  # seconds for killed handlers to be settled at a stop


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a root gets from whoever runs it.

    `open_log` makes the listener for one root's own log files once its folders exist; `wake`
    asks the root's thread to look after it now.
    """

    identity: Identity
    tell: Listener
    open_log: Callable[[RootSettings, Layout], Listener]
    handlers: tuple[Handler, ...] = ()
    import_main: bool = False


class Serving:
    """A root being served; made by the root's own thread, which also ticks and stops it."""

    def __init__(
        self, settings: RootSettings, around: Surroundings, wake: Callable[[], None]
    ) -> None:
        """Take the root: check it, lock it.

        Raises:
            RootMissing, RootHeld, RootError: it cannot be served now.
        """
        self._settings = settings
        self._identity = around.identity
        self._around = around
        self._wake = wake
        self.layout = Layout(settings.path, NATIVE)
        modes = GROUP if settings.mode is Mode.GROUP else PRIVATE
        self._writer = Writer(modes, settings.durability is Durability.POWER)
        prepare_root(self.layout, self._writer)
        self._lock = DaemonLock(self.layout, self._writer)
        self._lock.acquire(
            Holder(
                instance=around.identity.instance,
                pid=around.identity.pid,
                host=around.identity.host,
                started_at=around.identity.started_at,
            )
        )
        try:
            self._build()
        except BaseException:
            self._lock.release()
            raise

    def _build(self) -> None:
        settings, name = self._settings, self._settings.name
        self._folders = self._folder_identities()
        log = self._around.open_log(settings, self.layout)

        def tell(fact: Fact) -> None:
            # Not into a root that was taken away: `rm -rf` would find it growing again.
            if self.health.broken is None:
                log(fact)
            self._around.tell(fact)

        self._tell: Listener = tell
        self._abandon = threading.Event()
        self.health = Health(name, tell, self._wake)
        self._running = Running()
        self._spool = Spool(self.layout, self._writer)
        self._settler = Settler(
            self._spool,
            NATIVE,
            root=name,
            tell=tell,
            health=self.health,
            inline_limit=settings.limits.inline,
            abandon=self._abandon,
        )
        intake = Intake(
            self._spool,
            NATIVE,
            IntakeRules(
                max_bytes=settings.limits.command,
                max_depth=settings.limits.depth,
                default_ttl=settings.ttl,
                stale_after=settings.stale_after,
                owner_allowed=Owners(settings, folder_group(self.layout.path)).allows,
            ),
        )
        self._registry = Registry.build(settings, self).with_handlers(self._around.handlers)
        self._processes = ProcessExecutor(import_main=self._around.import_main)
        self._executors = Executors(InlineExecutor(), self._processes, ChildExecutor())
        work = Work(
            self._spool,
            self._settler,
            self._registry,
            self._executors,
            self._running,
            scope=Scope(root=self.layout.path, project=settings.project),
            rules=WorkRules(
                owner=self._identity.instance,
                pid=self._identity.pid,
                host=self._identity.host,
                max_attempts=settings.max_attempts,
                result_limit=settings.limits.response,
            ),
            root=name,
            tell=tell,
            look_again=lambda file: self._feeder.hint(file),
        )
        self._pool = WorkerPool(settings.workers, name)
        self._feeder = Feeder(
            self._spool,
            intake,
            self._settler,
            work,
            self._pool,
            self.health,
            rules=FeederRules(
                rescan=settings.rescan,
                settle=settings.settle,
                give_up=settings.stale_after,
                max_pending=settings.max_pending,
            ),
            root=name,
            tell=tell,
            on_busy=self._on_busy,
        )
        self._janitor = Janitor(
            self._spool,
            self._feeder,
            self._running,
            self.health,
            settings.retention,
            root=name,
            tell=tell,
            shrink=self._executors.shrink,
        )
        self._observer, self._watch_warning = make_observer(
            self.layout.commands, self._feeder, kind=settings.observer.value
        )
        self._intake, self._work = intake, work
        self._idle = False

    def start(self) -> None:
        """Recover, then watch, then scan: what comes in between is seen by one of the two."""
        recovered = recover_claims(self._spool, self._intake, self._settler, self._work)
        self._observer.start()
        self._feeder.start()
        self._feeder.wait_scanned(timeout=60.0)
        self.beat("serving")
        self._say(
            "root_serving",
            Level.INFO,
            path=self.layout.path,
            observer=self._observer.kind,
            workers=self._settings.workers,
            recovered=recovered,
            waiting=self._feeder.waiting,
        )
        if self._watch_warning:
            self._say("events_not_trusted", Level.WARNING, reason=self._watch_warning)

    def tick(self) -> float:
        """Look after the root; returns seconds until the next look is due."""
        if self.health.broken is None:
            self._examine()
        if self.health.broken is None:
            self._janitor.tick()
            self.beat("degraded" if self.health.reason else "serving")
        busy = bool(self._running) or self._feeder.waiting > 0 or self.health.reason is not None
        self._idle = not busy
        return BUSY_INTERVAL if busy else IDLE_INTERVAL

    def stop(self, drain: float) -> None:
        """Take nothing new, let what runs end within `drain` seconds, then end it."""
        self._observer.stop()
        self._feeder.stop()
        if not self._pool.drain(time.monotonic() + drain):
            self._running.stop_all("interrupted")
            if not self._pool.drain(time.monotonic() + _KILL_TIME):
                self._abandon.set()
                self._pool.drain(time.monotonic() + 1.0)
        self._executors.close()
        self._spool.claims.close()
        if self.health.broken is None:
            self.beat("stopped")
        self._say("root_stopped", Level.INFO, waiting=self._feeder.waiting)
        self._lock.release()

    def hurry(self) -> None:
        """Stop everything that runs, now."""
        self._running.stop_all("interrupted")
        self._abandon.set()

    # -- what ping and cancel ask -------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        return {
            "version": self._identity.version,
            "instance": self._identity.instance,
            "uptime_s": round(time.monotonic() - self._identity.started, 3),
            "root": self._settings.name,
            "waiting": self._feeder.waiting,
            "running": max(0, len(self._running) - 1),  # without the ping itself
        }

    def cancel(self, command_id: str) -> str:
        target = parse_id(command_id)
        if target is None:
            return "unknown"
        if self._running.stop(target, "cancelled"):
            return "cancelling"
        if self._feeder.cancel_waiting(target):
            return "cancelled"
        if self._running.stop(target, "cancelled"):  # it was taken in the meantime
            return "cancelling"
        return "unknown" if self._spool.find_final(target) is None else "finished"

    # -- the heartbeat ------------------------------------------------------------------------

    def beat(self, state: str) -> None:
        """Write `status.json`."""
        now = time.time()
        oldest = self._feeder.oldest_arrival()
        tally = self._settler.tally
        status = RootStatus(
            state=state,
            reason=self.health.broken or self.health.reason,
            instance=self._identity.instance,
            pid=self._identity.pid,
            pid_started=self._identity.pid_started,
            host=self._identity.host,
            boot_id=self._identity.boot_id,
            version=self._identity.version,
            started_at=self._identity.started_at,
            timestamp=iso(now),
            interval=IDLE_INTERVAL,
            waiting=self._feeder.waiting,
            running=len(self._running),
            completed=tally.completed,
            failed=tally.failed,
            rejected=tally.rejected,
            oldest_age=round(max(0.0, now - oldest), 1) if oldest is not None else 0.0,
            workers=self._settings.workers,
            observer=self._observer.kind,
            types=list(self._registry.names()),
        )
        try:
            self._spool.write_status(msgspec.json.encode(status))
        except OSError as error:
            self.health.trouble("status", f"cannot write status.json: {error.strerror}")
        else:
            self.health.clear("status")

    def _examine(self) -> None:
        """Break the root where a part of it died or was taken away."""
        if self._folder_identities() != self._folders:
            self.health.break_down("a folder of the root was removed or replaced")
        elif not self._lock.intact():
            self.health.break_down("the daemon lock was removed")
        elif not self._observer.healthy():
            self.health.break_down("the observer died")
        elif not self._feeder.alive:
            self.health.break_down("the feeder died")

    def _folder_identities(self) -> tuple[tuple[int, int] | None, ...]:
        watched = (self.layout.path, self.layout.commands, self.layout.responses)
        return tuple(folder_identity(path) for path in (*watched, self.layout.archive))

    def _on_busy(self) -> None:
        if self._idle:
            self._idle = False
            self._wake()

    def _say(self, event: str, level: Level, **fields: Any) -> None:
        self._tell(Fact(event, level, self._settings.name, fields))

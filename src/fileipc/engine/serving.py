"""One root while it is served: every part of it, built, started and stopped in order."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ..config.owners import Owners
from ..config.settings import Durability, RootSettings
from ..dialects import NATIVE
from ..executors.child import ChildExecutor
from ..executors.inline import InlineExecutor
from ..executors.process import ProcessExecutor
from ..handlers.port import Handler, Scope
from ..handlers.registry import Registry
from ..protocol.facts import Fact, Level, Listener
from ..protocol.identity import Identity
from ..spool.atomic import MODES, Writer
from ..spool.create import folder_group, folder_identity, prepare_root
from ..spool.layout import Layout
from ..spool.lock import DaemonLock, Holder
from ..spool.store import Spool
from ..watch.choose import make_observer
from .claiming import Claiming, ClaimRules
from .control import Control
from .execution import Executors
from .feeder import Feeder, FeederRules
from .health import Health
from .heartbeat import BUSY_INTERVAL, IDLE_INTERVAL, Heartbeat
from .intake import Intake, IntakeRules
from .janitor import Janitor
from .pool import WorkerPool
from .recovery import recover_claims
from .running import Running
from .settle import Settler
from .steps import Steps
from .work import Work

_KILL_TIME = 8.0  # seconds for killed handlers to be settled at a stop
_FEEDER_TIME = 5.0  # seconds for the feeder to end what it is at
_STEP_TIME = 10.0  # seconds for a change to the root that is under way
_STUCK_AFTER = 30.0  # seconds at one file, after which the feeder is said to be stuck
_serials = itertools.count(1)


class RootListener(Listener, Protocol):
    """Writes the facts of one root into that root."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a root gets from whoever runs it.

    `open_log` makes the listener for one root's own log files once its folders exist.
    `import_main`: handlers may live in the program's main module.
    """

    identity: Identity
    tell: Listener
    open_log: Callable[[RootSettings, Layout], RootListener]
    handlers: tuple[Handler, ...] = ()
    import_main: bool = False


class Serving:
    """A root being served; made by the root's own thread, which also ticks and stops it."""

    def __init__(
        self, settings: RootSettings, around: Surroundings, wake: Callable[[], None]
    ) -> None:
        """Take the root: check it, lock it, build its parts.

        Raises:
            RootMissing, RootHeld, RootError: it cannot be served now.
        """
        self._settings = settings
        self._around = around
        self._wake = wake
        self.layout = Layout(settings.path, NATIVE)
        modes = MODES[settings.mode]
        writer = Writer(modes, settings.durability is Durability.POWER)
        prepare_root(self.layout, writer)
        self._lock = DaemonLock(self.layout, writer)
        identity = around.identity
        self._lock.acquire(
            Holder(
                instance=identity.instance,
                pid=identity.pid,
                host=identity.host,
                started_at=identity.started_at,
            )
        )
        try:
            self._folders = self._folder_identities()
            self._log = around.open_log(settings, self.layout)
            self.health = Health(settings.name, self._tell, wake)
            self._spool = Spool(self.layout, writer)
            self._build(identity)
        except BaseException:
            self._lock.release()
            raise

    def _build(self, identity: Identity) -> None:
        settings, name, tell = self._settings, self._settings.name, self._tell
        limits = settings.limits
        self._steps = Steps(self.layout, self.health)
        self._running = Running()
        self._settler = Settler(
            self._spool,
            NATIVE,
            self._steps,
            root=name,
            tell=tell,
            health=self.health,
            inline_limit=limits.inline,
        )
        self._intake = Intake(
            self._spool,
            NATIVE,
            IntakeRules(
                max_bytes=limits.command,
                max_depth=limits.depth,
                default_ttl=settings.ttl,
                stale_after=settings.stale_after,
                owner_allowed=Owners(settings, folder_group(self.layout.path)).allows,
            ),
        )
        control = Control(name, identity, self._spool, self._running)
        registry = Registry.build(settings, control).with_handlers(self._around.handlers)
        self._executors = Executors(
            InlineExecutor(),
            ProcessExecutor(import_main=self._around.import_main),
            ChildExecutor(),
        )
        self._claiming = Claiming(
            self._spool,
            self._steps,
            ClaimRules(
                owner=f"{identity.instance}.{next(_serials)}",
                pid=identity.pid,
                host=identity.host,
                max_attempts=settings.max_attempts,
            ),
            lambda command: registry.find(command.type, command.args),
        )
        self._work = Work(
            self._spool,
            self._steps,
            self._claiming,
            self._settler,
            registry,
            self._executors,
            self._running,
            scope=Scope(root=self.layout.path, project=settings.project),
            result_limit=limits.response,
            root=name,
            tell=tell,
            look_again=lambda file: self._feeder.hint(file),
        )
        self._pool = WorkerPool(settings.workers, name)
        self._feeder = Feeder(
            self._spool,
            self._intake,
            self._steps,
            self._settler,
            self._work,
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
        control.feeder = self._feeder
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
        self._heartbeat = Heartbeat(
            self._spool,
            self._feeder,
            self._running,
            self._settler.tally,
            self.health,
            identity,
            workers=settings.workers,
            observer=self._observer.kind,
            types=registry.names(),
        )
        self._idle = False
        self._busy_until = 0.0
        self._phase = random.random()  # noqa: S311  nobody gains by guessing it

    def start(self) -> None:
        """Recover, then watch, then scan: what comes in between is seen by one of the two."""
        recovered = recover_claims(
            self._spool, self._intake, self._steps, self._claiming, self._settler, self._work
        )
        self._observer.start()
        self._feeder.start()
        self._feeder.wait_scanned(timeout=60.0)
        self._heartbeat.beat()
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
            self._heartbeat.beat()
        busy = (
            bool(self._running)
            or self._feeder.waiting > 0
            or self.health.reason is not None
            or time.monotonic() < self._busy_until
        )
        self._idle = not busy
        if busy:
            return BUSY_INTERVAL
        # Hundreds of idle roots that were taken together must not all wake together.
        phase, self._phase = self._phase, 1.0
        return IDLE_INTERVAL * phase

    def stop(self, drain: float) -> None:
        """Take nothing new, let what runs end within `drain` seconds, then end it.

        The lock is given up last, and only once nothing of this daemon can change the root any
        more; where that cannot be brought about, the process's end gives it up.
        """
        still = False
        try:
            if self.health.broken is None:
                self._heartbeat.beat("stopping")
            self._observer.stop()
            ended = self._feeder.stop(_FEEDER_TIME)
            if not self._pool.drain(time.monotonic() + drain):
                self._running.stop_all("interrupted")
                if self.health.broken is not None:
                    self._steps.hurry()
                ended = self._pool.drain(time.monotonic() + _KILL_TIME) and ended
            still = self._steps.close(_STEP_TIME)
            self._executors.close()
            self._spool.claims.close()
            if self.health.broken is None:
                waiting = sum(1 for _name in self._spool.names())
                self._heartbeat.beat("stopped", waiting=waiting)
                self._say("root_stopped", Level.INFO, waiting=waiting, clean=ended)
        finally:
            if still:
                self._lock.release()
            self._log.close()

    def hurry(self) -> None:
        """Stop everything that runs, now."""
        self._running.stop_all("interrupted")
        self._steps.hurry()

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
        elif self._feeder.at_it() > _STUCK_AFTER:
            self.health.trouble("feeder", "the feeder is stuck at one file")
        else:
            self.health.clear("feeder")

    def _folder_identities(self) -> tuple[tuple[int, int] | None, ...]:
        # The log's folder may go: it is made again by whoever writes there next.
        kept = [path for path in self.layout.folders if path != self.layout.log]
        return tuple(folder_identity(path) for path in kept)

    def _on_busy(self) -> None:
        """There is work: the heartbeat tells of it within a second."""
        if self._idle:
            self._idle = False
            self._busy_until = time.monotonic() + BUSY_INTERVAL
            self._wake()

    def _tell(self, fact: Fact) -> None:
        # Not into a root that was taken away: `rm -rf` would find it growing again.
        if self.health.broken is None:
            self._log(fact)
        self._around.tell(fact)

    def _say(self, event: str, level: Level, **fields: Any) -> None:
        self._tell(Fact(event, level, self._settings.name, fields))

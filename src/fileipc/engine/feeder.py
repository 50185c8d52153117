"""Turns hints and scans into work: events are hints, the folder is the truth."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import Busy
from ..protocol.facts import Fact, Level, Listener
from ..protocol.names import command_stem
from ..spool.atomic import PASSING
from ..spool.store import Spool
from .backlog import Backlog
from .health import Health
from .holding import Holding
from .intake import Envelope, Examined, Intake, Refusal, Unfinished
from .pool import WorkerPool
from .settle import Abandoned, Settler
from .work import Work, cancelled_unrun

_INLINE_TURN = 50  # inline commands answered before events are looked at again
_STUCK = 60.0  # seconds until a file that cannot be moved is tried again
_STALL = 1.0  # seconds of rest after the disk refused a claim
_MISSED_RESCAN = 1.0  # seconds until the next scan after one that found what no event had told


@dataclass(frozen=True, slots=True)
class FeederRules:
    """Durations in seconds."""

    rescan: float
    settle: float
    give_up: float
    max_pending: int


class Feeder:
    """One thread of one root; `hint`, `rescan` and `lost` may be called from any."""

    def __init__(
        self,
        spool: Spool,
        intake: Intake,
        settler: Settler,
        work: Work,
        pool: WorkerPool,
        health: Health,
        *,
        rules: FeederRules,
        root: str,
        tell: Listener,
        on_busy: Callable[[], None],
    ) -> None:
        self._spool = spool
        self._intake = intake
        self._settler = settler
        self._work = work
        self._pool = pool
        self._health = health
        self._rules = rules
        self._root = root
        self._tell = tell
        self._on_busy = on_busy
        self._backlog = Backlog()
        self._holding = Holding(rules.settle, rules.give_up)
        self._condition = threading.Condition()
        self._inbox: dict[str, None] = {}
        self._in_flight: set[str] = set()
        self._again: set[str] = set()
        self._scan_reason: str | None = "start"
        self._next_scan = 0.0
        self._rest_until = 0.0
        self._sweep_ended = False
        self._stopping = False
        self._scanned = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{root}-feeder", daemon=True)
        self.progress = time.monotonic()

    # -- from any thread ----------------------------------------------------------------------

    def hint(self, name: str) -> None:
        """A name may be worth a look."""
        with self._condition:
            self._inbox[name] = None
            self._condition.notify()

    def rescan(self, reason: str) -> None:
        """The whole folder is worth a look."""
        with self._condition:
            self._scan_reason = self._scan_reason or reason
            self._condition.notify()

    def lost(self, reason: str) -> None:
        """The folder went away under the watch."""
        self._health.break_down(reason)

    def sweep_ended(self) -> None:
        """Answer what expired or went stale while it waited."""
        with self._condition:
            self._sweep_ended = True
            self._condition.notify()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Take nothing new; what waits stays on disk."""
        with self._condition:
            self._stopping = True
            self._condition.notify()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(5.0)

    def wait_scanned(self, timeout: float) -> bool:
        """Wait until the first scan is done."""
        return self._scanned.wait(timeout)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        return len(self._backlog) + len(self._inbox)

    def oldest_arrival(self) -> float | None:
        """Arrival of the longest waiting command, seconds since 1970."""
        for _ in range(3):
            try:
                return self._backlog.oldest()
            except RuntimeError:  # the feeder changed the table meanwhile
                continue
        return None

    def cancel_waiting(self, command_id: str) -> bool:
        """Settle a waiting command as cancelled, unrun; False where none waits."""
        examined = self._examine(f"{command_id}.json")
        if not isinstance(examined, Envelope):
            return False
        self._work.run(examined, cancelled_unrun())
        return True

    # -- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while True:
                names, scan = self._collect()
                if self._stopping:
                    return
                self.progress = time.monotonic()
                self._turn(names, scan)
        except Abandoned:
            return
        except Exception:  # noqa: BLE001  a thread's top: the root is started anew
            self._say("feeder_failed", Level.ERROR, trace=traceback.format_exc())
            self._health.break_down("the feeder failed")

    def _turn(self, names: list[str], scan: str | None) -> None:
        if scan is not None:
            self._scan(scan)
        for name in names:
            self._consider(name, direct=True)
        for name in self._holding.take_due(time.monotonic()):
            self._consider(name, direct=True)
        if self._sweep_ended:
            self._sweep_ended = False
            for name in self._backlog.take_ended(time.time()):
                self._guarded(name, self._take, name)
        self._dispatch()

    def _collect(self) -> tuple[list[str], str | None]:
        with self._condition:
            while True:
                now = time.monotonic()
                if self._scan_reason is None and now >= self._next_scan:
                    self._scan_reason = "timer"
                if self._inbox or self._scan_reason or self._stopping or self._sweep_ended:
                    break
                wait = self._wait_time(now)
                if wait <= 0:
                    break
                self._condition.wait(wait)
            names = list(self._inbox)
            self._inbox.clear()
            scan, self._scan_reason = self._scan_reason, None
        return names, scan

    def _wait_time(self, now: float) -> float:
        """Seconds until something is to do without being told."""
        times = [self._next_scan]
        held = self._holding.next_due()
        if held is not None:
            times.append(held)
        if self._backlog.has_inline or (self._backlog.has_work and self._pool.free):
            times.append(self._rest_until)
        return min(times) - now

    def _scan(self, reason: str) -> None:
        """Bring the folder and the memory to one state."""
        try:
            present = list(self._spool.names())
        except FileNotFoundError:
            self._health.break_down(f"{self._spool.layout.commands} is gone")
            return
        except OSError as error:
            self._health.trouble("scan", f"cannot read commands: {error.strerror}")
            self._next_scan = time.monotonic() + _STALL
            return
        self._health.clear("scan")
        self._backlog.keep_only(present)
        known = self._known
        new = [name for name in present if not known(name)]
        if len(self._backlog) + len(new) > self._rules.max_pending:
            new.sort(key=self._spool.arrival)
        # A file of this very moment has its event still under way.
        late = time.time() - 1.0
        missed = reason == "timer" and any(self._spool.arrival(name) < late for name in new)
        if missed or (new and reason == "overflow"):
            self._say("events_missed", Level.WARNING, reason=reason, found=len(new))
        for name in new:
            self._consider(name, direct=False)
        delay = min(_MISSED_RESCAN, self._rules.rescan) if missed else self._rules.rescan
        self._next_scan = time.monotonic() + delay
        self._scanned.set()

    def _known(self, name: str) -> bool:
        return (
            name in self._backlog
            or name in self._in_flight
            or name in self._holding
            or name in self._inbox
        )

    def _consider(self, name: str, *, direct: bool) -> None:
        """Look at one name and put it where it belongs; `direct`: run it now if it can be."""
        with self._condition:
            if name in self._in_flight:
                self._again.add(name)
                return
        if name in self._backlog or command_stem(name) is None:
            return
        self._guarded(name, self._place, name, direct)

    def _place(self, name: str, direct: bool) -> None:
        examined = self._sort_out(name, self._examine(name))
        if examined is None:
            return
        inline = self._work.is_inline(examined.command)
        if len(self._backlog) >= self._rules.max_pending:
            self._work.run(
                examined,
                Busy(f"{self._rules.max_pending} commands are waiting; send it again later"),
            )
        elif direct and inline and not self._backlog.has_inline and not self._resting():
            self._work.run(examined)
        elif direct and not inline and not self._backlog.has_work and self._can_start():
            self._start(name, examined)
        else:
            self._backlog.push(examined, inline=inline)

    def _dispatch(self) -> None:
        while self._can_start() and (name := self._backlog.pop_work()) is not None:
            self._start(name, None)
        for _ in range(_INLINE_TURN):
            if self._resting() or (waiting := self._backlog.pop_inline()) is None:
                return
            self._guarded(waiting, self._take, waiting)

    def _start(self, name: str, envelope: Envelope | None) -> None:
        with self._condition:
            self._in_flight.add(name)
        self._on_busy()
        self._pool.submit(lambda: self._work_on(name, envelope))

    def _work_on(self, name: str, envelope: Envelope | None) -> None:
        """A worker's task: one command."""
        try:
            if envelope is not None:
                self._guarded(name, self._work.run, envelope)
            else:
                self._guarded(name, self._take, name)
        except Abandoned:
            pass
        except Exception:  # noqa: BLE001  a thread's top: the name is looked at again later
            self._say("worker_failed", Level.ERROR, file=name, trace=traceback.format_exc())
            self._health.break_down("a worker failed")
        finally:
            with self._condition:
                self._in_flight.discard(name)
                if name in self._again:
                    self._again.discard(name)
                    self._inbox[name] = None
                self._condition.notify()

    def _take(self, name: str) -> None:
        """Read a waiting name afresh and run it."""
        envelope = self._sort_out(name, self._examine(name))
        if envelope is not None:
            self._work.run(envelope)

    def _examine(self, name: str) -> Examined:
        return self._intake.examine(name, time.time())

    def _sort_out(self, name: str, examined: Examined) -> Envelope | None:
        """Deal with everything that is no command (yet)."""
        if isinstance(examined, Unfinished):
            examined = self._holding.hold(examined, now=time.monotonic(), wall=time.time())
            if examined is None:
                return None
        elif name in self._holding:
            self._holding.forget(name)
        if isinstance(examined, Refusal):
            self._settler.reject(examined)
            return None
        return examined

    def _guarded(self, name: str, step: Callable[..., None], *args: object) -> None:
        """Do a step; where the system refuses it for now, rest and look at the name again."""
        try:
            step(*args)
            self._health.clear("claim")
        except FileNotFoundError:
            self._settler.check_folders()
        except OSError as error:
            now = time.monotonic()
            if error.errno in PASSING:
                self._health.trouble("claim", f"cannot take commands: {error.strerror}")
                self._rest_until = now + _STALL
                self._holding.retry(name, now=now, delay=_STALL)
            else:  # this file's own trouble: the others go on
                self._say("file_stuck", Level.WARNING, file=name, reason=error.strerror)
                self._holding.retry(name, now=now, delay=_STUCK)

    def _can_start(self) -> bool:
        return self._pool.free and not self._resting()

    def _resting(self) -> bool:
        return time.monotonic() < self._rest_until

    def _say(self, event: str, level: Level, **fields: object) -> None:
        self._tell(Fact(event, level, self._root, fields))

"""Turns hints and scans into work: events are hints, the folder is the truth."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import Busy, CommandFailure, InternalError
from ..protocol.facts import Fact, Level, Listener
from ..protocol.names import command_stem
from ..spool.atomic import PASSING
from ..spool.store import Spool
from .backlog import Backlog
from .health import Health
from .holding import Holding
from .inbox import Inbox, Turn
from .intake import Envelope, Examined, Intake, Refusal, Unfinished
from .pool import WorkerPool
from .settle import Settler
from .steps import Abandoned, Steps
from .work import Fate, Work, cancelled_unrun

_INLINE_TURN = 50  # inline commands answered before events are looked at again
_STALL = 1.0  # seconds of rest after the disk refused a claim
_STUCK = 60.0  # seconds until a file that cannot be moved is tried again
_SAME_ID = 2.0  # seconds until a second file of a running command's id is looked at again
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
        steps: Steps,
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
        self._steps = steps
        self._settler = settler
        self._work = work
        self._pool = pool
        self._health = health
        self._rules = rules
        self._root = root
        self._tell = tell
        self._on_busy = on_busy
        self._inbox = Inbox()
        self._backlog = Backlog()
        self._holding = Holding(rules.settle, rules.give_up)
        self._rest_until = 0.0
        self._scanned = threading.Event()
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._run, name=f"{root}-feeder", daemon=True)
        pool.on_free = self._inbox.wake

    # -- from any thread ----------------------------------------------------------------------

    def hint(self, name: str) -> None:
        """A name may be worth a look."""
        self._inbox.hint(name)

    def rescan(self, reason: str) -> None:
        """The whole folder is worth a look."""
        self._inbox.rescan(reason)

    def lost(self, reason: str) -> None:
        """The folder went away under the watch."""
        self._health.break_down(reason)

    def sweep_ended(self) -> None:
        """Answer what expired or went stale while it waited."""
        self._inbox.sweep_ended()

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> bool:
        """Take nothing new; what waits stays on disk. False where the thread did not end."""
        self._inbox.stop()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def wait_scanned(self, timeout: float) -> bool:
        """Wait until the first scan is done."""
        return self._scanned.wait(timeout)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        return len(self._backlog) + len(self._inbox)

    def at_it(self) -> float:
        """Seconds that the thread has been at one and the same file; 0 where it is at none."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def oldest_arrival(self) -> float | None:
        """Arrival of the longest waiting command, seconds since 1970."""
        for _ in range(3):
            try:
                return self._backlog.oldest()
            except RuntimeError:  # the feeder changed the table meanwhile
                continue
        return None

    def cancel_waiting(self, command_id: str) -> bool:
        """Settle a waiting command as cancelled, unrun; False where that is not possible.

        To be called in the feeder's own thread (an inline command runs there).
        """
        name = self._backlog.name_of(command_id) or f"{command_id}.json"
        examined = self._examine(name)
        if not isinstance(examined, Envelope):
            return False
        return self._work.run(examined, cancelled_unrun(), patient=False) is Fate.SETTLED

    # -- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while (turn := self._inbox.collect(self._wait_time)) is not None:
                self._take_turn(turn)
        except Abandoned:
            return
        except Exception:  # noqa: BLE001  a thread's top: the root is started anew
            self._say("feeder_failed", Level.ERROR, trace=traceback.format_exc())
            self._health.break_down("the feeder failed")

    def _take_turn(self, turn: Turn) -> None:
        if turn.scan is not None:
            self._scan(turn.scan)
        for name in (*turn.names, *self._holding.take_due(time.monotonic())):
            if self._inbox.stopping:
                return
            self._consider(name, direct=True)
        if turn.ended:
            for name in self._backlog.take_ended(time.time()):
                if self._inbox.stopping:
                    return
                self._guarded(name, self._take_here, name)
        self._dispatch()

    def _wait_time(self, now: float) -> float:
        """Seconds until something is to do without being told."""
        times = [now + 3600.0, self._holding.next_due() or now + 3600.0]
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
            self._inbox.next_scan = time.monotonic() + _STALL
            return
        self._health.clear("scan")
        self._backlog.keep_only(present)
        new = [name for name in present if not self._is_known(name)]
        if len(self._backlog) + len(new) > self._rules.max_pending:
            new.sort(key=self._spool.arrival)
        # A file of this very moment has its event still under way.
        late = time.time() - 1.0
        missed = reason == "timer" and any(self._spool.arrival(name) < late for name in new)
        if missed or (new and reason == "overflow"):
            self._say("events_missed", Level.WARNING, reason=reason, found=len(new))
        for name in new:
            if self._inbox.stopping:
                return
            self._consider(name, direct=False)
        delay = min(_MISSED_RESCAN, self._rules.rescan) if missed else self._rules.rescan
        if reason == "start":
            delay *= random.random()  # noqa: S311  many roots must not all scan at once
        self._inbox.next_scan = time.monotonic() + delay
        self._scanned.set()

    def _is_known(self, name: str) -> bool:
        return name in self._backlog or name in self._inbox or name in self._holding

    def _consider(self, name: str, *, direct: bool) -> None:
        """Put one name where it belongs; `direct`: run it now if it can be."""
        if name in self._backlog or command_stem(name) is None or self._inbox.is_given(name):
            return
        self._guarded(name, self._place, name, direct)

    def _place(self, name: str, direct: bool) -> None:
        envelope = self._sort_out(name, self._examine(name))
        if envelope is None:
            return
        inline = self._work.is_inline(envelope.command)
        if direct and inline and not self._backlog.has_inline and not self._resting():
            self._run_here(envelope)
        elif direct and not inline and not self._backlog.has_work and self._can_start():
            self._start(name, envelope)
        elif inline or len(self._backlog) < self._rules.max_pending:
            self._backlog.push(envelope, inline=inline)
        else:
            self._run_here(
                envelope,
                Busy(f"{self._rules.max_pending} commands are waiting; send it again later"),
            )

    def _dispatch(self) -> None:
        while self._can_start() and (name := self._backlog.pop_work()) is not None:
            self._start(name, None)
        for _ in range(_INLINE_TURN):
            if self._inbox.stopping or self._resting():
                return
            if (waiting := self._backlog.pop_inline()) is None:
                return
            self._guarded(waiting, self._take_here, waiting)

    def _take_here(self, name: str) -> None:
        """Read a waiting name afresh; answer it in this thread if that cannot take long."""
        envelope = self._sort_out(name, self._examine(name))
        if envelope is None:
            return
        if self._work.is_inline(envelope.command) or envelope.timing.over(time.time()):
            self._run_here(envelope)
        else:  # it is another command by now, or has time again
            self._backlog.push(envelope, inline=False)

    def _run_here(self, envelope: Envelope, verdict: CommandFailure | None = None) -> None:
        if self._work.run(envelope, verdict, patient=False) is Fate.ELSEWHERE:
            self._holding.retry(envelope.file.name, now=time.monotonic(), delay=_SAME_ID)
        self._on_busy()

    def _start(self, name: str, envelope: Envelope | None) -> None:
        self._inbox.give(name)
        self._on_busy()
        self._pool.submit(lambda: self._work_on(name, envelope))

    # -- a worker's thread --------------------------------------------------------------------

    def _work_on(self, name: str, envelope: Envelope | None) -> None:
        """A worker's task: one command."""
        try:
            self._guarded(name, self._take_there, name, envelope)
        except Abandoned:
            return
        finally:
            self._inbox.take_back(name)

    def _take_there(self, name: str, envelope: Envelope | None) -> None:
        if envelope is None:
            envelope = self._sort_out(name, self._examine(name))
        if envelope is not None and self._work.run(envelope) is Fate.ELSEWHERE:
            self._holding.retry(name, now=time.monotonic(), delay=_SAME_ID)

    # -- either -------------------------------------------------------------------------------

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
        """Do a step; whatever one file does to it, the others go on."""
        own = threading.current_thread() is self._thread
        if own:
            self._busy_since = time.monotonic()
        try:
            step(*args)
            self._health.clear("claim")
        except Abandoned:
            raise
        except FileNotFoundError:
            self._steps.folders_stand()
        except OSError as error:
            self._put_off(name, error)
        except Exception as error:  # noqa: BLE001  a thread's top, for one file of many
            self._say("file_failed", Level.ERROR, file=name, trace=traceback.format_exc())
            self._set_aside(name, error)
        finally:
            if own:
                self._busy_since = None

    def _put_off(self, name: str, error: OSError) -> None:
        now = time.monotonic()
        if error.errno in PASSING:
            self._health.trouble("claim", f"cannot take commands: {error.strerror}")
            self._rest_until = now + _STALL
            self._holding.retry(name, now=now, delay=_STALL)
        else:  # this file's own trouble
            self._say("file_stuck", Level.WARNING, file=name, reason=error.strerror)
            self._holding.retry(name, now=now, delay=_STUCK)

    def _set_aside(self, name: str, error: Exception) -> None:
        """A file that brings a fault of ours to light must not do so for ever."""
        failure = InternalError(f"{type(error).__name__} while the file was looked at")
        try:
            self._settler.reject(Refusal(name, failure))
        except OSError as trouble:
            self._put_off(name, trouble)

    def _can_start(self) -> bool:
        return not self._inbox.stopping and self._pool.free and not self._resting()

    def _resting(self) -> bool:
        return time.monotonic() < self._rest_until

    def _say(self, event: str, level: Level, **fields: object) -> None:
        self._tell(Fact(event, level, self._root, fields))

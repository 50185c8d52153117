"""Commands out, answers in, as bytes and dictionaries: the blocking client below `Client`.

`fileipc send` uses it directly: nothing here, nor in what it imports, needs msgspec.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import CommandGone, Duplicate, NoDaemon, NoRoot, Outcome, WaitTimeout
from ..spool.layout import FOLDER, Layout, find_root
from ..spool.mailbox import Mailbox
from .core import GRACE, PROMPT, Fate, Patience, Verdict, explain, is_preview, no_daemon
from .lookout import InVain, Lookout, serves

if TYPE_CHECKING:
    from .lookout import Answer, OnRunning
    from .notify import Bell


def locate(root: str | os.PathLike[str] | None) -> str:
    """The absolute path of a root: the folder itself, its project, or (None) the nearest upward.

    Raises:
        NoRoot: there is none.
    """
    if root is None:
        found = find_root(os.getcwd())
        if found is None:
            raise NoRoot(
                f"no {FOLDER} folder in {os.getcwd()} or above it; make one with: fileipc init"
            )
        return found
    path = os.path.abspath(os.path.expanduser(root))
    if os.path.basename(path) != FOLDER and os.path.isdir(f"{path}/{FOLDER}"):
        return f"{path}/{FOLDER}"
    named = os.path.basename(path) == FOLDER and os.path.isdir(path)
    if named or (os.path.isdir(f"{path}/commands") and os.path.isdir(f"{path}/responses")):
        return path
    raise NoRoot(f"{path} is no root and holds none; make one with: fileipc init {path}")


class Exchange:
    """One root as a client sees it; may be used from any thread.

    Args:
        poll: never use file notification.
        grace: seconds that a daemon may be away during a wait before that ends in NoDaemon.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        poll: bool = False,
        grace: float = GRACE,
    ) -> None:
        self.layout = Layout(locate(root))
        self.mailbox = Mailbox(self.layout)
        self._grace = grace
        self._watches = not poll
        self._bell: Bell | None = None
        self._warm = False

    @property
    def root(self) -> str:
        return self.layout.path

    def is_served(self) -> bool:
        return serves(self.layout)

    def post(self, name: str, command: bytes, *, check_daemon: bool = True) -> None:
        """Send one encoded command under its id.

        Raises:
            NoDaemon: nobody serves the root, and `check_daemon` asks.
            Duplicate: a command of that id waits or runs already.
            NoRoot: the root lacks its folders. OSError: it is full, or closed to this user.
        """
        if check_daemon and not self.is_served():
            raise NoDaemon(no_daemon(self.root))
        try:
            self.mailbox.post(name, command)
        except FileExistsError:
            raise Duplicate(f"a command {name} waits or runs already; use a new id") from None
        except FileNotFoundError:
            raise NoRoot(
                f"{self.root} has no folder for commands; make it with: fileipc init {self.root}"
            ) from None

    def await_final(
        self,
        name: str,
        timeout: float,
        *,
        on_running: OnRunning | None = None,
        withdraw: bool = False,
    ) -> Answer:
        """Wait for the final answer under a name.

        Args:
            timeout: seconds.
            on_running: called with each running answer, in this thread.
            withdraw: on giving up (KeyboardInterrupt included) take the command back where it
                has not started; the outcome is `not_started` then.

        Raises:
            WaitTimeout, NoDaemon, CommandGone: see there.
        """
        patience = Patience(time.monotonic(), timeout, grace=self._grace)
        lookout = Lookout(self.mailbox, name, patience, on_running)
        try:
            return self._wait(name, lookout)
        except KeyboardInterrupt:
            if withdraw:
                with suppress(OSError):
                    self.mailbox.withdraw(name)
            raise
        except InVain as end:
            taken_back = withdraw and self.mailbox.withdraw(name)
            if not taken_back and (late := lookout.glance()) is not None:
                return late
            raise self._failure(
                end.verdict, name, Fate.WITHDRAWN if taken_back else lookout.fate(), timeout
            ) from None

    def discard(self, name: str, answer: Answer) -> None:
        """Remove an answer that has been read; a preview stays until its whole was fetched."""
        if not (is_preview(answer["result"]) and self.mailbox.has_result(name)):
            self.drop(name)

    def drop(self, name: str) -> None:
        """Remove an answer and the whole result beside it."""
        with suppress(OSError):  # another user's to remove, or the janitor's
            self.mailbox.discard(name)

    def _wait(self, name: str, lookout: Lookout) -> Answer:
        if not self._warm or not self._watches:
            self._warm = True
            for pause in PROMPT:
                if (answer := lookout.look()) is not None:
                    return answer
                time.sleep(pause)
        with self._ready_bell().waiter(f"{name}.json") as waiter:
            while (answer := lookout.look()) is None:
                waiter.wait(lookout.pause())
        return answer

    def _ready_bell(self) -> Bell:
        # Two threads here at once may make two bells: one more watch for a while, no harm.
        bell = self._bell
        if bell is None or not bell.fits():
            from .notify import Bell

            bell = self._bell = Bell(self.layout.responses, watch=self._watches)
        return bell

    def _failure(
        self, verdict: Verdict, name: str, fate: Fate, timeout: float
    ) -> WaitTimeout | NoDaemon:
        from .health import examine

        health = examine(self.layout)
        message = explain(verdict, name, fate, root=self.root, state=str(health), waited=timeout)
        outcome = Outcome.NOT_STARTED if fate is Fate.WITHDRAWN else Outcome.UNKNOWN
        if verdict is Verdict.NO_DAEMON:
            return NoDaemon(message, command_id=name, outcome=outcome)
        kind = CommandGone if verdict is Verdict.GONE else WaitTimeout
        return kind(message, command_id=name, outcome=outcome)

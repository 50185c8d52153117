"""Looking for one answer: every read of a wait, and none of its pauses.

Whoever waits calls `look` until it returns an answer, and pauses in between in a way of its own
(a thread on a watch, a coroutine on a loop).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..spool.probe import is_served
from .core import Fate, Patience, Verdict, is_final, parse_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..spool.layout import Layout
    from ..spool.mailbox import Mailbox

    Answer = dict[str, Any]
    OnRunning = Callable[[Answer], None]


class InVain(Exception):
    """There is no point in waiting any longer."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict


def serves(layout: Layout) -> bool:
    """Whether a daemon serves the root; taken for granted where this user may not look."""
    try:
        return is_served(layout)
    except PermissionError:
        return True


class Lookout:
    """One wait for the final answer under one name."""

    def __init__(
        self, mailbox: Mailbox, name: str, patience: Patience, on_running: OnRunning | None
    ) -> None:
        self._mailbox = mailbox
        self._name = name
        self._patience = patience
        self._on_running = on_running
        self._last: bytes | None = None
        self._readable = False

    def look(self) -> Answer | None:
        """The final answer, or None: pause, and look again.

        Raises:
            InVain: give up; nothing has been touched.
            OSError: the folder cannot be read.
        """
        answer = self.glance()
        if answer is None:
            self._judge()
        return answer

    def glance(self) -> Answer | None:
        """As `look`, without ever giving up."""
        raw = self._mailbox.fetch(self._name)
        if raw is None:
            self._last = None
        elif raw != self._last:
            # What cannot be read may be half written: not there yet, until there is no more time.
            self._last = raw
            answer = parse_answer(raw, self._name)
            self._readable = answer is not None
            if answer is not None and is_final(answer):
                return answer
            if answer is not None and self._on_running is not None:
                self._on_running(answer)
        return None

    def pause(self) -> float:
        """Seconds to pause at most before the next look."""
        return self._patience.pause(time.monotonic())

    def fate(self) -> Fate:
        """Where the command is now; for the message of a wait in vain."""
        if self._last is not None and not self._readable:
            return Fate.UNREADABLE
        if self._last is not None or self._mailbox.is_claimed(self._name):
            return Fate.RUNNING
        return Fate.WAITING if self._mailbox.is_waiting(self._name) else Fate.UNSEEN

    def _judge(self) -> None:
        now = time.monotonic()
        if not self._patience.due(now):
            return
        verdict = self._patience.judge(
            now,
            served=serves(self._mailbox.layout),
            traces=self._last is not None or self._command_is_there(),
        )
        if verdict is not None:
            raise InVain(verdict)

    def _command_is_there(self) -> bool:
        # In the order in which a settled command's traces go: none of them can be missed.
        return self._mailbox.is_waiting(self._name) or self._mailbox.is_claimed(self._name)

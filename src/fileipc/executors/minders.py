"""The daemon's end of a minder: start it, hand it a program, hear how that ended."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from . import minder, sweep
from .port import ChildCall

_SEND_TIMEOUT = 2.0  # seconds, as all of these; a healthy minder reads at once
_CLOSE_TIMEOUT = 2.0  # an idle one ends in milliseconds
_DEATH_TIMEOUT = 2.0


class MinderGone(Exception):
    """The minder died; of what it had in hand the process group was killed."""


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The program could not be started; `at_cwd`: its working folder was the reason."""

    errno: int
    text: str
    at_cwd: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """The program's exit code (negative: its signal, None: not even SIGKILL ended it)."""

    code: int | None


class MinderProcess:
    """One minder. Not to be used by two threads at once."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                number = str(theirs.fileno())
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", minder.__file__, number],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    cwd="/",
                    env=_environment(),
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            raise
        self._seen = psutil.Process(self._process.pid)
        ours.settimeout(_SEND_TIMEOUT)
        self._socket = ours
        self._frames = minder.Frames(ours)
        self._program: int | None = None
        self.reusable = True

    def fileno(self) -> int:
        """Readable when there is something to hear."""
        return self._socket.fileno()

    def start(self, call: ChildCall, fds: Sequence[int]) -> None:
        """Hand over a program; `fds` are its stdin, stdout, stderr, and those to pass on.

        Raises:
            MinderGone: it did not take the program; nothing was started.
        """
        argv = [os.fsencode(word) for word in call.argv]
        env = {os.fsencode(key): os.fsencode(value) for key, value in call.env.items()}
        cwd = os.fsencode(call.cwd)
        data = minder.frame(("run", call.grace, argv, cwd, env, call.memory))
        try:
            sent = socket.send_fds(self._socket, [data], list(fds))
            self._socket.sendall(data[sent:])
        except OSError as error:
            raise MinderGone(str(error)) from None

    def end(self) -> None:
        """Ask for the program's end: TERM, its grace, KILL."""
        with contextlib.suppress(OSError):  # a minder that is gone is heard of by `hear`
            self._socket.sendall(minder.frame(("end",)))

    def hear(self) -> NotStarted | Ended | None:
        """Take what has come; None: nothing that ends the program.

        Raises:
            MinderGone: it died.
        """
        if not self._frames.receive():
            self._kill_program()
            raise MinderGone("the minder process died")
        message = self._frames.next()
        while message is not None:
            answer = self._understand(message)
            if answer is not None:
                return answer
            message = self._frames.next()
        return None

    def stopped(self) -> bool:
        """Whether somebody made it stand still."""
        return sweep.stopped(self._seen)

    def kill(self) -> None:
        """End it and, while it still holds them together, all descendants of its program."""
        self._kill_program()
        sweep.kill_tree(self._seen)
        self._socket.close()
        self._reap(_DEATH_TIMEOUT)

    def close(self) -> None:
        """Let it go: it kills what it has in hand, to the last descendant, and ends."""
        self._socket.close()
        if not self._reap(_CLOSE_TIMEOUT):
            self.kill()

    def _reap(self, timeout: float) -> bool:
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _understand(self, message: tuple[Any, ...]) -> NotStarted | Ended | None:
        if message[0] == "started":
            self._program = message[1]
            return None
        self._program = None
        if message[0] == "failed":
            return NotStarted(*message[1:])
        _, code, self.reusable = message
        return Ended(code)

    def _kill_program(self) -> None:
        if self._program is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._program, signal.SIGKILL)
            self._program = None


def _environment() -> dict[str, str]:
    """What a minder itself needs to start: nothing, but for a Python with libraries elsewhere."""
    names = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
    return {name: os.environ[name] for name in names if name in os.environ}

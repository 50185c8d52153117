"""A minder: a small process that runs one program at a time and lets nothing of it remain.

The daemon starts it as a script (`python -I -S minder.py FD`), so it uses the standard library
alone and starts in milliseconds. It is a child subreaper: whatever a program's descendants do
(setsid, double fork, an environment wiped clean), they end as children of this process, which
ends them, reaps them, and answers only when none is left. The daemon therefore never meets an
orphan or a zombie. When the daemon dies, even by SIGKILL, the socket says so and the program
with all its descendants is killed.

A program may stop or kill its minder, which has the same user. A stopped one is killed by the
daemon with the whole tree. With one that is killed the tree is lost: what had left the program's
process group by then goes to process 1 and cannot be told from other processes any more. The
daemon kills the group, and says so.

What goes over the socket are frames: a length (4 bytes, little endian) and a marshalled tuple;
both ends are the same interpreter.

    daemon -> minder   ("run", grace, argv, cwd, env, memory) with the descriptors stdin,
                       stdout, stderr and those to pass on, which become 3, 4, ... in the program
                       ("end",)     TERM, `grace` seconds, KILL
    minder -> daemon   ("started", pid)
                       ("failed", errno, text, at_cwd)
                       ("ended", wait status, clean)
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import marshal
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

LINGER = 0.1  # seconds in which what a program left behind may end by itself
LEFTOVER_GRACE = 0.5  # seconds between TERM and KILL for what it left behind
KILL_LIMIT = 3.0  # seconds after which a process that not even SIGKILL ends is given up
MAX_FDS = 16
_OWN_FDS = 64  # the minder's own descriptors lie above those that a program is given
_END = (signal.SIGTERM, signal.SIGCONT)  # a stopped process would not hear the first
_LINUX = sys.platform.startswith("linux")
_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Make orphaned descendants children of this process (Linux; nothing elsewhere)."""
    if _LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def frame(message: tuple[Any, ...]) -> bytes:
    """A message as it goes over the socket."""
    data = marshal.dumps(message)
    return len(data).to_bytes(4, "little") + data


class Frames:
    """Takes messages and descriptors from the socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._data = b""
        self.fds: list[int] = []

    def receive(self) -> bool:
        """Read what is there; False: the other end is gone."""
        try:
            data, fds, _flags, _address = socket.recv_fds(self._sock, 1 << 16, MAX_FDS)
        except ConnectionError:
            return False
        self.fds += fds
        self._data += data
        return bool(data)

    def next(self) -> tuple[Any, ...] | None:
        """The next whole message."""
        size = int.from_bytes(self._data[:4], "little")
        if len(self._data) < 4 + size or len(self._data) < 4:
            return None
        message: tuple[Any, ...] = marshal.loads(self._data[4 : 4 + size])  # noqa: S302  ours
        self._data = self._data[4 + size :]
        return message


class Minder:
    """The loop: a request, a program, its end, and the end of all it started."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._frames = Frames(sock)
        self._wake, wakeup = (_lift(fd) for fd in os.pipe())
        os.set_blocking(self._wake, False)
        os.set_blocking(wakeup, False)
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._poll.register(self._wake, select.POLLIN)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        # Handled, not ignored: an ignored signal would stay ignored in the programs.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, _nothing)
        signal.signal(signal.SIGCHLD, _nothing)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])

    def serve(self) -> None:
        """Run programs until the daemon is gone."""
        while True:
            message = self._frames.next()
            if message is None:
                if not self._wait(None):
                    return
            elif message[0] == "run" and not self._run(*message[1:]):
                while self._wait(None):  # the daemon tries to kill what is left, and this first
                    pass
                return

    def _run(self, grace: float, *program: Any) -> bool:
        """One program; False: the daemon is gone, or something could not be killed."""
        process = self._start(*program)
        if process is None:
            return True
        self._tell("started", process.pid)
        status, clean = self._mind(process.pid, grace)
        process.returncode = status  # reaped here: Popen must not wait for it
        self._tell("ended", status, clean)
        return clean

    def _start(
        self, argv: list[bytes], cwd: bytes, env: dict[bytes, bytes], memory: int | None
    ) -> subprocess.Popen[bytes] | None:
        given = [_lift(fd) for fd in self._frames.fds]
        self._frames.fds = []
        stdin, stdout, stderr, *passed = given
        numbers = range(3, 3 + len(passed))
        for fd, number in zip(passed, numbers, strict=True):
            os.dup2(fd, number)

        try:
            # The cap goes by way of this process: code between fork and exec would cost a real
            # fork, and set afterwards it would miss what the program starts at once.
            with _capped(memory) as cap:
                process = subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env=env,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    pass_fds=tuple(numbers),
                    start_new_session=True,
                )
            if cap is not None and hasattr(resource, "prlimit"):
                with contextlib.suppress(OSError):  # it may have ended already
                    resource.prlimit(process.pid, resource.RLIMIT_AS, (cap, cap))
            return process
        except MemoryError:
            self._tell("failed", errno.ENOMEM, "", False)
        except OSError as error:
            at_cwd = error.filename is not None and os.fsencode(error.filename) == cwd
            self._tell("failed", error.errno or 0, error.strerror or str(error), at_cwd)
        except (ValueError, subprocess.SubprocessError) as error:
            self._tell("failed", errno.EINVAL, str(error), False)
        finally:
            for fd in (*given, *numbers):
                os.close(fd)
        return None

    def _mind(self, pid: int, grace: float) -> tuple[int | None, bool]:
        """Wait for the end of the program and of everything it started.

        Returns its exit code (negative: the signal; None: it could not be killed) and whether
        nothing is left.
        """
        status: int | None = None
        until: float | None = None  # when the next step is due; None: nothing ends it
        step = "run"
        give_up = float("inf")
        while True:
            left, ended = _reap(pid)
            status = ended if ended is not None else status
            if not left:
                if not _LINUX:  # orphans do not come here: the group is all that can be known
                    _signal(pid, signal.SIGKILL)
                return status, True
            group = pid if status is None else None
            now = time.monotonic()
            if step == "run" and status is not None:
                step, until = "linger", now + LINGER
            elif until is not None and now >= until:
                if now >= give_up:
                    return status, False
                if step == "linger":
                    _signal(None, *_END)
                    step, until = "term", now + min(grace, LEFTOVER_GRACE)
                else:
                    give_up = min(give_up, now + KILL_LIMIT)
                    _signal(group, signal.SIGKILL)
                    step, until = "kill", now + 0.02
            if not self._wait(until):
                step, until, give_up = "kill", now, min(give_up, now + KILL_LIMIT)
                _signal(group, signal.SIGKILL)
                time.sleep(0.01)
            message = self._frames.next()
            if message is not None and message[0] == "end" and step in ("run", "linger"):
                _signal(group, *_END)
                step, until = "term", time.monotonic() + grace

    def _tell(self, *message: Any) -> None:
        with contextlib.suppress(OSError):  # that the daemon is gone is seen by `_wait`
            self._sock.sendall(frame(message))

    def _wait(self, until: float | None) -> bool:
        """Wait for a message, a child's end or the time; False: the daemon is gone."""
        timeout = None if until is None else max(0.0, until - time.monotonic()) * 1000
        for fd, _event in self._poll.poll(timeout):
            if fd == self._wake:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
            elif not self._frames.receive():
                return False
        return True


@contextlib.contextmanager
def _capped(memory: int | None) -> Iterator[int | None]:
    """Cap this process's address space, and so that of what it starts; yields the cap."""
    if memory is None:
        yield None
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    cap = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_AS, (cap, hard))
    try:
        yield cap
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _nothing(_number: int, _where: object) -> None:
    """The wake-up descriptor has told the loop already."""


def _lift(fd: int) -> int:
    """Move a descriptor out of the range that a program's own ones take."""
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _OWN_FDS)
    os.close(fd)
    return high


def _reap(pid: int) -> tuple[bool, int | None]:
    """Collect the dead: whether any child is left, and the exit code of `pid` if it ended."""
    ended: int | None = None
    while True:
        try:
            dead, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False, ended
        if dead == 0:
            return True, ended
        if dead == pid:
            ended = os.waitstatus_to_exitcode(status)


def _signal(group: int | None, *numbers: int) -> None:
    """Signal the program's group, while the program pins its number, and every direct child.

    Children of what is killed become children of this process and are met the next time.
    """
    for number in numbers:
        if group is not None:
            with contextlib.suppress(OSError):
                os.killpg(group, number)
        for child in _children():
            with contextlib.suppress(OSError):
                os.kill(child, number)


def _children() -> list[int]:
    """The direct children, from /proc (none where there is no /proc)."""
    me = os.getpid()
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == me]
    return []


def _parent(pid: str) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    return int(stat[stat.rindex(b")") + 2 :].split()[1])


if __name__ == "__main__":
    become_subreaper()
    Minder(socket.socket(fileno=_lift(int(sys.argv[1])))).serve()

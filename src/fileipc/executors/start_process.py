"""A worker as multiprocessing sees it, told apart from the fate of the fork server.

multiprocessing hears of a process only through its fork server: where that is stopped, a dead
process seems to live for ever (and waiting for it never ends), and where that is killed, all
living ones seem dead. Here the kernel is asked as well, by a descriptor of the process itself.
Imported by workers too, so nothing heavy stands here.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
from multiprocessing import forkserver, popen_forkserver, util
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from multiprocessing.process import BaseProcess
from typing import Any

METHOD = "forkserver" if sys.platform.startswith("linux") else "spawn"
UNKNOWN_EXIT = 256  # what no process can exit with: how it ended is not known
_STATUS_WAIT = 1.0  # seconds in which the fork server tells the exit code of a dead process
_JOIN_LIMIT = 5.0  # seconds; what SIGKILL does not end in this time nobody can wait for


class Popen(popen_forkserver.Popen):
    """A process of the fork server, and a descriptor of it."""

    def __init__(self, process_obj: Any) -> None:
        self._asking = threading.Lock()
        self._watched: list[int] = []
        self._died: float | None = None  # since when it is known to be dead
        super().__init__(process_obj)
        self._watched = [self.sentinel]
        self._pidfd = self._open()

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        """The exit code (negative: a signal, UNKNOWN_EXIT: not known); None while it runs."""
        if flag != os.WNOHANG:
            return self.wait(None)
        with self._asking:
            if self.returncode is None:
                self.returncode = self._look()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for its end, and never for ever."""
        until = time.monotonic() + (_JOIN_LIMIT if timeout is None else timeout)
        code = self.poll()
        while code is None and (left := until - time.monotonic()) > 0:
            if self._died is None:
                wait(self._watched, left)
            else:
                wait([self.sentinel], min(left, 0.05))
            code = self.poll()
        return code

    def _open(self) -> int | None:
        try:
            fd = os.pidfd_open(self.pid)
        except OSError:  # an old kernel, or it is dead already: the fork server is all there is
            return None
        util.Finalize(self, os.close, (fd,))
        self._watched.append(fd)
        return fd

    def _look(self) -> int | None:
        ready = wait(self._watched, 0)
        if self.sentinel in ready:
            try:
                code: int = forkserver.read_signed(self.sentinel)
            except (OSError, EOFError):
                # The fork server died, which says nothing about the process.
                if self._pidfd is None:
                    return UNKNOWN_EXIT
                self._watched.remove(self.sentinel)
            else:
                return code
        if self._pidfd not in ready:
            return None
        if self.sentinel not in self._watched:
            return self._reaped()
        now = time.monotonic()
        self._died = self._died or now
        return UNKNOWN_EXIT if now - self._died > _STATUS_WAIT else None

    def _reaped(self) -> int:
        """The exit code where the orphan came to this process, which is then process 1 or so."""
        with contextlib.suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        return UNKNOWN_EXIT


class Process(ForkServerProcess):
    """A process that is started and watched as above."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802  multiprocessing's name
        return Popen(process_obj)


class OneProcess:
    """A multiprocessing context for a pool of one process, which it knows as `process`.

    It starts no second one: a pool whose process died must break, and not go on with a process
    that nobody knows.
    """

    def __init__(self) -> None:
        self._context: Any = multiprocessing.get_context(METHOD)
        self.process: BaseProcess | None = None

    @property
    def pid(self) -> int | None:
        """That of the process, once it was started."""
        return None if self.process is None else self.process.pid

    def Process(self, **options: Any) -> BaseProcess:  # noqa: N802  as multiprocessing has it
        if self.process is not None:
            raise OSError("the process of this pool is dead")
        kind: Any = Process if METHOD == "forkserver" else self._context.Process
        process: BaseProcess = kind(**options)
        self.process = process
        return process

    def get_start_method(self) -> str:
        return METHOD

    def Pipe(  # noqa: N802
        self, duplex: bool = True
    ) -> tuple[Connection[Any, Any], Connection[Any, Any]]:
        ends: tuple[Connection[Any, Any], Connection[Any, Any]] = self._context.Pipe(duplex)
        return ends

    def RLock(self) -> Any:  # noqa: N802
        return self._context.RLock()

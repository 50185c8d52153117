"""Leaving the terminal, with word about it: the only home of python-daemon."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import suppress
from typing import BinaryIO, NoReturn

from daemon.daemon import DaemonContext, DaemonError

from .streams import have_standard_streams

_READY = b"ready"
_FAILED = b"failed"
_MAX_MESSAGE = 64 * 1024


class Detached:
    """The child's end of the conversation with the process that waits at the terminal."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def ready(self, note: str = "") -> None:
        """Say that the daemon serves: the waiting process prints the pid and exits 0.

        A `note` is printed on its standard error first.
        """
        self._say(_READY, 0, note)

    def failed(self, message: str, code: int) -> None:
        """Say that it does not: the waiting process prints `message` and exits with `code`.

        The caller still has to end this process. Nothing happens after `ready`.
        """
        self._say(_FAILED, code, message)

    def _say(self, word: bytes, code: int, message: str) -> None:
        if self._pipe < 0:
            return
        text = message.encode("utf-8", "backslashreplace")[:_MAX_MESSAGE]
        with suppress(OSError):  # nobody waits any more
            _write_all(self._pipe, b"%s %d\n%s" % (word, code, text))
        os.close(self._pipe)
        self._pipe = -1


def detach(*, log_file: str | None = None) -> Detached:
    """Go on as a daemon: new session, `/` as working folder, umask 077, no open files.

    Returns in the daemon only. The calling process waits there until the daemon says that it is
    ready or has failed, or dies; then it prints one line and exits (SystemExit). Ctrl-C while
    it waits ends the daemon as well.

    Args:
        log_file: absolute; takes stdout and stderr, appending. None: the null device.

    To be called before any thread exists and with every path made absolute. Files that are open
    are closed in the daemon, standard input reads from the null device.

    Raises:
        RuntimeError: there are threads; they would be dead in the daemon.
        OSError: no process could be started, or the log file could not be opened.
    """
    if threading.active_count() > 1:
        raise RuntimeError("detaching must come before the first thread")
    have_standard_streams()
    log = _open_log(log_file)
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    # Ctrl-C is held back until somebody is there who knows what to do about it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()
    if child:
        os.close(writer)
        if log is not None:
            log.close()
        _wait(reader, child)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.close(reader)
    context = DaemonContext(
        detach_process=True,  # its own guess says no wherever the parent is pid 1
        umask=0o077,
        working_directory="/",
        files_preserve=[writer],
        stdout=log,
        stderr=log,
        # As in the foreground: ignored signals and core limits would pass to every script.
        signal_map={},
        prevent_core=False,
    )
    detached = Detached(writer)
    try:
        context.open()
        for number in range(3):
            # The null device comes to lie there as a file of Python's own, closed at exec.
            os.set_inheritable(number, True)
        if log is not None:
            log.close()  # stdout and stderr are copies
        _write_all(writer, b"%d\n" % os.getpid())
    except (DaemonError, OSError) as error:
        # The message stands where the pid is expected.
        detached.failed(f"cannot detach: {error}", 1)
        os._exit(1)
    return detached


def _wait(pipe: int, child: int) -> NoReturn:
    """The process at the terminal: wait for word, print it, exit."""
    said = _all_that_is_said(pipe)
    os.close(pipe)
    os.waitpid(child, 0)  # it has ended long ago, when it left its own child to itself
    lines = said.decode("utf-8", "replace").split("\n", 2)
    pid_text = lines.pop(0) if lines[0].isdigit() else ""
    word, _, code = lines[0].partition(" ")
    if word == _READY.decode():
        if len(lines) == 2 and lines[1]:
            print(lines[1].rstrip("\n"), file=sys.stderr, flush=True)
        print(f"fileipc runs as pid {pid_text}", flush=True)
        raise SystemExit(0)
    if word == _FAILED.decode():
        print(lines[1] if len(lines) == 2 else "", file=sys.stderr, flush=True)
        raise SystemExit(int(code))
    print("fileipc died before it was ready", file=sys.stderr, flush=True)
    raise SystemExit(1)


def _all_that_is_said(pipe: int) -> bytes:
    """What comes through the pipe until its end.

    At Ctrl-C the daemon is ended, as soon as it has told its pid; a second one does not wait for
    that. An exception in the midst of reading could lose the very chunk that holds the pid: so a
    handler notes the signal, and a second pipe wakes the reader.
    """
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda _number, _frame: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    poller = select.poll()
    poller.register(pipe, select.POLLIN)
    poller.register(woken, select.POLLIN)
    said, interrupts = b"", 0
    while True:
        ready = {fd for fd, _ in poller.poll()}
        if woken in ready:
            interrupts += os.read(woken, 64).count(signal.SIGINT)
        if pipe in ready:
            chunk = os.read(pipe, 4096)
            said += chunk
            if not chunk and not interrupts:
                return said
            if not chunk:
                raise KeyboardInterrupt
        pid, told, _ = said.partition(b"\n")
        if interrupts and told and pid.isdigit():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGTERM)
            raise KeyboardInterrupt
        if interrupts > 1:
            raise KeyboardInterrupt


def _open_log(path: str | None) -> BinaryIO | None:
    if path is None:
        return None
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
    return os.fdopen(os.open(path, flags, 0o600), "ab", buffering=0)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]

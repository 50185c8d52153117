"""Signals as requests that the main thread waits for."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from types import FrameType
from typing import Any

from ..protocol.requests import Request


class SignalFlags:
    """Handlers that set flags, and one place where the main thread waits.

    A pipe wakes the waiter: an Event would not do, for a handler that runs in the middle of
    `Event.wait` would wait for the lock that the same thread holds. To be made, installed,
    waited on and restored in the main thread; `wake` may be called from any.
    """

    def __init__(self) -> None:
        self._pending: set[Request] = set()
        self._stops = 0
        self._read = self._write = -1
        self._old_wakeup = -1
        self._old_handlers: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        """Take over SIGTERM, SIGINT and SIGHUP (the last not under nohup, which ignores it)."""
        self._read, self._write = os.pipe()  # macOS has no pipe2
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        # The byte comes whichever thread the kernel gave the signal to, and however early.
        self._old_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._take(signal.SIGTERM)
        self._take(signal.SIGINT)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            self._take(signal.SIGHUP)

    def wait(self, timeout: float | None = None) -> frozenset[Request]:
        """Wait for a signal, a `wake` or `timeout` seconds; returns what signals asked for.

        Empty after a wake or the timeout; each request is returned once.
        """
        if not self._pending:
            deadline = None if timeout is None else time.monotonic() + max(timeout, 0.0)
            self._wait_for_byte(deadline)
        with suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass
        # A handler may run between these two lines; it then adds to the set that is returned.
        requests = self._pending
        self._pending = set()
        return frozenset(requests)

    def wake(self) -> None:
        """Make `wait` return; nothing happens once the handlers were restored."""
        with suppress(OSError):  # full: it wakes anyway
            os.write(self._write, b"\0")

    def restore(self) -> None:
        """Put the old handlers back."""
        for number, handler in self._old_handlers.items():
            # None: a handler that was not set from Python, which cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._old_handlers.clear()
        if self._read >= 0:
            signal.set_wakeup_fd(self._old_wakeup)
            os.close(self._read)
            os.close(self._write)
            self._read = self._write = -1

    def _take(self, number: signal.Signals) -> None:
        self._old_handlers[number] = signal.signal(number, self._handle)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._pending.add(Request.RELOAD)
            return
        self._stops += 1
        self._pending.add(Request.STOP if self._stops == 1 else Request.STOP_NOW)

    def _wait_for_byte(self, deadline: float | None) -> None:
        poller = select.poll()
        poller.register(self._read, select.POLLIN)
        poller.poll(None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000)

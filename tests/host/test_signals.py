from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from fileipc.host.signals import SignalFlags
from fileipc.protocol.requests import Request


@pytest.fixture
def flags() -> Iterator[SignalFlags]:
    made = SignalFlags()
    made.install()
    yield made
    made.restore()


def wait(flags: SignalFlags) -> frozenset[Request]:
    """Wait for a request, with a timeout that only a broken test reaches."""
    return flags.wait(20)


def test_the_first_stop_signal_asks_to_stop_and_the_second_to_stop_now(flags: SignalFlags) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    assert wait(flags) == {Request.STOP}
    os.kill(os.getpid(), signal.SIGINT)
    assert wait(flags) == {Request.STOP_NOW}


def test_two_signals_at_once_are_both_told(flags: SignalFlags) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    assert wait(flags) == {Request.STOP, Request.STOP_NOW}


def test_hangup_asks_for_a_reload_and_is_told_once(flags: SignalFlags) -> None:
    os.kill(os.getpid(), signal.SIGHUP)
    assert wait(flags) == {Request.RELOAD}
    assert flags.wait(0) == frozenset()


def test_a_signal_while_waiting_wakes_the_main_thread(flags: SignalFlags) -> None:
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
    assert wait(flags) == {Request.STOP}


def test_a_signal_that_another_thread_receives_wakes_the_main_thread() -> None:
    script = """
import signal, threading, time
from fileipc.host.signals import SignalFlags
flags = SignalFlags()
flags.install()
def strike():
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
threading.Thread(target=strike).start()
while not (found := flags.wait(None)):
    pass
print(found)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert "Request.STOP" in done.stdout


def test_any_thread_may_wake_the_waiter_with_no_request(flags: SignalFlags) -> None:
    threading.Timer(0.05, flags.wake).start()
    assert flags.wait(None) == frozenset()  # without a timeout: only the wake ends it


def test_many_wakes_never_block_and_are_one(flags: SignalFlags) -> None:
    def wake() -> None:
        for _ in range(100_000):
            flags.wake()

    thread = threading.Thread(target=wake, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert wait(flags) == frozenset()
    os.kill(os.getpid(), signal.SIGTERM)
    assert wait(flags) == {Request.STOP}
    assert flags.wait(0) == frozenset()


def test_restore_puts_the_old_handlers_back() -> None:
    before = {number: signal.getsignal(number) for number in (1, 2, 15)}
    descriptors = len(os.listdir("/dev/fd"))
    flags = SignalFlags()
    flags.install()
    assert signal.getsignal(signal.SIGTERM) != before[15]
    flags.restore()
    assert {number: signal.getsignal(number) for number in (1, 2, 15)} == before
    assert len(os.listdir("/dev/fd")) == descriptors
    flags.wake()
    flags.restore()


def test_under_nohup_a_hangup_stays_ignored() -> None:
    script = """
import os, signal
from fileipc.host.signals import SignalFlags
signal.signal(signal.SIGHUP, signal.SIG_IGN)
flags = SignalFlags()
flags.install()
os.kill(os.getpid(), signal.SIGHUP)
print(set(flags.wait(0)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "set()\n"


def test_a_storm_of_signals_never_locks_the_waiter() -> None:
    script = """
import os, signal, sys, threading
from fileipc.host.signals import SignalFlags
from fileipc.protocol.requests import Request
flags = SignalFlags()
flags.install()
def storm():
    for _ in range(3000):
        os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=storm).start()
while Request.STOP not in flags.wait(None):
    pass
print("stopped")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "stopped\n"

"""What handlers do, well-behaved and otherwise. Imported by workers from this folder."""

from __future__ import annotations

import ctypes
import datetime
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from fileipc.errors import ERROR_TABLE, CommandFailure, NotFound, Outcome
from fileipc.executors import worker_process


def add(a: int, b: int) -> int:
    return a + b


def whole(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def where() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "group": os.getpgrp(),
        "cwd": os.getcwd(),
        "path": sys.path,
        "notify": os.environ.get("NOTIFY_SOCKET"),
        "safe_path": os.environ.get("PYTHONSAFEPATH"),
        "stdin": sys.stdin.read(),
    }


def speak() -> str:
    print("noise on stdout")
    os.write(1, b"raw noise\n")
    subprocess.run(["echo", "noise of a child"], check=True)
    return "quiet"


def odd() -> dict[str, Any]:
    return {
        "nan": float("nan"),
        "bytes": b"\xff\x00",
        "date": datetime.date(2026, 5, 17),
        "uuid": uuid.UUID(int=1),
        "set": {1},
    }


def thing() -> object:
    class Local:
        """No pickle and no JSON can hold it."""

    return Local()


def long(size: int) -> str:
    return "x" * size


def fails() -> None:
    raise ValueError("bad \ud800 luck")


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even a message")


def fails_speechless() -> None:
    raise Speechless


def refuses() -> None:
    raise NotFound("no such thing", details={"name": "x"}, outcome=Outcome.FINISHED)


def refuses_oddly() -> None:
    raise CommandFailure("of no known code", details={"thing": object()})


def leaves(kind: str) -> None:
    raise {"exit": SystemExit(3), "interrupt": KeyboardInterrupt()}[kind]


def dies(code: int) -> None:
    os._exit(code)


def segfaults() -> None:
    ctypes.string_at(0)


def sleeps(pid_file: str) -> None:
    Path(pid_file).write_text(f"{os.getpid()}\n")
    while True:
        time.sleep(60)


def backtracks(pid_file: str) -> None:
    Path(pid_file).write_text(f"{os.getpid()}\n")
    re.match(r"(a+)+$", "a" * 64 + "b")


def holds_the_lock(pid_file: str) -> None:
    """One C call that takes hours, hears no signal, and lets no other thread run."""
    Path(pid_file).write_text(f"{os.getpid()}\n")
    sys.set_int_max_str_digits(0)
    str(1 << 400_000_000)


def ignores_term(pid_file: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleeps(pid_file)


def starts_children(folder: str) -> None:
    """One child in the group, one in a session of its own, one orphaned there."""
    subprocess.Popen(["sh", "-c", f"echo $$ > {folder}/child; exec sleep 300"])
    subprocess.Popen(["setsid", "sh", "-c", f"echo $$ > {folder}/own; exec sleep 300"])
    subprocess.Popen(["sh", "-c", f"setsid sh -c 'echo $$ > {folder}/orphan; exec sleep 300' &"])
    while True:
        time.sleep(60)


def forks_and_forgets() -> str:
    child = os.fork()
    if child == 0:
        return "the child answers too"
    os.waitpid(child, 0)
    return "parent"


def hoards(size: int) -> int:
    return len(bytearray(size))


def waits_for(pid_file: str, go: str) -> str:
    Path(pid_file).write_text(f"{os.getpid()}\n")
    while not Path(go).exists():
        time.sleep(0.01)
    return "went on"


def signals_its_parent(number: int) -> int:
    os.kill(os.getppid(), number)
    return os.getpid()


def stops_its_parent_and_exits() -> None:
    os.kill(os.getppid(), signal.SIGSTOP)
    os._exit(3)


def plants(answer: Any) -> int:
    """From the next call on this worker answers what it likes."""
    setattr(worker_process, "execute", lambda _data: answer)  # noqa: B010  mypy knows its type
    return os.getpid()


def raises(code: str, outcome: str | None = None) -> None:
    raise ERROR_TABLE[code]("in its own words", outcome=Outcome(outcome) if outcome else None)


def prints(size: int, last: str, kind: str) -> str:
    sys.stdout.write("x" * size)
    os.write(2, last.encode())
    if kind == "fails":
        raise ValueError("bad luck")
    if kind == "exits":
        os._exit(1)
    return "quiet"


def leaves_behind(kind: str, folder: str) -> int:
    if kind == "timer":
        threading.Timer(3600, os._exit, (1,)).start()
    elif kind == "daemon thread":
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    elif kind == "child":
        child = subprocess.Popen(["sleep", "3600"])
        Path(folder, "left").write_text(f"{child.pid}\n")
    elif kind == "orphan":
        script = f"setsid sh -c 'echo $$ > {folder}/left; exec sleep 3600' &"
        subprocess.run(["sh", "-c", script], check=True)
    elif kind == "alarm":
        signal.alarm(3600)
    elif kind == "umask":
        os.umask(0o123)
    elif kind == "limit":
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    return os.getpid()


def ends_itself(how: str) -> None:
    if how == "descriptors":
        os.closerange(3, 256)
    else:
        os.kill(os.getpid(), getattr(signal, how))
        time.sleep(60)

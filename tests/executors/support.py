"""Jobs, waiting, and a look at processes from outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil

from fileipc.executors.port import ChildCall, ChildEnd, Job, ProcessCall, Stop
from fileipc.protocol.models import Progress

HERE = str(Path(__file__).parent)


def job(
    limit: float = 30.0,
    *,
    project: str = "/",
    stop: Stop | None = None,
    result_limit: int = 16 * 1024 * 1024,
    report: Callable[[Progress | None], None] = lambda _progress: None,
) -> Job:
    """A job with `limit` seconds left."""
    return Job(
        id="job",
        type="test",
        attempt=1,
        project=project,
        deadline=time.monotonic() + limit,
        result_limit=result_limit,
        stop=stop or Stop(),
        report=report,
    )


def work(name: str, **arguments: Any) -> ProcessCall:
    """A call of a function in `work_in_workers`."""
    return ProcessCall(target=f"work_in_workers:{name}", arguments=arguments, path=(HERE,))


def program(*argv: str, **options: Any) -> ChildCall:
    """A program whose end is the result."""
    settings: dict[str, Any] = {
        "cwd": "/",
        "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        "finish": _end,
        "grace": 0.2,
        **options,
    }
    return ChildCall(argv=argv, **settings)


def shell(script: str, **options: Any) -> ChildCall:
    return program("sh", "-c", script, **options)


def value(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(bytes(raw))


def until(holds: Callable[[], bool], timeout: float = 10.0) -> bool:
    """Wait until something holds; False: it did not in time."""
    end = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def written_pid(path: Path) -> int:
    """The number that a process under test writes to a file."""
    assert until(lambda: path.exists() and path.read_text().endswith("\n")), path
    return int(path.read_text())


def stop_once_written(stop: Stop, reason: str, path: Path) -> threading.Thread:
    """Request the stop, from a thread of its own, when the process under test runs."""

    def request() -> None:
        written_pid(path)
        stop.request(reason)

    thread = threading.Thread(target=request)
    thread.start()
    return thread


def _end(end: ChildEnd) -> dict[str, Any]:
    return {
        "exit_code": end.exit_code,
        "signal": end.signal,
        "stdout": end.stdout.decode(),
        "stderr": end.stderr.decode(),
        "stdout_bytes": end.stdout_bytes,
        "stderr_bytes": end.stderr_bytes,
        "enough": end.enough,
    }

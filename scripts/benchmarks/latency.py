"""Ping round trips beside raw inotify on both sides; drain rate beside the bare disk steps."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fileipc import Client
from fileipc.spool.layout import Layout
from fileipc.spool.probe import wait_until_served

IN_MOVED_TO = 0x80
HERE = Path(__file__)


def measure(rounds: int, pings: int, waiting: int, folder: str | None) -> dict[str, float]:
    """Interleaved repetitions; medians over the rounds."""
    floor: list[float] = []
    ours: list[float] = []
    bare_rates: list[float] = []
    drain_rates: list[float] = []
    with tempfile.TemporaryDirectory(prefix="fileipc-bench-", dir=folder) as name:
        base = Path(name)
        with echo_server(base / "floor"), daemon(base / "project") as root:
            client = Client(root)
            for _ in range(rounds):
                floor += raw_round_trips(base / "floor", pings)
                ours += [round_trip(client) for _ in range(pings)]
        for number in range(rounds):
            bare_rates.append(bare_drain(base / f"bare{number}", waiting))
            drain_rates.append(daemon_drain(base / f"drain{number}", waiting))
    p50 = statistics.median
    floor_p99, ours_p99 = percentile(floor, 99), percentile(ours, 99)
    return {
        "raw inotify on both sides, round trip p50 [ms]": p50(floor) * 1e3,
        "ping through Client, round trip p50 [ms]": p50(ours) * 1e3,
        "  ratio (target: at most 1.5)": p50(ours) / p50(floor),
        "  ratio to that floor and the walk's bare disk steps": p50(ours)
        / (p50(floor) + 1 / p50(bare_rates)),
        "raw inotify on both sides, round trip p99 [ms]": floor_p99 * 1e3,
        "ping through Client, round trip p99 [ms]": ours_p99 * 1e3,
        "  ratio (target: at most 5)": ours_p99 / floor_p99,
        "slowest ping [ms]": max(ours) * 1e3,
        "bare disk steps in one process [commands/s]": p50(bare_rates),
        "drain of waiting pings by the daemon [commands/s]": p50(drain_rates),
        "  ratio (target: at least 0.5)": p50(
            [ours / bare for ours, bare in zip(drain_rates, bare_rates, strict=True)]
        ),
    }


def percentile(values: list[float], rank: int) -> float:
    return statistics.quantiles(values, n=100)[rank - 1]


@contextmanager
def daemon(project: Path) -> Iterator[Path]:
    """A daemon that serves one project; ended by its pid."""
    project.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "fileipc", "run", "--root", str(project)],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "FILEIPC_CONFIG": ""},
    )
    try:
        if not wait_until_served(Layout(str(project / ".ipc")), 30.0):
            raise RuntimeError("the daemon did not start")
        yield project / ".ipc"
    finally:
        process.terminate()
        process.wait()


def round_trip(client: Client) -> float:
    began = time.perf_counter()
    client.call("ping", timeout=10)
    return time.perf_counter() - began


# -- the floor: nothing but inotify, one file each way -----------------------------------------


def watch(folder: Path) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.inotify_init1(os.O_CLOEXEC)
    if libc.inotify_add_watch(fd, os.fsencode(folder), IN_MOVED_TO) < 0:
        raise OSError(ctypes.get_errno(), "inotify_add_watch")
    return fd


def put(folder: Path, name: str, data: bytes) -> None:
    temporary = f"{folder}/.{name}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, data)
    os.close(fd)
    os.rename(temporary, f"{folder}/{name}")


def take(folder: Path, name: str) -> bytes:
    path = f"{folder}/{name}"
    fd = os.open(path, os.O_RDONLY)
    data = os.read(fd, 65536)
    os.close(fd)
    os.unlink(path)
    return data


@contextmanager
def echo_server(base: Path) -> Iterator[None]:
    (base / "in").mkdir(parents=True)
    (base / "out").mkdir()
    process = subprocess.Popen(
        [sys.executable, str(HERE), "echo", str(base)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def echo(base: Path) -> None:
    fd = watch(base / "in")
    print("ready", flush=True)
    while True:
        events = os.read(fd, 65536)
        offset = 0
        while offset < len(events):
            length = int.from_bytes(events[offset + 12 : offset + 16], sys.byteorder)
            name = events[offset + 16 : offset + 16 + length].rstrip(b"\0").decode()
            offset += 16 + length
            put(base / "out", name, take(base / "in", name))


def raw_round_trips(base: Path, count: int) -> list[float]:
    fd = watch(base / "out")
    times = []
    for _ in range(count):
        name = f"{uuid.uuid4()}.json"
        data = json.dumps({"id": name, "type": "ping"}).encode()
        began = time.perf_counter()
        put(base / "in", name, data)
        os.read(fd, 65536)
        take(base / "out", name)
        times.append(time.perf_counter() - began)
    os.close(fd)
    return times


# -- draining -----------------------------------------------------------------------------------


def fill(root: Path, count: int) -> None:
    (root / "commands").mkdir(parents=True)
    for _ in range(count):
        name = str(uuid.uuid4())
        command = {"id": name, "type": "ping", "args": {}, "ttl": 3600}
        put(root / "commands", f"{name}.json", json.dumps(command).encode())


def bare_drain(root: Path, count: int) -> float:
    """Commands a second of the walk's system calls, with nothing around them."""
    fill(root, count)
    for name in ("responses", "archive", "locks"):
        (root / name).mkdir()
    response = b"x" * 350
    began = time.perf_counter()
    for entry in os.scandir(root / "commands"):
        stem = entry.name.removesuffix(".json")
        lock = f"{root}/locks/{stem}.lock"
        fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, response[:200])
        os.close(fd)
        fd = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
        os.fstat(fd)
        os.read(fd, 65536)
        os.close(fd)
        put(root / "archive", f"{stem}.response.json", response)
        put(root / "responses", entry.name, response)
        os.rename(entry.path, f"{root}/archive/{stem}.command.json")
        os.unlink(lock)
    rate = count / (time.perf_counter() - began)
    shutil.rmtree(root)
    return rate


def daemon_drain(project: Path, count: int) -> float:
    """Commands a second between the first and the last response of a waiting backlog."""
    root = project / ".ipc"
    fill(root, count)
    (root / "responses").mkdir()
    with daemon(project):
        while not os.listdir(root / "responses"):
            time.sleep(0.001)
        began, done = time.perf_counter(), len(os.listdir(root / "responses"))
        while (left := len(os.listdir(root / "commands"))) > 0:
            time.sleep(0.02 if left > 500 else 0.001)
        rate = (count - done) / (time.perf_counter() - began)
    shutil.rmtree(project)
    return rate


if __name__ == "__main__":
    echo(Path(sys.argv[2]))

"""A server just good enough to test clients against: it holds the lock and answers files.

What it does with a command depends on the command's type; see `FakeDaemon._answer`. As a program
(`python -m tests.client.fake_daemon ROOT`) it serves until it is killed.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import msgspec

from fileipc.errors import CommandFailure, Forbidden, NotFound, ScriptFailed
from fileipc.protocol.codec import decode_command, encode
from fileipc.protocol.models import (
    Claim,
    Command,
    Progress,
    Response,
    RootStatus,
    Status,
    error_info,
)
from fileipc.protocol.names import command_stem
from fileipc.protocol.times import iso
from fileipc.spool.atomic import PRIVATE, Writer
from fileipc.spool.create import create_root, prepare_root
from fileipc.spool.layout import Layout
from fileipc.spool.lock import DaemonLock, Holder
from fileipc.spool.store import Spool

TICK = 0.002


def make_root(project: Path) -> Path:
    """Make `project/.ipc` and return its path."""
    layout = Layout(str(project / ".ipc"))
    create_root(layout, Writer(PRIVATE))
    prepare_root(layout, Writer(PRIVATE))
    return Path(layout.path)


class FakeDaemon:
    """Serves one root from a thread; a context manager."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(str(root))
        self.writer = Writer(PRIVATE)
        self.spool = Spool(self.layout, self.writer)
        self.instance = str(uuid.uuid4())
        self.go_on = threading.Event()  # what `slow` waits for
        self.seen: list[Command] = []
        self._lock = DaemonLock(self.layout, self.writer)
        self._stop = threading.Event()
        self._ignored: set[str] = set()
        self._helpers: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> FakeDaemon:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        now = iso(time.time())
        self._lock.acquire(
            Holder(instance=self.instance, pid=os.getpid(), host="here", started_at=now)
        )
        self.beat()
        self._thread.start()

    def stop(self) -> None:
        """End as one that was killed does: the lock is free, everything else stays."""
        self._stop.set()
        self.go_on.set()
        for thread in (self._thread, *self._helpers):
            thread.join()
        self._lock.release()

    def beat(self, state: str = "serving", *, age: float = 0.0, **fields: Any) -> None:
        status = RootStatus(
            state=state,
            instance=self.instance,
            pid=os.getpid(),
            host=socket.gethostname(),
            boot_id=_boot_id(),
            version="9.9",
            started_at=iso(time.time()),
            timestamp=iso(time.time() - age),
            interval=10.0,
            types=["ping"],
        )
        self.spool.write_status(msgspec.json.encode(msgspec.structs.replace(status, **fields)))

    def _serve(self) -> None:
        while not self._stop.wait(TICK):
            for name in list(self.spool.names()):
                if name not in self._ignored:
                    self._take(name)

    def _take(self, name: str) -> None:
        try:
            raw = Path(self.layout.command(name)).read_bytes()
        except FileNotFoundError:
            return
        command = decode_command(raw).command
        self.seen.append(command)
        self._ignored.add(name)
        if command.type == "silent":
            return
        self.spool.claims.take(command.id, self._claim(command))
        if command.type in ("slow", "torn"):
            self._helpers.append(threading.Thread(target=self._answer, args=(command,)))
            self._helpers[-1].start()
            return
        try:
            self._answer(command)
        except CommandFailure as failure:
            self._settle(command, Status.FAILED, error=failure)

    def _answer(self, command: Command) -> None:
        args = command.args
        match command.type:
            case "ping":
                self._settle(command, Status.COMPLETED, {"pong": True})
            case "echo":
                self._settle(command, Status.COMPLETED, args)
            case "forbidden":
                raise Forbidden("the configuration does not allow it", details={"why": "no"})
            case "fail":
                raise ScriptFailed("exit code 3\x1b[31m")
            case "hang":
                self._run(command, Progress(current=1, total=3, message="working"))
            case "slow":
                for step in (1, 2):
                    self._run(command, Progress(current=step, total=2))
                    time.sleep(5 * TICK)
                self.go_on.wait(10)
                self._settle(command, Status.COMPLETED, "done")
            case "torn":
                self._tear(command)
            case "large":
                self._large(command)
            case "foreign":
                text = f'{{"id": "{command.id}", "status": "failed", "error": "it broke"}}'
                self._publish_text(command, text)
            case "cancel":
                self._cancel(command, str(args["target"]))
            case _:
                raise NotFound(f"no handler {command.type}")

    def _cancel(self, command: Command, target: str) -> None:
        name = f"{target}.json"
        if self.spool.claims.exists(target):
            state = "cancelling"
        elif self.spool.exists(name):
            self.spool.drop_command(name)
            state = "cancelled"
        else:
            raise NotFound("no such command")
        self._settle(command, Status.COMPLETED, {"target": target, "state": state})

    def _tear(self, command: Command) -> None:
        """Write the response in place, in two halves."""
        data = encode(_response(command, Status.COMPLETED, "whole"))
        path = Path(self.layout.response(command.id))
        with path.open("wb") as file:
            file.write(data[:20])
            file.flush()
            self.go_on.wait(10)
            file.write(data[20:])
        self._clear(command)

    def _large(self, command: Command) -> None:
        whole = encode(["x"] * 1000)
        path = self.layout.result(command.id)
        self.writer.replace(path, whole)
        preview = {
            "truncated": True,
            "bytes": len(whole),
            "path": f"responses/{command.id}.result.json",
            "preview": whole[:10].decode(),
        }
        self._settle(command, Status.COMPLETED, preview)

    def _publish_text(self, command: Command, text: str) -> None:
        self.writer.replace(self.layout.response(command.id), text.encode())
        self._clear(command)

    def _run(self, command: Command, progress: Progress) -> None:
        response = _response(command, Status.RUNNING, progress=progress)
        self.spool.publish(command.id, encode(response))

    def _settle(
        self,
        command: Command,
        status: Status,
        result: Any = None,
        error: CommandFailure | None = None,
    ) -> None:
        self.writer.replace(
            self.layout.response(command.id),
            encode(_response(command, status, result, error=error)),
        )
        self._clear(command)

    def _clear(self, command: Command) -> None:
        self.spool.drop_command(f"{command.id}.json")
        self.spool.claims.release(command.id)

    def _claim(self, command: Command) -> Claim:
        return Claim(owner=self.instance, pid=os.getpid(), host="here", attempt=1, claimed_at="now")


def _response(
    command: Command,
    status: Status,
    result: Any = None,
    *,
    error: CommandFailure | None = None,
    progress: Progress | None = None,
) -> Response:
    return Response(
        id=command.id,
        type=command.type,
        status=status,
        result=result,
        error=None if error is None else error_info(error),
        timestamp=iso(time.time()),
        progress=progress,
        meta=command.meta,
    )


def _boot_id() -> str | None:
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else None


def pending(root: Path) -> list[str]:
    """Ids of the commands that lie in the root."""
    stems = [command_stem(name) for name in os.listdir(root / "commands")]
    return [stem for stem in stems if stem is not None]


if __name__ == "__main__":
    with FakeDaemon(Path(sys.argv[1])):
        print("ready", flush=True)
        threading.Event().wait()

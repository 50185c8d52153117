"""A real daemon on real folders, for tests that look at it from outside only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE = 30.0


def until(look: Callable[[], T | None], what: str, patience: float = PATIENCE) -> T:
    """Wait until `look` returns something; fails loudly with `what` was waited for."""
    end = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited {patience:.0f} s in vain for {what}")
        time.sleep(0.01)


class Project:
    """One project folder with its root, as a client without any library sees it."""

    def __init__(self, folder: Path, name: str = "project") -> None:
        self.folder = folder
        self.name = name
        self.root = folder / ".ipc"

    def make(self) -> Project:
        for name in ("commands", "responses"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        return self

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def command_path(self, stem: str) -> Path:
        return self.root / "commands" / f"{stem}.json"

    def drop(self, raw: bytes, stem: str | None = None, *, atomic: bool = True) -> str:
        """Put bytes into commands/ under a stem; returns the stem."""
        stem = stem or str(uuid.uuid4())
        target = self.command_path(stem)
        if atomic:
            temporary = target.with_name(f".{uuid.uuid4()}.tmp")
            temporary.write_bytes(raw)
            temporary.rename(target)
        else:
            target.write_bytes(raw)
        return stem

    def send(
        self,
        type_: str,
        args: Mapping[str, Any] | None = None,
        *,
        atomic: bool = True,
        **fields: Any,
    ) -> str:
        command_id = fields.pop("id", None) or str(uuid.uuid4())
        command = {"id": command_id, "type": type_, "args": dict(args or {}), **fields}
        return self.drop(json.dumps(command).encode(), command_id, atomic=atomic)

    def look(self, stem: str) -> dict[str, Any] | None:
        """The response as it is now; every response ever seen must be whole JSON."""
        try:
            raw = (self.root / "responses" / f"{stem}.json").read_bytes()
        except FileNotFoundError:
            return None
        response: dict[str, Any] = json.loads(raw)
        return response

    def final(self, stem: str) -> dict[str, Any] | None:
        response = self.look(stem)
        return response if response and response["status"] != "running" else None

    def wait(self, stem: str, patience: float = PATIENCE) -> dict[str, Any]:
        """The final response."""
        return until(lambda: self.final(stem), f"the response of {stem}", patience)

    def ask(
        self, type_: str, args: Mapping[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        return self.wait(self.send(type_, args, **fields))

    def ping(self) -> dict[str, Any]:
        return self.ask("ping")

    def wait_running(self, stem: str) -> dict[str, Any]:
        return until(lambda: self.look(stem), f"a running response of {stem}")

    def archived(self, stem: str) -> list[Path]:
        return sorted((self.root / "archive").glob(f"????-??-??/{stem}.*"))

    def rejected(self) -> list[dict[str, Any]]:
        folder = self.root / "archive" / "rejected"
        return [json.loads(path.read_bytes()) for path in sorted(folder.glob("*.reason.json"))]

    def events(self, event: str | None = None) -> list[dict[str, Any]]:
        """The root's log; every line must be JSON."""
        path = self.root / "log" / "fileipc.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines]
        return [line for line in found if event is None or line["event"] == event]

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads((self.root / "status.json").read_bytes())
        return status


class Daemon:
    """`fileipc run` as a child process under one configuration."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.config = folder / "fileipc-daemon.yaml"
        self.stderr = folder / "daemon.stderr"
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def configure(self, *roots: Mapping[str, Any], **top: Any) -> Daemon:
        settings = {"version": 1, **top, "roots": list(roots)}
        self.config.write_text(json.dumps(settings, default=str))  # JSON is YAML
        return self

    def start(self, *, ready: bool = True) -> Daemon:
        with self.stderr.open("ab") as stderr:
            start = stderr.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fileipc", "run", "--config", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=self._env,
                start_new_session=True,
            )
        if ready:
            until(lambda: self._said("daemon_ready", start), "the daemon to be ready")
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, patience: float = PATIENCE) -> int:
        """Wait for the end; returns the exit code."""
        assert self._process is not None
        return self._process.wait(patience)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        if self.alive:
            self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """SIGKILL, as the kernel or a careless hand would."""
        if self.alive:
            self.signal(signal.SIGKILL)
        self.wait()

    def lines(self) -> list[dict[str, Any]]:
        """The supervisor's own log."""
        lines = self.stderr.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def _said(self, event: str, start: int) -> bool:
        if not self.alive:
            raise AssertionError(f"the daemon ended: {self.stderr.read_text()}")
        return f'"{event}"'.encode() in self.stderr.read_bytes()[start:]

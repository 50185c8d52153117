"""Where everything of a root lies. Paths are plain strings: they are built for each command."""

from __future__ import annotations

import os

from ..dialects import NATIVE, Dialect

FOLDER = ".ipc"
LOCK_SUFFIX = ".lock"
DAEMON_LOCK = "daemon.lock"
DAEMON_HOLDER = "daemon.json"
STATUS = "status.json"


class Layout:
    """The paths of one root; `path` is absolute."""

    def __init__(self, path: str, dialect: Dialect = NATIVE) -> None:
        self.path = os.path.abspath(path)
        self.dialect = dialect
        self.commands = f"{self.path}/{dialect.commands}"
        self.responses = f"{self.path}/{dialect.responses}"
        self.archive = f"{self.path}/archive"
        self.rejected = f"{self.archive}/rejected"
        self.locks = f"{self.path}/locks"
        self.log = f"{self.path}/log"
        self.status = f"{self.path}/{STATUS}"
        self.daemon_lock = f"{self.locks}/{DAEMON_LOCK}"
        self.daemon_holder = f"{self.locks}/{DAEMON_HOLDER}"

    @property
    def folders(self) -> tuple[str, ...]:
        """Every folder of a root, parents first."""
        return (
            self.path,
            self.commands,
            self.responses,
            self.archive,
            self.rejected,
            self.locks,
            self.log,
        )

    def command(self, name: str) -> str:
        """`name` is the file's name, ending included."""
        return f"{self.commands}/{name}"

    def response(self, stem: str) -> str:
        return f"{self.responses}/{stem}.json"

    def result(self, command_id: str) -> str:
        return f"{self.responses}/{command_id}.result.json"

    def claim(self, command_id: str) -> str:
        return f"{self.locks}/{command_id}{LOCK_SUFFIX}"

    def archived_command(self, day: str, command_id: str) -> str:
        return f"{self.archive}/{day}/{command_id}.command.json"

    def archived_response(self, day: str, command_id: str) -> str:
        return f"{self.archive}/{day}/{command_id}.response.json"


def find_root(start: str) -> str | None:
    """The nearest `.ipc` folder in `start` or a folder above it, as git finds its own."""
    here = os.path.abspath(start)
    while True:
        if os.path.basename(here) == FOLDER and os.path.isdir(f"{here}/commands"):
            return here
        candidate = os.path.join(here, FOLDER)
        if os.path.isdir(candidate):
            return candidate
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent

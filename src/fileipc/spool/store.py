"""The daemon's side of a root: read, claim, commit, publish, archive, reject.

Each method is one step of a command's walk. The order of the steps is the engine's; that each
step is whole or not there at all, and safe to repeat after a crash, is this module's.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from ..errors import Forbidden, InvalidCommand, TooLarge
from ..protocol.names import command_stem
from ..protocol.times import iso
from .atomic import READ, Writer
from .claims import Claims
from .layout import Layout

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_ODD = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class CommandFile:
    """A file in `commands/` as it was read.

    `arrival` is the inode's change time: it is set when the file comes into the folder and does
    not travel with a copy, as the modification time does. Seconds since 1970.
    """

    name: str
    raw: bytes
    arrival: float
    owner: int
    links: int
    identity: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Final:
    """A final response in the archive."""

    command_id: str
    day: str


class Spool:
    """One root's files; all methods may be called from any thread."""

    def __init__(self, layout: Layout, writer: Writer) -> None:
        self.layout = layout
        self.writer = writer
        self.claims = Claims(layout, writer)
        self._days: tuple[str, ...] = ()

    # -- looking ------------------------------------------------------------------------------

    def names(self) -> Iterator[str]:
        """Names in `commands/` that ask to be commands, in no order."""
        with os.scandir(self.layout.commands) as entries:
            for entry in entries:
                if command_stem(entry.name) is not None:
                    yield entry.name

    def read(self, name: str, limit: int) -> CommandFile:
        """Read one file without ever blocking on it or following it.

        Raises:
            FileNotFoundError: it is gone.
            InvalidCommand: not a regular file. Forbidden: not readable. TooLarge: over `limit`.
        """
        try:
            fd = os.open(self.layout.command(name), READ)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV):
                raise InvalidCommand(
                    "not a regular file: links, sockets and devices are not read"
                ) from None
            if error.errno in (errno.EACCES, errno.EPERM):
                raise Forbidden("the daemon's user cannot read the file") from None
            raise
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise InvalidCommand("not a regular file: folders, FIFOs and devices are not read")
            if found.st_size > limit:
                raise TooLarge(
                    f"the command has {found.st_size} bytes, more than the limit of {limit}",
                    details={"bytes": found.st_size, "limit": limit},
                )
            raw = os.read(fd, limit + 1)
            while len(raw) < found.st_size and (more := os.read(fd, limit + 1 - len(raw))):
                raw += more
        finally:
            os.close(fd)
        return CommandFile(
            name=name,
            raw=raw,
            arrival=found.st_ctime_ns / 1e9,
            owner=found.st_uid,
            links=found.st_nlink,
            identity=_identity(found),
        )

    def writer_at_work(self, name: str) -> bool | None:
        """Whether some process has the file open for writing; None where that cannot be known.

        A read lease is granted only on a file that nobody has open for writing (fcntl(2)).
        """
        if not sys.platform.startswith("linux"):
            return None
        try:
            fd = os.open(self.layout.command(name), READ)
        except OSError:
            return None
        try:
            # Whoever opens it for writing meanwhile breaks the lease, and the kernel tells us by
            # a signal: by default SIGIO, which would end the daemon. SIGURG is ignored by default.
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except OSError as error:
            # EACCES: another user's file, about which only root may ask.
            return True if error.errno == errno.EAGAIN else None
        finally:
            os.close(fd)
        return False

    def still_there(self, file: CommandFile) -> bool:
        """Whether the file that was read is still under its name (not withdrawn, not replaced)."""
        try:
            found = os.stat(self.layout.command(file.name), follow_symlinks=False)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == file.identity[:2]

    def arrival(self, name: str) -> float:
        """When the file came into the folder (seconds since 1970); now, where it is gone."""
        try:
            return os.stat(self.layout.command(name), follow_symlinks=False).st_ctime
        except OSError:
            return time.time()

    def exists(self, name: str) -> bool:
        return os.path.lexists(self.layout.command(name))

    # -- settling -----------------------------------------------------------------------------

    def commit(self, command_id: str, day: str, response: bytes, result: bytes | None) -> None:
        """Write the final response into the archive: from here on it is settled.

        `result` is the full result where the response carries only a preview.
        """
        if result is not None:
            self._in_day(day, f"{command_id}.result.json", result)
        self._in_day(day, f"{command_id}.response.json", response)

    def publish_final(self, final: Final) -> None:
        """Make the archived response appear in `responses/` (again)."""
        archived = self.layout.archived_response(final.day, final.command_id)
        result = self._archived_result(final)
        if os.path.lexists(result):
            self.writer.publish(result, self.layout.result(final.command_id))
        self.writer.publish(archived, self.layout.response(final.command_id))

    def publish(self, stem: str, response: bytes) -> None:
        """Write or replace a response that is not in the archive."""
        self.writer.replace(self.layout.response(stem), response)

    def withdraw_response(self, stem: str) -> None:
        self.writer.remove(self.layout.response(stem))

    def archive_command(self, final: Final, name: str, file: CommandFile | None) -> bool:
        """Move the command beside its response; False: another file lay under its name.

        What was run is what is archived: where the name now leads to other contents, or to
        nothing, the bytes that were read are written instead and the stranger stays where it is.
        """
        target = self.layout.archived_command(final.day, final.command_id)
        source = self.layout.command(name)
        try:
            found = os.stat(source, follow_symlinks=False)
        except FileNotFoundError:
            if file is not None:
                self.writer.replace(target, file.raw)
            return True
        if file is None or _identity(found) == file.identity or self._holds(name, file.raw):
            with suppress(FileNotFoundError):
                self.writer.move(source, target)
            return True
        self.writer.replace(target, file.raw)
        return False

    def find_final(self, command_id: str) -> Final | None:
        """The final response of an id, if one is in the archive."""
        for day in self._days:
            if os.path.lexists(self.layout.archived_response(day, command_id)):
                return Final(command_id, day)
        return None

    def is_same_command(self, final: Final, raw: bytes) -> bool:
        """Whether the archived command has these very bytes."""
        try:
            path = self.layout.archived_command(final.day, final.command_id)
            with open(path, "rb") as file:
                return file.read(len(raw) + 1) == raw
        except FileNotFoundError:
            return False

    def drop_command(self, name: str) -> None:
        """Remove a command that needs no further answer (it was sent twice)."""
        self.writer.remove(self.layout.command(name))

    def response_exists(self, stem: str) -> bool:
        return os.path.lexists(self.layout.response(stem))

    # -- rejecting ----------------------------------------------------------------------------

    def reject(self, name: str, reason: dict[str, object]) -> str:
        """Set a file aside with its reason; returns the name it has in `archive/rejected/`.

        The new name comes from the file itself, so that doing it again after a crash changes
        nothing.
        """
        source = self.layout.command(name)
        found = os.stat(source, follow_symlinks=False)
        stamp = re.sub("[-:.]", "", iso(found.st_mtime_ns / 1e9))
        kept = f"{stamp}-{found.st_ino:x}-{_ODD.sub('_', name)[:100]}"
        target = f"{self.layout.rejected}/{kept}"
        self.writer.replace(f"{target}.reason.json", msgspec.json.encode(reason))
        self.writer.move(source, target)
        return kept

    # -- days ---------------------------------------------------------------------------------

    def load_days(self) -> tuple[str, ...]:
        """Look up which archive days exist, newest first."""
        with os.scandir(self.layout.archive) as entries:
            days = [
                entry.name
                for entry in entries
                if _DAY.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            ]
        self._days = tuple(sorted(days, reverse=True))
        return self._days

    def write_status(self, data: bytes) -> None:
        self.writer.replace(self.layout.status, data)

    def _in_day(self, day: str, name: str, data: bytes) -> None:
        path = f"{self.layout.archive}/{day}/{name}"
        if day not in self._days:
            self._make_day(day)
        try:
            self.writer.replace(path, data)
        except (FileNotFoundError, NotADirectoryError):
            self._make_day(day)
            self.writer.replace(path, data)

    def _make_day(self, day: str) -> None:
        self.writer.folder(f"{self.layout.archive}/{day}", aside=True)
        self.load_days()

    def _archived_result(self, final: Final) -> str:
        return f"{self.layout.archive}/{final.day}/{final.command_id}.result.json"

    def _holds(self, name: str, raw: bytes) -> bool:
        """Whether the file has these contents (touched or rewritten, but not changed)."""
        try:
            return self.read(name, len(raw) + 1).raw == raw
        except (OSError, InvalidCommand, Forbidden, TooLarge):
            return False


def _identity(found: os.stat_result) -> tuple[int, int, int, int]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

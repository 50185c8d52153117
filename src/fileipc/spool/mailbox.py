"""The client's side of a root: put a command in, look for its response, take things back.

Imports nothing heavy: this is what every `fileipc send` pays for.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from .layout import Layout

_MAX_RESPONSE = 64 * 1024 * 1024
_MAX_STATUS = 1024 * 1024


class Mailbox:
    """Files of one root as a client may touch them."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def post(self, command_id: str, data: bytes) -> None:
        """Make `commands/{id}.json` appear, whole.

        Raises:
            FileExistsError: a command of that id is waiting or running already.
            OSError: the folder is missing, full or closed to this user.
        """
        temporary = f"{self.layout.commands}/.{command_id}.tmp"
        final = self.layout.command(f"{command_id}.json")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(temporary, flags, 0o640)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
            finally:
                os.close(fd)
            if os.path.lexists(final):
                raise FileExistsError(f"{final} exists already; use a new id")
            os.rename(temporary, final)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def fetch(self, command_id: str) -> bytes | None:
        """The response's bytes; None while there is none."""
        return _read(self.layout.response(command_id), _MAX_RESPONSE)

    def fetch_result(self, command_id: str) -> bytes | None:
        """The full result of a response that carries only a preview of it."""
        return _read(self.layout.result(command_id), _MAX_RESPONSE)

    def has_result(self, command_id: str) -> bool:
        """Whether the full result of a preview lies beside the response."""
        return os.path.lexists(self.layout.result(command_id))

    def peek(self, command_id: str) -> bytes | None:
        """The bytes of a command that waits or runs; None where there is none."""
        return _read(self.layout.command(f"{command_id}.json"), _MAX_RESPONSE)

    def discard(self, command_id: str) -> None:
        """Remove a response that has been read, and its result beside it."""
        for path in (self.layout.response(command_id), self.layout.result(command_id)):
            with suppress(FileNotFoundError):
                os.unlink(path)

    def withdraw(self, command_id: str) -> bool:
        """Take back a command; True: it has not run and never will.

        The daemon claims before it looks at the file a last time, so a removed file without a
        claim cannot run any more. A running command's file is left alone: a restart needs it.
        """
        if self.is_claimed(command_id):
            return False
        try:
            os.unlink(self.layout.command(f"{command_id}.json"))
        except FileNotFoundError:
            return False
        # In this order: one that was claimed and settled meanwhile published before it let go.
        return not self.is_claimed(command_id) and not os.path.lexists(
            self.layout.response(command_id)
        )

    def is_waiting(self, command_id: str) -> bool:
        return os.path.lexists(self.layout.command(f"{command_id}.json"))

    def is_claimed(self, command_id: str) -> bool:
        return os.path.lexists(self.layout.claim(command_id))

    def status(self) -> bytes | None:
        """The daemon's last heartbeat."""
        return _read(self.layout.status, _MAX_STATUS)


def _read(path: str, limit: int) -> bytes | None:
    """A regular file's bytes, up to `limit`; None where there is nothing of the kind.

    Never blocks on what somebody put there (a FIFO, a device) and never follows a link.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV):
            return None
        raise
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return None
        data = os.read(fd, min(found.st_size + 1, limit))
        while len(data) < limit and (more := os.read(fd, min(1 << 20, limit - len(data)))):
            data += more
        return data
    finally:
        os.close(fd)

"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

_counter = itertools.count()
_TOKEN = f"{os.getpid():x}-{os.urandom(3).hex()}"
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""How a file of a root is opened: never following it, never blocking on it."""
PASSING = NO_ROOM | {errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
"""What the system says when it can do no work now, whatever the file."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Permission bits of what the daemon makes: private (default) or shared with a group."""

    folder: int = 0o700
    file: int = 0o600
    shared_folder: int = 0o700  # commands/ and responses/, where clients write and remove


PRIVATE = Modes()
GROUP = Modes(folder=0o2750, file=0o640, shared_folder=0o2770)
MODES: Mapping[str, Modes] = {"private": PRIVATE, "group": GROUP}
"""By the word that the configuration uses."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Creates files under given modes and a given durability, whatever the umask.

    `durable` (durability: power) makes each file and each rename survive a power cut; without
    it they survive the death of the process only.
    """

    modes: Modes = PRIVATE
    durable: bool = False

    def replace(self, path: str, data: bytes) -> None:
        """Write `data` to a temporary beside `path`, then rename it over `path`."""
        temporary = self.temporary(path)
        try:
            self._fill(temporary, data)
            self._rename(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        self.sync_folder(os.path.dirname(path))

    def create(self, path: str, data: bytes) -> None:
        """Create `path` exclusively; FileExistsError where it is there already.

        Not atomic in content: a reader must take an unreadable file for an unfinished one.
        """
        try:
            self._fill(path, data)
        except FileExistsError:
            raise
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise
        self.sync_folder(os.path.dirname(path))

    def publish(self, source: str, path: str) -> None:
        """Make the file `source` appear at `path` as well, replacing what is there."""
        temporary = self.temporary(path)
        try:
            os.link(source, temporary, follow_symlinks=False)
        except OSError as error:
            if error.errno in NO_ROOM or isinstance(error, FileNotFoundError):
                raise
            with open(source, "rb") as file:  # no hard links here: a copy does as well
                self.replace(path, file.read())
            return
        try:
            self._rename(temporary, path)
        finally:
            # Renaming onto another name of the same file does nothing at all.
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        self.sync_folder(os.path.dirname(path))

    def move(self, source: str, path: str) -> None:
        os.rename(source, path)
        if self.durable:
            self.sync_folder(os.path.dirname(path))
            self.sync_folder(os.path.dirname(source))

    def remove(self, path: str) -> bool:
        """Unlink; False where it was gone already."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        except (IsADirectoryError, PermissionError):
            if not os.path.isdir(path):
                raise
            os.rename(path, self.temporary(path))
        self.sync_folder(os.path.dirname(path))
        return True

    def folder(self, path: str, *, shared: bool = False, aside: bool = False) -> None:
        """Make a folder with the right mode; quietly keep what is there.

        With `aside` what is there and is no folder (a file, a link) is moved out of the way.
        """
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            if not aside or (os.path.isdir(path) and not os.path.islink(path)):
                return
            os.rename(path, self.temporary(path))
            os.mkdir(path, 0o700)
        if self.modes.folder & 0o2000:
            # The group of the root rules, even where the root itself lacks the setgid bit.
            with suppress(PermissionError):
                os.chown(path, -1, os.stat(os.path.dirname(path)).st_gid)
        os.chmod(path, self.modes.shared_folder if shared else self.modes.folder)
        self.sync_folder(os.path.dirname(path))

    def _rename(self, temporary: str, path: str) -> None:
        """Rename over `path`; a folder that somebody put in a file's place is moved aside."""
        try:
            os.rename(temporary, path)
        except IsADirectoryError:
            os.rename(path, self.temporary(path))
            os.rename(temporary, path)

    def sync_folder(self, path: str) -> None:
        if not self.durable:
            return
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def temporary(self, path: str) -> str:
        """A hidden name beside `path` that no other writer uses."""
        folder, name = os.path.split(path)
        return f"{folder}/.{name[:150]}.{_TOKEN}-{next(_counter):x}.tmp"

    def _fill(self, path: str, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(path, flags, self.modes.file)
        try:
            os.fchmod(fd, self.modes.file)  # the umask has no say
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if self.durable:
                os.fsync(fd)
        finally:
            os.close(fd)

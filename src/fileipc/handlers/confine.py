"""The border around a project: nothing a handler opens lies outside it.

A path is resolved first, then the resolved path is walked again one component at a time, each
opened relative to the one before and never through a symlink. So a link that stays inside is
followed, one that leads out is refused, and a swap between the check and the open fails instead
of escaping. What counts is the open descriptor.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import weakref
from types import TracebackType

from ..errors import CommandFailure, Forbidden, HandlerError, InvalidArgs, NotFound, Outcome

ROOT_NAME = ".ipc"
MAX_PATH = 4096
_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY)  # a folder may be searched that may not be listed
_FOLDER = _PATH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a symlink"),
)


class Opened:
    """An open regular file or folder of the project; closed on exit from `with`, or at its end.

    `relative` is the real path from the project's folder ("." for the folder itself), `status`
    what `fstat` said.
    """

    def __init__(self, fd: int, relative: str, status: os.stat_result) -> None:
        self.fd = fd
        self.relative = relative
        self.status = status
        # A call that is dropped unrun must not leak its descriptor.
        self._closer = weakref.finalize(self, os.close, fd)
        self._closer.atexit = False

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    def close(self) -> None:
        self._closer()

    def __enter__(self) -> Opened:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Border:
    """The border of one project. `project` and `root` (its `.ipc`) are absolute paths."""

    def __init__(self, project: str, root: str) -> None:
        self.project = os.path.realpath(project)
        self.root = os.path.realpath(root)

    def resolve(self, path: str) -> str:
        """The real path from the project's folder; it need not exist.

        Raises:
            InvalidArgs: empty, too long, or holding what no path can hold.
            Forbidden: it leads outside the project or into its `.ipc` folder.
        """
        if not path:
            raise InvalidArgs("the path is empty")
        if "\0" in path:
            raise InvalidArgs(f"the path holds a NUL character: {shown(path)}")
        if len(path) > MAX_PATH:
            raise InvalidArgs(f"the path has {len(path)} characters; the limit is {MAX_PATH}")
        try:
            real = os.path.realpath(os.path.join(self.project, path))
        except ValueError:
            raise InvalidArgs(f"not a path: {shown(path)}") from None
        except OSError as error:
            raise self._refusal(error, path) from None
        if real != self.project and not real.startswith(_inside(self.project)):
            raise Forbidden(f"outside the project: {shown(path)}")
        relative = os.path.relpath(real, self.project)
        if (
            real == self.root
            or real.startswith(_inside(self.root))
            or ROOT_NAME in relative.split("/")
        ):
            raise Forbidden(f"the {ROOT_NAME} folder is not a target: {shown(path)}")
        return relative

    def absolute(self, relative: str) -> str:
        """The absolute path of what `resolve` returned."""
        return self.project if relative == "." else os.path.join(self.project, relative)

    def open(self, path: str) -> Opened:
        """Open a regular file (for reading) or a folder (for listing).

        Raises:
            CommandFailure: as for `resolve`; NotFound where nothing is there; Forbidden for
                FIFOs, sockets and devices ("not a regular file") and for want of permission.
        """
        relative = self.resolve(path)
        try:
            return self._walk(relative, path)
        except OSError as error:
            raise self._refusal(error, path) from None

    def open_file(self, path: str) -> Opened:
        """As `open`, for a regular file only."""
        opened = self.open(path)
        if opened.is_folder:
            opened.close()
            raise Forbidden(f"not a regular file: {shown(path)} is a folder")
        return opened

    def _walk(self, relative: str, path: str) -> Opened:
        if relative == ".":
            fd = os.open(self.project, _LISTING)
            return Opened(fd, relative, os.fstat(fd))
        *folders, name = relative.split("/")
        here = os.open(self.project, _FOLDER)
        try:
            for folder in folders:
                below = os.open(folder, _FOLDER, dir_fd=here)
                os.close(here)
                here = below
                self._not_the_root(here, path)
            return self._open_last(name, here, relative, path)
        finally:
            os.close(here)

    def _open_last(self, name: str, parent: int, relative: str, path: str) -> Opened:
        # Looked at first, because opening a device or a FIFO can itself have an effect.
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        flags = _LISTING if stat.S_ISDIR(found.st_mode) else _FILE
        if not stat.S_ISLNK(found.st_mode):
            self._regular(found, path)
        fd = os.open(name, flags, dir_fd=parent)
        opened = Opened(fd, relative, os.fstat(fd))
        try:
            self._regular(opened.status, path)
            if opened.is_folder:
                self._not_the_root(fd, path)
        except CommandFailure:
            opened.close()
            raise
        return opened

    @staticmethod
    def _regular(status: os.stat_result, path: str) -> None:
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise Forbidden(f"not a regular file: {shown(path)} is {special_kind(status.st_mode)}")

    def _not_the_root(self, fd: int, path: str) -> None:
        # By identity as well as by name: a bind mount or a case-folding disk has other names.
        try:
            root = os.stat(self.root)
        except OSError:
            return
        if os.path.samestat(os.fstat(fd), root):
            raise Forbidden(f"the {ROOT_NAME} folder is not a target: {shown(path)}")

    @staticmethod
    def _refusal(error: OSError, path: str) -> CommandFailure:
        code = error.errno
        if code in (errno.ENOENT, errno.ENOTDIR):
            return NotFound(f"no such file or folder: {shown(path)}")
        if code in (errno.ELOOP, errno.EINVAL):  # the latter: a link that is none any more
            return Forbidden(f"a symlink loop, or changed while being opened: {shown(path)}")
        if code in (errno.EACCES, errno.EPERM):
            return Forbidden(f"the daemon may not read it (permission denied): {shown(path)}")
        if code in (errno.ENXIO, errno.ENODEV):
            return Forbidden(f"not a regular file: {shown(path)}")
        if code == errno.ENAMETOOLONG:
            return InvalidArgs(f"the path or a part of it is too long: {shown(path)}")
        reason = error.strerror or "unknown error"
        return HandlerError(
            f"cannot open {shown(path)}: {reason}",
            details={"errno": errno.errorcode.get(code or 0, str(code))},
            outcome=Outcome.NOT_STARTED,
        )


def special_kind(mode: int) -> str:
    """What a file that is neither regular nor a folder is: "a FIFO", "a device", ..."""
    return next((kind for test, kind in _KINDS if test(mode)), "something else")


def plain(name: str) -> str:
    """A file name as text that JSON can carry: a byte that is not UTF-8 becomes U+FFFD."""
    return name if name.isascii() else _SURROGATE.sub("\ufffd", name)


def shown(name: str) -> str:
    """A name for a message: as `plain`, and cut where it is endless."""
    return plain(name if len(name) <= 300 else f"{name[:300]}...")


def _inside(folder: str) -> str:
    return folder if folder.endswith("/") else f"{folder}/"

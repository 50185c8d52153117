"""Making a root, and making sure that what is there is one."""

from __future__ import annotations

import os
import stat

from ..errors import RootError, RootMissing
from .atomic import Writer
from .layout import Layout

_GITIGNORE = b"# The spool of fileipc: never part of a repository.\n*\n"


def create_root(layout: Layout, writer: Writer) -> bool:
    """Make the root folder itself (its parent must exist); False where it was there already.

    Only ever called because somebody asked for it by name: a folder made under an empty mount
    point would be hidden once the disk is mounted.
    """
    if os.path.isdir(layout.path):
        return False
    parent = os.path.dirname(layout.path)
    if not os.path.isdir(parent):
        raise RootMissing(f"{parent} does not exist")
    writer.folder(layout.path)
    return True


def prepare_root(layout: Layout, writer: Writer) -> None:
    """Make what is missing inside an existing root, and refuse what is not a root.

    Raises:
        RootMissing: the root's folder is not there.
        RootError: it, or a folder in it, is a link or no folder, or belongs to somebody who
            could redirect it.
    """
    try:
        _check(layout.path, missing=RootMissing)
    except RootMissing as error:
        raise RootMissing(
            f"{error}; it is waited for (to make it: fileipc init {os.path.dirname(layout.path)})"
        ) from None
    shared = (layout.commands, layout.responses)
    for folder in layout.folders[1:]:
        try:
            writer.folder(folder, shared=folder in shared)
        except OSError as error:
            raise RootError(f"cannot make {folder}: {error.strerror}") from error
        _check(folder, missing=RootError)
    ignore = f"{layout.path}/.gitignore"
    if not os.path.lexists(ignore):
        writer.replace(ignore, _GITIGNORE)


def folder_identity(path: str) -> tuple[int, int] | None:
    """Device and inode of a folder; None where it is gone or no folder any more."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def folder_group(path: str) -> int:
    """The gid of a folder."""
    return os.stat(path, follow_symlinks=False).st_gid


def _check(path: str, *, missing: type[RootError]) -> None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        raise missing(f"{path} does not exist") from None
    except OSError as error:
        raise RootError(f"cannot read {path}: {error.strerror}") from error
    if stat.S_ISLNK(found.st_mode):
        raise RootError(f"{path} is a symbolic link; name the real folder")
    if not stat.S_ISDIR(found.st_mode):
        raise RootError(f"{path} is not a folder")
    if found.st_uid not in (os.getuid(), 0) and os.getuid() != 0:
        raise RootError(f"{path} belongs to user {found.st_uid}, not to the daemon's user")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise RootError(f"{path} cannot be read and written by the daemon")

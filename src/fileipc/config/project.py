"""The project's own `fileipc.yaml`: read only where the daemon's configuration says so.

Whoever may write this file may have programs run as the daemon's user. So it must be a regular
file of that user or of root, which nobody else may write; what is in doubt is an error, never
silently skipped.
"""

from __future__ import annotations

import errno
import os
import stat

from msgspec import structs

from ..errors import ConfigError, Problem
from .document import MAX_BYTES, parse
from .keys import PROJECT
from .nodes import Unfit
from .sections import Found
from .settings import BUILT_IN, RootSettings

PROJECT_FILE = "fileipc.yaml"
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR})


def project_keys(ipc: str, problems: list[Problem]) -> dict[str, Found]:
    """The keys of the file beside an `.ipc` folder, with their places; empty: no such file.

    Faults, also those of its owner and mode, are added to `problems`.
    """
    file = project_file(ipc)
    try:
        raw = _read_trusted(file)
        if raw is None:
            return {}
        top = parse(raw, file, problems)
        found = PROJECT.collect(top)
    except OSError as error:
        problems.append(Problem(file, None, "", f"cannot be read: {error.strerror}"))
    except Unfit as error:
        problems.append(Problem(file, None, "", error.message, error.suggestion))
    except ConfigError as error:
        problems.extend(error.problems)
    else:
        found.pop("version", None)
        return found
    return {}


def project_file(ipc: str) -> str:
    return os.path.join(os.path.dirname(ipc), PROJECT_FILE)


def apply_project_config(root: RootSettings) -> RootSettings:
    """Read the project's file for a root whose folder was not there when `load` read the rest.

    Does nothing where `project_config` is off. What `load` returns has it applied where the
    folder was there.

    Raises:
        ConfigError: the file is wrong or may not be trusted.
    """
    if not root.project_config:
        return root
    problems: list[Problem] = []
    found = project_keys(root.path, problems)
    merged = structs.replace(root, **{key: item.value for key, item in found.items()})
    known = (*BUILT_IN, *merged.handlers)
    place = next((found[key].place for key in ("allow", "handlers") if key in found), None)
    for name in merged.allow or ():
        if name not in known:
            line = place.line if place else None
            problems.append(Problem(project_file(root.path), line, "allow", not_known(name)))
    if problems:
        raise ConfigError(tuple(problems))
    return merged


def not_known(name: str) -> str:
    return f"{name} is neither a built-in type nor a configured handler"


def _read_trusted(file: str) -> bytes | None:
    """The file's bytes; None: it is not there. Unfit: it may not be trusted."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(file, flags)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        if error.errno == errno.ELOOP:
            raise Unfit("is a symbolic link; put the file itself there") from None
        raise
    try:
        _check_trust(os.fstat(fd))  # of what was opened: the name may mean another file by now
        with open(fd, "rb", closefd=False) as stream:
            return stream.read(MAX_BYTES + 1)
    finally:
        os.close(fd)


def _check_trust(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Unfit("is not a regular file")
    if found.st_uid not in (os.geteuid(), 0):
        raise Unfit(
            f"belongs to uid {found.st_uid}; it must belong to the daemon's user "
            f"(uid {os.geteuid()}) or to root"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        raise Unfit(f"others may write it (mode {mode:04o}); take that away with: chmod go-w")

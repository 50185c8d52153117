"""From files and arguments to frozen settings, with every fault told at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ConfigError, Problem
from .check import check_log_file, check_roots
from .document import MAX_BYTES, parse
from .drafts import Draft, choose, from_layer
from .keys import TOP
from .nodes import Unfit
from .project import apply_project_config
from .sections import Found
from .settings import Settings

__all__ = [
    "apply_project_config",
    "default_settings",
    "find_config",
    "load",
    "settings_for_roots",
]

VARIABLE = "FILEIPC_CONFIG"
SYSTEM_CONFIG = "/etc/fileipc/config.yaml"


def load(path: str) -> Settings:
    """Read one configuration file.

    Raises:
        ConfigError: everything that is wrong in it and in the projects' own files.
    """
    return _load(path, ())


def default_settings(cwd: str) -> Settings:
    """Without any configuration: `.ipc` in `cwd` (or `cwd` itself, if it is one), safe defaults."""
    return settings_for_roots([cwd], cwd=cwd)


def settings_for_roots(paths: Sequence[str], *, cwd: str, config: str | None = None) -> Settings:
    """Serve exactly these roots: `.ipc` folders, or project folders that hold one.

    Args:
        paths: relative ones count from `cwd`.
        config: a configuration file; a root that it names gets its settings from there, any
            other one gets its `defaults`.

    Raises:
        ConfigError: as `load`; also the same root twice.
    """
    absolute = [os.path.normpath(os.path.join(cwd, path)) for path in paths]
    if config is not None:
        return _load(config, absolute)
    problems: list[Problem] = []
    drafts = choose([], absolute, {}, problems)
    return _settings({}, drafts, problems, source=None)


def find_config(
    explicit: str | None, environ: Mapping[str, str], *, system: str = SYSTEM_CONFIG
) -> str | None:
    """The absolute path of the configuration file to use; None: there is none.

    The first of: `explicit` (--config), $FILEIPC_CONFIG, the user's own file in
    $XDG_CONFIG_HOME (default ~/.config), the system's.

    Raises:
        ConfigError: a file that was asked for by name is not there.
    """
    asked = ((explicit, "--config"), (environ.get(VARIABLE) or None, f"${VARIABLE}"))
    for name, origin in asked:
        if name is not None:
            path = os.path.abspath(os.path.expanduser(name)) if name else ""
            if not path or not _there(path):
                raise ConfigError((Problem(path, None, origin, "there is no such file"),))
            return path
    for path in (_user_config(environ), system):
        if _there(path):
            return path
    return None


def _user_config(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME") or os.path.expanduser("~")
    folder = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # the XDG rules: a relative one is to be ignored
        folder = os.path.join(home, ".config")
    return os.path.join(folder, "fileipc", "config.yaml")


def _there(path: str) -> bool:
    # A file that is there but cannot be reached or read must be told, not passed over.
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def _load(path: str, only: Sequence[str]) -> Settings:
    source = os.path.abspath(path)
    problems: list[Problem] = []
    top = parse(_read(source), source, problems)
    try:
        found = TOP.collect(top)
    except Unfit as error:
        raise ConfigError((Problem(source, 1, "", error.message, error.suggestion),)) from None
    defaults: dict[str, Found] = found["defaults"].value.value if "defaults" in found else {}
    if "roots" not in found and not only and not any(p.key == "roots" for p in problems):
        top.refuse("missing; expected a list of roots", below="roots")
    layers: Sequence[Found] = found["roots"].value if "roots" in found else ()
    drafts = [from_layer(layer, defaults) for layer in layers if "path" in layer.value]
    if only:
        drafts = choose(drafts, only, defaults, problems)
    if "log" in found:
        check_log_file(found["log"])
    values: dict[str, Any] = {
        key: found[key].value for key in ("version", "log", "stop_timeout") if key in found
    }
    return _settings(values, drafts, problems, source=source)


def _settings(
    values: Mapping[str, Any],
    drafts: Sequence[Draft],
    problems: list[Problem],
    *,
    source: str | None,
) -> Settings:
    for draft in drafts:
        draft.read_project_file()
    check_roots(drafts)
    if problems:
        raise ConfigError(_in_order(problems, source))
    return Settings(**values, roots=tuple(draft.settings() for draft in drafts), source=source)


def _in_order(problems: Sequence[Problem], source: str | None) -> tuple[Problem, ...]:
    """Each once; those of the main file first, in each file by line."""
    files = {source: 0}
    for problem in problems:
        files.setdefault(problem.file, len(files))
    once = dict.fromkeys(problems)
    return tuple(sorted(once, key=lambda problem: (files[problem.file], problem.line or 0)))


def _read(path: str) -> bytes:
    try:
        # A FIFO that nobody writes would be waited for when it is opened.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ConfigError((Problem(path, None, "", "is not a regular file"),))
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError((Problem(path, None, "", f"cannot be read: {why}"),)) from None

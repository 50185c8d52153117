"""Ids and file names: what may name a command, and where each file of it lies."""

from __future__ import annotations

import re

_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_ID = re.compile(rf"(?:[A-Za-z][A-Za-z0-9_]{{0,15}}-)?{_UUID}")
_SAFE_STEM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", *(f"{p}{n}" for p in ("com", "lpt") for n in range(1, 10))]
)
SUFFIX = ".json"
RESULT_SUFFIX = ".result"


def parse_id(text: str) -> str | None:
    """The id in lower case, or None where the text is not a UUID with an optional prefix."""
    return text.lower() if _ID.fullmatch(text) else None


def command_stem(name: str) -> str | None:
    """The stem of a file that asks to be a command; None for temporaries and other files.

    Dotfiles, `*~`, `*.tmp`, `*.part`, `*.swp` and anything else without the ending `.json`
    are left alone.
    """
    if name.startswith(".") or not name.endswith(SUFFIX):
        return None
    return name[: -len(SUFFIX)]


def is_safe_stem(stem: str) -> bool:
    """Whether a response may be written under this stem.

    Unsafe are names that mean something to a file system or a shell (path parts, a leading dash
    or dot, device names, control characters), overlong ones, and `x.result`, which would collide
    with the side file of a large result.
    """
    if not _SAFE_STEM.fullmatch(stem):
        return False
    return (
        not stem.endswith((".", RESULT_SUFFIX)) and stem.split(".", 1)[0].lower() not in _RESERVED
    )

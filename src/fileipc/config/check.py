"""Checks that need more than one key, or a look at the disk: roots against each other, `allow`
against `handlers`, paths that can never be."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress

from .drafts import Draft
from .kinds import near
from .nodes import Place
from .project import not_known
from .sections import Found
from .settings import BUILT_IN, LogSettings

_LONGEST_NAME = 255  # bytes of one part of a path, on every usual file system
# Bytes of a whole path, less what is longest in a root: a name in archive/rejected/ (Linux's 4096
# count the end of the text).
_LONGEST_PATH = 4095 - len("/archive/rejected/") - _LONGEST_NAME


def check_roots(drafts: Sequence[Draft]) -> None:
    """Note every fault; drop from inherited `allow` lists what only other roots configure."""
    _check_folders(drafts)
    _check_names(drafts)
    configured = {name for draft in drafts for name in draft.value("handlers", {})}
    for draft in drafts:
        _check_allow(draft, configured)


def check_log_file(log: Found) -> None:
    """Note it where `log.file` cannot be written for want of its folder, or is no file."""
    settings: LogSettings = log.value
    if settings.file is None:
        return
    place = log.place.entries()["file"]
    folder = os.path.dirname(settings.file)
    reason = _never(settings.file)
    if reason is None and not os.path.isdir(folder):
        reason = f"its folder is not there: {folder}"
    if reason is None:
        with suppress(OSError):
            if not stat.S_ISREG(os.lstat(settings.file).st_mode):
                reason = f"is not a regular file: {settings.file}"
    if reason is not None:
        place.refuse(reason)


def _check_folders(drafts: Sequence[Draft]) -> None:
    for draft in drafts:
        wanted = {"path": draft.path}
        if "project" in draft.own:
            wanted["project"] = draft.project
        for key, path in wanted.items():
            reason = _never(path) or _no_folder(path)
            if reason is not None:
                draft.refuse(key, reason)
    folders: dict[str, Draft] = {}
    for draft in drafts:
        real = os.path.realpath(draft.path)
        first = folders.setdefault(real, draft)
        if first is not draft:
            draft.refuse("path", f"the same folder as {first.label}: {real}")
    for draft in drafts:
        for folder in _above(os.path.realpath(draft.path)):
            if folder in folders:
                draft.refuse("path", f"lies inside the .ipc folder of {folders[folder].label}")
        if "project" not in draft.own:
            continue
        project = os.path.realpath(draft.project)
        for folder in (project, *_above(project)):
            if folder in folders:
                label = folders[folder].label
                draft.refuse("project", f"lies inside the .ipc folder of {label}")


def _never(path: str) -> str | None:
    """Why no such path can ever be; what is merely not there yet can."""
    raw = os.fsencode(path)
    longest = max(raw.split(b"/"), key=len)
    if len(longest) > _LONGEST_NAME:
        shown = longest[:40].decode("utf-8", "replace")
        return f"a part of {len(longest)} bytes ({shown}...); the limit is {_LONGEST_NAME}"
    if len(raw) > _LONGEST_PATH:
        return f"a path of {len(raw)} bytes; the limit is {_LONGEST_PATH}"
    return next((reason for above in _above(path) if (reason := _no_folder(above))), None)


def _no_folder(path: str) -> str | None:
    with suppress(OSError):
        if not stat.S_ISDIR(os.stat(path).st_mode):
            return f"{path} is not a folder"
    return None


def _above(path: str) -> Iterator[str]:
    while (parent := os.path.dirname(path)) != path:
        yield parent
        path = parent


def _check_names(drafts: Sequence[Draft]) -> None:
    names: dict[str, Draft] = {}
    for draft in drafts:
        first = names.setdefault(draft.name.casefold(), draft)
        if first is draft:
            continue
        same = "" if first.name == draft.name else f" (but for its case: {first.name})"
        advice = "" if "name" in draft.own else "; give one of them a name"
        draft.refuse("name", f"{draft.name} is already the name of {first.label}{same}{advice}")


def _check_allow(draft: Draft, configured: set[str]) -> None:
    if draft.value("allow", None) is None or draft.waiting:
        return
    handlers = draft.value("handlers", {})
    known = (*BUILT_IN, *handlers)
    found = draft.found["allow"]
    inherited = "allow" not in draft.own
    for item in _strange(found.place, found.value, known):
        name = str(item.value())
        if inherited and name in configured:
            continue
        item.refuse(not_known(name), near(name, known))
    if inherited:
        kept = tuple(name for name in found.value if name in known)
        draft.found["allow"] = Found(kept, found.place)


def _strange(place: Place, values: Sequence[str], known: Sequence[str]) -> Iterator[Place]:
    # What is not a name at all is no longer among the values: that fault is noted already.
    for item in place.items():
        value = item.value()
        if isinstance(value, str) and value in values and value not in known:
            yield item

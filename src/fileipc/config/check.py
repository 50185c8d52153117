"""Checks that need more than one key: roots against each other, `allow` against `handlers`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from .drafts import Draft
from .kinds import near
from .nodes import Place
from .project import not_known
from .sections import Found
from .settings import BUILT_IN


def check_roots(drafts: Sequence[Draft]) -> None:
    """Note every fault; drop from inherited `allow` lists what only other roots configure."""
    _check_folders(drafts)
    _check_names(drafts)
    configured = {name for draft in drafts for name in draft.value("handlers", {})}
    for draft in drafts:
        _check_allow(draft, configured)


def _check_folders(drafts: Sequence[Draft]) -> None:
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

"""A root between its keys and its settings: defaults, own keys and the project's keys together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Problem
from ..spool.layout import FOLDER
from .keys import ROOT_NAME
from .nodes import Place
from .project import project_keys
from .sections import Found
from .settings import RootSettings

COMMAND_LINE = "--root"
_LONGEST_NAME = 64


@dataclass(slots=True)
class Draft:
    """One root.

    `found` are the keys that somebody wrote, with their places; `own` the names of those that
    this root wrote itself. `place` is None for a root of the command line. `waiting`: the folder
    that may hold the project's own file is not there yet, so its keys are not known.
    """

    path: str
    project: str
    name: str
    found: dict[str, Found]
    own: frozenset[str]
    place: Place | None
    problems: list[Problem]
    waiting: bool = False

    @property
    def label(self) -> str:
        """For a message about another root."""
        if self.place is None:
            return f"{COMMAND_LINE} {self.path}"
        return f"{self.place.path} (line {self.place.line})"

    def value(self, key: str, default: Any) -> Any:
        return self.found[key].value if key in self.found else default

    def refuse(self, key: str, message: str, suggestion: str | None = None) -> None:
        """Note a fault at the key where it is written, else at the root."""
        if key in self.found and key in self.own:
            self.found[key].place.refuse(message, suggestion)
        elif self.place is not None:
            self.place.refuse(message, suggestion, below=key)
        else:
            self.problems.append(Problem(COMMAND_LINE, None, self.path, message, suggestion))

    def read_project_file(self) -> None:
        """Let the keys of the project's own file replace what is there, where that is on."""
        if not self.value("project_config", False):
            return
        found = project_keys(self.path, self.problems)
        self.found.update(found)
        self.own |= found.keys()
        self.waiting = not os.path.isdir(os.path.dirname(self.path))

    def settings(self) -> RootSettings:
        values = {key: item.value for key, item in self.found.items()}
        values.update(path=self.path, project=self.project, name=self.name)
        return RootSettings(**values)


def from_layer(layer: Found, defaults: Mapping[str, Found]) -> Draft:
    """The root of one item of `roots`, which has a `path`; `layer` is what `Layer.read` gives."""
    own: dict[str, Found] = layer.value
    path = ipc_folder(own["path"].value)
    project = own["project"].value if "project" in own else os.path.dirname(path)
    name = own["name"].value if "name" in own else default_name(project)
    found = {**defaults, **own}
    return Draft(path, project, name, found, frozenset(own), layer.place, layer.place.problems)


def from_command_line(path: str, defaults: Mapping[str, Found], problems: list[Problem]) -> Draft:
    """The root of one `--root`; `path` is absolute."""
    path = ipc_folder(path)
    project = os.path.dirname(path)
    if not path.isprintable():
        message = f"a path with control characters, or that is not UTF-8: {path!a}"
        problems.append(Problem(COMMAND_LINE, None, "", message))
    return Draft(path, project, default_name(project), {**defaults}, frozenset(), None, problems)


def choose(
    drafts: Sequence[Draft],
    only: Sequence[str],
    defaults: Mapping[str, Found],
    problems: list[Problem],
) -> list[Draft]:
    """The roots that `only` names (absolute paths); those without an entry get the defaults."""
    written = {os.path.realpath(draft.path): draft for draft in drafts}
    chosen: list[Draft] = []
    taken = {draft.name.casefold() for draft in drafts}
    for path in only:
        draft = written.get(os.path.realpath(ipc_folder(path)))
        if draft is None:
            draft = from_command_line(path, defaults, problems)
            draft.name = _free(draft.name, taken)
            taken.add(draft.name.casefold())
        chosen.append(draft)
    return chosen


def ipc_folder(path: str) -> str:
    """The `.ipc` folder that a path means: itself, or the one in a project folder."""
    path = os.path.normpath(path)
    if os.path.basename(path) == FOLDER:
        return path
    real = os.path.realpath(path)
    return real if os.path.basename(real) == FOLDER else os.path.join(path, FOLDER)


def default_name(project: str) -> str:
    """The folder's name, made fit to be a root's name."""
    name = "".join(c if c.isprintable() else "_" for c in os.path.basename(project))
    name = name[:_LONGEST_NAME].strip(" ")
    return name if ROOT_NAME.fits(name) else "root"


def _free(name: str, taken: set[str]) -> str:
    if name.casefold() not in taken:
        return name
    stem = name[: _LONGEST_NAME - 6]
    return next(
        made for n in range(2, len(taken) + 3) if (made := f"{stem}-{n}").casefold() not in taken
    )

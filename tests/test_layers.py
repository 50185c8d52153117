"""Only `spool/` creates, renames, links or removes files; everything else asks it to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fileipc

SOURCE = Path(fileipc.__file__).parent

# Functions of `os` and `shutil` that change what a folder holds.
OS = frozenset(
    {
        *("rename", "renames", "replace", "link", "symlink", "unlink", "remove", "rmdir"),
        *("removedirs", "mkdir", "makedirs", "mkfifo", "mknod", "truncate", "O_CREAT"),
    }
)
SHUTIL = frozenset({"rmtree", "move", "copy", "copy2", "copyfile", "copytree", "copyfileobj"})
# Methods of `pathlib.Path` that do; `replace` is told from that of a text by its arguments.
PATH = frozenset(
    {
        *("rename", "unlink", "rmdir", "mkdir", "touch", "write_text", "write_bytes"),
        *("symlink_to", "hardlink_to"),
    }
)

# Files that lie in no root. What is listed here and no longer done fails the test as well.
ELSEWHERE: dict[str, frozenset[str]] = {
    # the demo's own throw-away project
    "cli/demo.py": frozenset(
        {"shutil.rmtree", ".mkdir", ".write_text", "open for writing", "tempfile.mkdtemp"}
    ),
    # the log of a detached daemon
    "host/detach.py": frozenset({"os.O_CREAT", "open for writing"}),
    # stdin of a program, where the system has no memfd
    "executors/streams.py": frozenset({"tempfile.TemporaryFile"}),
}


def changes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of everything in a module that changes files."""
    for node in ast.walk(tree):
        name = _imported(node) or _attribute(node) or _call(node)
        if name is not None:
            yield getattr(node, "lineno", 0), name


def _imported(node: ast.AST) -> str | None:
    if isinstance(node, ast.ImportFrom) and node.module in ("os", "shutil", "tempfile"):
        for alias in node.names:
            if node.module == "tempfile" or alias.name in OS | SHUTIL | {"*"}:
                return f"{node.module}.{alias.name}"
    return None


def _attribute(node: ast.AST) -> str | None:
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return None
    module, name = node.value.id, node.attr
    known = {"os": OS, "shutil": SHUTIL}.get(module, frozenset())
    return f"{module}.{name}" if name in known or module == "tempfile" else None


def _call(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    if isinstance(function, ast.Attribute):
        if isinstance(function.value, ast.Name) and function.value.id in ("os", "shutil"):
            # `os.fdopen(fd, "ab")` writes; all else was seen as an attribute.
            return "open for writing" if function.attr == "fdopen" and _writes(node) else None
        if function.attr in PATH:
            return f".{function.attr}"
        if function.attr == "replace" and len(node.args) == 1 and not node.keywords:
            return ".replace"
        if function.attr == "open" and _writes(node, mode_at=0):
            return "open for writing"
        return None
    if isinstance(function, ast.Name) and function.id == "open" and _writes(node):
        # open(1, "w") is a descriptor that is there already.
        file = node.args[0] if node.args else None
        number = isinstance(file, ast.Constant) and isinstance(file.value, int)
        return None if number else "open for writing"
    return None


def _writes(call: ast.Call, mode_at: int = 1) -> bool:
    modes = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    modes += call.args[mode_at : mode_at + 1]
    return any(
        isinstance(mode, ast.Constant)
        and isinstance(mode.value, str)
        and set(mode.value) & {*"wax+"}
        for mode in modes
    )


def test_only_the_spool_changes_files() -> None:
    found: dict[str, set[str]] = {}
    places = []
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        if module.startswith("spool/"):
            continue
        for line, name in changes(ast.parse(path.read_text())):
            found.setdefault(module, set()).add(name)
            if name not in ELSEWHERE.get(module, ()):
                places.append(f"{module}:{line}: {name}")
    assert places == []
    assert found == {module: set(names) for module, names in ELSEWHERE.items()}


def test_the_spool_itself_is_seen_to_change_files() -> None:
    seen = {
        name
        for path in SOURCE.glob("spool/*.py")
        for _line, name in changes(ast.parse(path.read_text()))
    }
    assert {"os.rename", "os.link", "os.unlink", "os.mkdir", "os.O_CREAT", "shutil.rmtree"} <= seen


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.rename(a, b)",
        "import os\nmove = os.replace",
        "from os import unlink",
        "from shutil import rmtree as away",
        "import shutil\nshutil.move(a, b)",
        "path.unlink(missing_ok=True)",
        "path.replace(other)",
        "(folder / 'x').write_text('')",
        "open(name, 'w')",
        "open(name, mode='xb')",
        "path.open('a')",
        "import os\nos.open(name, os.O_WRONLY | os.O_CREAT)",
        "import tempfile\ntempfile.mkdtemp()",
    ],
)
def test_what_changes_files_is_seen(source: str) -> None:
    assert list(changes(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "text.replace('a', 'b')",
        "moment.replace(tzinfo=UTC)",
        "structs.replace(root, **values)",
        "writer.replace(path, data)",
        "open(name, 'rb')",
        "open(1, 'w', closefd=False)",
        "import os\nos.stat(name)",
        "import shutil\nshutil.which('rg')",
    ],
)
def test_what_only_looks_like_it_is_not(source: str) -> None:
    assert not list(changes(ast.parse(source)))

"""The outline of a Python source, by the standard library's own parser."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_SOURCE = 2 * 1024 * 1024  # bytes; the syntax tree takes many times as much memory
MAX_SYMBOLS = 5000
MAX_IMPORTS = 2000

_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_BODIES = ("body", "handlers", "orelse", "finalbody", "cases")


@dataclass(slots=True)
class Outline:
    """`symbols`: `{name, kind, line, end_line, children}`, kind being "class", "function" or
    "method"; `imports`: `{module, names, line}`, `names` null for a plain `import`. Both are None
    where the source is not valid Python; `notes` says why."""

    symbols: list[dict[str, Any]] | None = None
    imports: list[dict[str, Any]] | None = None
    notes: list[str] = field(default_factory=list)


def python_outline(source: bytes) -> Outline:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the source that is read, not about us
            tree = ast.parse(source)
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        return Outline(notes=[f"no outline: not valid Python: {place}{error.msg}"])
    except (ValueError, RecursionError, MemoryError) as error:
        # NUL bytes, an unknown encoding, or nesting beyond what the parser takes.
        return Outline(notes=[f"no outline: the parser gave up: {type(error).__name__}"])
    outline = Outline([], [])
    walk = _Walk(outline)
    outline.symbols = walk.symbols(tree.body, in_class=False)
    if walk.left <= 0:
        outline.notes.append(f"outline holds the first {MAX_SYMBOLS} symbols only")
    return outline


class _Walk:
    def __init__(self, outline: Outline) -> None:
        self.left = MAX_SYMBOLS
        self._outline = outline

    def symbols(self, body: list[ast.stmt], *, in_class: bool) -> list[dict[str, Any]]:
        # Recursion is bounded by Python's own limit of 100 levels of indentation.
        found: list[dict[str, Any]] = []
        for node in self._definitions(body):
            if self.left <= 0:
                break
            self.left -= 1
            is_class = isinstance(node, ast.ClassDef)
            found.append(
                {
                    "name": node.name,
                    "kind": "class" if is_class else "method" if in_class else "function",
                    "line": node.lineno,
                    "end_line": node.end_lineno,
                    "children": self.symbols(node.body, in_class=is_class),
                }
            )
        return found

    def _definitions(self, body: list[ast.stmt]) -> Iterator[_Definition]:
        """Definitions in order, also those within if, try, with, for, match; without recursion,
        since a chain of `elif` nests without indentation."""
        stack: list[ast.AST] = list(reversed(body))
        while stack:
            node = stack.pop()
            if isinstance(node, _DEFINITIONS):
                yield node
                continue
            self._import(node)
            for name in reversed(_BODIES):
                nested = getattr(node, name, None)
                if isinstance(nested, list):
                    stack.extend(reversed(nested))

    def _import(self, node: ast.AST) -> None:
        imports = self._outline.imports
        assert imports is not None
        if not isinstance(node, ast.Import | ast.ImportFrom) or len(imports) >= MAX_IMPORTS:
            return
        if isinstance(node, ast.Import):
            imports.extend(
                {"module": alias.name, "names": None, "line": node.lineno} for alias in node.names
            )
            return
        module = "." * node.level + (node.module or "")
        names = [alias.name for alias in node.names]
        imports.append({"module": module, "names": names, "line": node.lineno})

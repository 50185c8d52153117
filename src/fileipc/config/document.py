"""One YAML document: from bytes to nodes, within bounds.

Bounds on size, depth and what aliases expand to are checked here, once, before anything walks
the tree.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.reader import Reader

from ..errors import ConfigError, Problem
from .nodes import Place, line_of

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 200_000

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def parse(raw: bytes, file: str, problems: list[Problem]) -> Place:
    """The top of a document; what is found wrong in it later goes to `problems`.

    Raises:
        ConfigError: not text, not YAML, more than one document, empty, or beyond the bounds.
    """
    if len(raw) > MAX_BYTES:
        raise _fatal(file, None, f"larger than {MAX_BYTES} bytes; this is no configuration")
    text = _decode(raw, file)
    odd = Reader.NON_PRINTABLE.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise _fatal(
            file, line, f"the control character U+{ord(odd.group()):04X} may not stand here"
        )
    try:
        _check_text(text, file)
        node = yaml.compose(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, text, file) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise _fatal(file, None, f"not valid YAML: {error}") from None
    if node is None:
        raise _fatal(file, 1, "the file is empty")
    _Expansion(file).measure(node)
    return Place(file, 1, "", node, problems)


def _fatal(file: str, line: int | None, message: str, suggestion: str | None = None) -> ConfigError:
    return ConfigError((Problem(file, line, "", message, suggestion),))


def _decode(raw: bytes, file: str) -> str:
    encoding = "utf-8"
    for bom, name in _BOMS:
        if raw.startswith(bom):
            raw, encoding = raw[len(bom) :], name
            break
    else:
        if raw[:4].count(0) == 2 and len(raw) % 2 == 0 and raw[:1] != raw[1:2]:
            encoding = "utf-16-le" if raw[1] == 0 else "utf-16-be"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{raw[error.start]:02x}" if error.start < len(raw) else "the end"
        raise _fatal(
            file, line, f"not {encoding.upper()} text: {byte} is out of place; save it as UTF-8"
        ) from None


def _check_text(text: str, file: str) -> None:
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=LOADER)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            line = _event_line(event)
            raise _fatal(file, line, f"nested deeper than {MAX_DEPTH} levels")
        if count > MAX_VALUES:
            raise _fatal(file, _event_line(event), f"more than {MAX_VALUES} values")


class _Expansion:
    """How many values a node stands for once its aliases are followed; each node seen once.

    Depth of recursion is that of the text, which is bounded: an alias refers to a node that is
    finished (and measured) or to one it lies in.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._sizes: dict[int, tuple[int, int] | None] = {}

    def measure(self, node: yaml.Node) -> tuple[int, int]:
        """Values and depth."""
        if id(node) in self._sizes:
            known = self._sizes[id(node)]
            if known is None:
                raise _fatal(self._file, line_of(node), "an anchor's value contains its own alias")
            return known
        self._sizes[id(node)] = None
        size, depth = 1, 0
        for child in _children(node):
            child_size, child_depth = self.measure(child)
            size, depth = size + child_size, max(depth, child_depth)
        if size > MAX_VALUES:
            raise _fatal(
                self._file, line_of(node), f"aliases make more than {MAX_VALUES} values of this"
            )
        if depth >= MAX_DEPTH:
            raise _fatal(self._file, line_of(node), f"nested deeper than {MAX_DEPTH} levels")
        self._sizes[id(node)] = (size, depth + 1)
        return size, depth + 1


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair


def _syntax(error: yaml.MarkedYAMLError, text: str, file: str) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    what = error.problem or error.context or "not valid YAML"
    if mark is None:
        return _fatal(file, None, f"not valid YAML: {what}")
    lines = text.splitlines()
    written = lines[mark.line] if mark.line < len(lines) else ""
    indent = written[: len(written) - len(written.lstrip())]
    if "\t" in indent:
        return _fatal(file, mark.line + 1, "a tab may not indent YAML; use spaces")
    context = f" {error.context}" if error.context else ""
    if "another document" in what:
        return _fatal(file, mark.line + 1, "a second document starts here; keep one in a file")
    return _fatal(
        file, mark.line + 1, f"not valid YAML: {what}{context}, at column {mark.column + 1}"
    )


def _event_line(event: yaml.Event) -> int:
    return int(event.start_mark.line) + 1 if event.start_mark else 1

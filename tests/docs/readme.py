"""README.md as data: its fenced blocks by name, and its tables by section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*) ?([\w-]*)$")
_HEADING = re.compile(r"^(#{1,6}) (.+)$")
_CELL = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: ```language name."""

    language: str
    name: str
    text: str


class Document:
    """One Markdown file."""

    def __init__(self, name: str = "README.md") -> None:
        self.path = REPOSITORY / name
        self.text = self.path.read_text()
        self.blocks = tuple(self._blocks())

    def block(self, name: str) -> str:
        """The text of the one block of this name."""
        (found,) = (block.text for block in self.blocks if block.name == name)
        return found

    def headings(self) -> list[str]:
        return [match[2] for line in self._prose() if (match := _HEADING.match(line))]

    def section(self, title: str) -> list[str]:
        """The lines below a heading, up to the next one of its level or above; no blocks."""
        lines: list[str] = []
        level = 0
        for line in self._prose():
            match = _HEADING.match(line)
            if match and level and len(match[1]) <= level:
                break
            if level:
                lines.append(line)
            elif match and match[2] == title:
                level = len(match[1])
        assert level, f"no section {title}"
        return lines

    def table(self, title: str, *header: str) -> list[list[str]]:
        """The rows of the table with this header in a section, as plain text."""
        wanted, rows, inside = list(header), [], False
        for line in self.section(title):
            cells = _cells(line)
            if cells == wanted:
                inside = True
            elif inside and not line.startswith("|"):
                break
            elif inside and set(line) - set("|- "):
                rows.append(cells)
        assert rows, f"no table {header} in {title}"
        return rows

    def links(self) -> list[str]:
        return re.findall(r"\]\(([^)]+)\)", "\n".join(self._prose()))

    def _blocks(self) -> Iterator[Block]:
        start: re.Match[str] | None = None
        lines: list[str] = []
        for line in self.text.splitlines():
            fence = _FENCE.match(line)
            if start is not None and line == "```":
                yield Block(start[1], start[2], "".join(f"{text}\n" for text in lines))
                start = None
            elif start is None and fence:
                start, lines = fence, []
            else:
                lines.append(line)
        assert start is None, "a block has no end"

    def _prose(self) -> Iterator[str]:
        inside = False
        for line in self.text.splitlines():
            if line.startswith("```"):
                inside = not inside
            elif not inside:
                yield line


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(line)[1:-1]]


def unquoted(cell: str) -> str:
    """A cell of one code span as its text, any other without its escapes."""
    span = re.fullmatch(r"`([^`]+)`", cell)
    return span[1] if span else cell.replace("\\`", "`")


def code_spans(cell: str) -> list[str]:
    """The texts in backticks of a cell."""
    return re.findall(r"`([^`]+)`", cell)


def anchor(heading: str) -> str:
    """The anchor that a heading gets where Markdown is shown."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")

"""The entry of `analyze_file` in its own process."""

from __future__ import annotations

from typing import Any

from .analyze_file import describe_file
from .analyze_tree import describe_folder
from .confine import Border


def analyze(*, target: str, depth: int, project: str, root: str) -> dict[str, Any]:
    """Describe a file or a folder of the project.

    Raises:
        CommandFailure: NotFound, Forbidden or InvalidArgs, as `Border.open` says.
    """
    border = Border(project, root)
    with border.open(target) as opened:
        if opened.is_folder:
            return describe_folder(opened, border, depth)
        return describe_file(opened, depth)

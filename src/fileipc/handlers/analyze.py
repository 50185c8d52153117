"""`analyze_file {target, depth}`: what a file or a folder is, by depth.

The work is done in a killable process (`analyze_work`), whose imports the daemon does not pay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct

from ..executors.port import Isolation, ProcessCall
from ..protocol.args import validate
from .port import Scope

_MEMORY = 1024 * 1024 * 1024  # bytes of address space for one call


class AnalyzeArgs(Struct, frozen=True, kw_only=True):
    """`target`: a path in the project. `depth`: 0 identity, 1 counts, 2 outline; levels of the
    tree for a folder."""

    target: str
    depth: Annotated[int, Meta(ge=0, le=10)] = 1


@dataclass(frozen=True, slots=True)
class AnalyzeHandler:
    """Answers as `analyze_file.describe_file` or `analyze_tree.describe_folder` say."""

    name: str = "analyze_file"
    isolation: Isolation = Isolation.PROCESS
    idempotent: bool = True
    timeout: float = 120.0

    def prepare(self, args: Mapping[str, Any], scope: Scope) -> ProcessCall:
        wanted = validate(args, AnalyzeArgs)
        return ProcessCall(
            f"{__package__}.analyze_work:analyze",
            {
                "target": wanted.target,
                "depth": wanted.depth,
                "project": scope.project,
                "root": scope.root,
            },
            memory=_MEMORY,
        )

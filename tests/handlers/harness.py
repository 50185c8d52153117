"""A project with a root, and a way to run a handler to its result as the engine does."""

from __future__ import annotations

import importlib
import json
import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fileipc.executors.child import ChildExecutor
from fileipc.executors.port import Call, ChildCall, InlineCall, Job, ProcessCall
from fileipc.handlers.port import Handler, Scope
from fileipc.protocol.codec import encode_result

LIMIT = 16 * 1024 * 1024

not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may read and run everything")


def strict(data: bytes) -> Any:
    """Parse as a parser does that knows JSON only (no NaN, no lone surrogate)."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(data.decode("utf-8"), parse_constant=refuse)


class Place:
    """A project folder with an `.ipc` in it."""

    def __init__(self, folder: Path, children: ChildExecutor) -> None:
        self.folder = folder
        self.root = folder / ".ipc"
        (self.root / "commands").mkdir(parents=True)
        self.scope = Scope(str(self.root), str(folder))
        self.children = children

    def write(self, name: str, content: str | bytes = "", mode: int = 0o644) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return path

    def link(self, name: str, target: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        return path

    def job(self, limit: float = 30.0) -> Job:
        return Job(str(uuid.uuid4()), "test", 1, str(self.folder), time.monotonic() + limit)

    def run(self, handler: Handler, args: Mapping[str, Any], limit: float = 30.0) -> Any:
        """The result, as it comes out of a strict JSON parser."""
        call: Call = handler.prepare(args, self.scope)
        if isinstance(call, ChildCall):
            return strict(bytes(self.children.run(call, self.job(limit))))
        if isinstance(call, InlineCall):
            return strict(bytes(encode_result(call.run(), limit=LIMIT)))
        return strict(bytes(encode_result(_called(call), limit=LIMIT)))


def _called(call: ProcessCall) -> Any:
    module, _, name = call.target.partition(":")
    function = getattr(importlib.import_module(module), name)
    return function(**call.arguments)

"""Shared by the tests of the configuration: write a file, load it, ask for its faults."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from fileipc.config.load import load
from fileipc.config.settings import RootSettings, Settings
from fileipc.errors import ConfigError, Problem


def write(folder: Path, text: str | bytes, name: str = "config.yaml") -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
    file.chmod(0o600)
    return str(file)


def loaded(folder: Path, text: str | bytes) -> Settings:
    return load(write(folder, text))


def one_root(folder: Path, keys: str = "") -> RootSettings:
    """The root of a file with one root, `keys` being its keys but for the path."""
    return loaded(folder, root_text(keys)).roots[0]


def root_text(keys: str) -> str:
    lines = dedent(keys).strip("\n").splitlines()
    return "\n".join(["roots:", "  - path: shop/.ipc", *(f"    {line}" for line in lines)]) + "\n"


def problems(folder: Path, text: str | bytes) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, text)
    return list(caught.value.problems)


def only_problem(folder: Path, text: str | bytes) -> Problem:
    found = problems(folder, text)
    assert len(found) == 1, "\n".join(map(str, found))
    return found[0]


def root_problem(folder: Path, keys: str) -> Problem:
    return only_problem(folder, root_text(keys))

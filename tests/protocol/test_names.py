"""What may name a command, and under which names an answer is written."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fileipc.protocol.names import command_stem, is_safe_stem, parse_id


@pytest.mark.parametrize(
    "name",
    [
        ".x.json.swp",
        "4913",
        "x.json~",
        "x.json.part",
        "x.json.filepart",
        "x.tmp",
        ".x.json",
        "a.md",
    ],
)
def test_temporaries_and_other_files_are_no_commands(name: str) -> None:
    """Case W12."""
    assert command_stem(name) is None


@given(st.uuids(), st.sampled_from(["", "cmd-", "Job_1-"]))
def test_uuids_of_any_version_with_a_short_prefix_are_ids(value: uuid.UUID, prefix: str) -> None:
    assert parse_id(f"{prefix}{value}") == f"{prefix}{value}".lower()
    assert parse_id(f"{prefix}{value}".upper()) == f"{prefix}{value}".lower()
    assert is_safe_stem(f"{prefix}{value}")


@pytest.mark.parametrize(
    "stem",
    ["../../evil", "/tmp/evil", "a/b", "a\\b", ".", "..", "", "a\0b", "x" * 300, "CON", "con.x",
     "a:b", "-rf", ".hidden", "a\n", "x.result", "x.", "é", " a"],
)  # fmt: skip
def test_unsafe_stems_get_no_response_file(stem: str) -> None:
    """Case S11."""
    assert not is_safe_stem(stem)
    assert parse_id(stem) is None


@given(st.text())
def test_a_safe_stem_is_one_plain_path_component(stem: str) -> None:
    if is_safe_stem(stem):
        assert stem.isascii()
        assert "/" not in stem
        assert stem not in (".", "..")

"""A program whose standard streams were closed before it began."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

BODY = """
import json, os, subprocess, sys
from fileipc.host.streams import have_standard_streams
have_standard_streams()
kept = open(sys.argv[1], "w")
print("out", flush=True)
print("err", file=sys.stderr, flush=True)
sys.stdin.read()
child = subprocess.run(["sh", "-c", "echo out && echo err >&2 && cat"]).returncode
json.dump({"file": kept.fileno(), "child": child}, kept)
"""
CLOSED = [
    " ".join(some)
    for count in range(4)
    for some in itertools.combinations(("<&-", ">&-", "2>&-"), count)
]


@pytest.mark.parametrize("closed", CLOSED)
def test_closed_streams_are_replaced_for_it_and_for_its_children(
    tmp_path: Path, closed: str
) -> None:
    word = tmp_path / "word"
    done = subprocess.run(
        ["sh", "-c", f'"$0" "$@" {closed}', sys.executable, "-c", BODY, str(word)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(word.read_text())
    assert found["file"] > 2
    assert found["child"] == 0
    assert done.stdout.split() == ([] if ">&-" in closed.split() else ["out", "out"])
    assert done.stderr.split() == ([] if "2>&-" in closed else ["err", "err"])

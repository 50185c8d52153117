"""Asking whether a writer is at work must not endanger whoever asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ASK = """
import sys
from fileipc.spool.atomic import Writer
from fileipc.spool.layout import Layout
from fileipc.spool.store import Spool
spool = Spool(Layout(sys.argv[1]), Writer())
print("asking", flush=True)
for _ in range(20_000):
    spool.writer_at_work("a.json")
"""
APPEND = """
import sys
while True:
    with open(sys.argv[1], "ab", buffering=0) as file:
        file.write(b" ")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="leases are Linux's")
def test_a_writer_that_opens_the_file_in_the_same_moment_ends_nobody(tmp_path: Path) -> None:
    (tmp_path / ".ipc" / "commands").mkdir(parents=True)
    path = tmp_path / ".ipc" / "commands" / "a.json"
    path.write_bytes(b"{")
    asker = subprocess.Popen(
        [sys.executable, "-c", ASK, str(tmp_path / ".ipc")], stdout=subprocess.PIPE
    )
    assert asker.stdout is not None
    asker.stdout.readline()
    writer = subprocess.Popen([sys.executable, "-c", APPEND, str(path)])
    try:
        assert asker.wait(60) == 0
    finally:
        writer.kill()
        writer.wait()
        asker.stdout.close()

"""Files of other users, whose owners the daemon cannot ask the kernel about."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

NOBODY = 65534
LOOK = f"""
import os, sys
from fileipc.spool.atomic import PRIVATE, Writer
from fileipc.spool.layout import Layout
from fileipc.spool.store import Spool

spool = Spool(Layout(sys.argv[1]), Writer(PRIVATE))
assert spool.writer_at_work("x.json") is False
os.seteuid({NOBODY})
open(spool.layout.command("x.json")).close()
print(spool.writer_at_work("x.json"))
"""


@pytest.fixture
def public_root() -> Iterator[Path]:
    """A root that every user can read, and so not below pytest's own folder."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        (root / "commands").mkdir(mode=0o755)
        (root / "commands" / "x.json").write_text("{")
        yield root


@pytest.mark.root
@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be two users")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="read leases are Linux's")
def test_of_another_users_file_it_is_not_known_whether_a_writer_is_at_work(
    public_root: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, public_root], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("None\n", "")

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fileipc.watch.mounts import events_are_silent, file_system, type_from

TABLE = rb"""21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /proc rw,nosuid - proc proc rw
30 21 0:40 / /home rw shared:2 master:1 - nfs4 server:/home rw,vers=4.2
31 30 0:41 / /home/me/my\040disk\134x rw - fuse.sshfs me@host: rw
32 21 0:42 / /mnt rw - ext4 /dev/sdb1 rw
33 32 0:43 / /mnt rw - tmpfs tmpfs rw
34 21 0:44 / /srv/\303\251 rw - virtiofs tag rw
broken line
35 21 - nothing
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "ext4"),
        ("/var/x", "ext4"),
        ("/homestead", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/shop/.ipc", "nfs4"),
        ("/home/me/my disk\\x/.ipc", "fuse.sshfs"),
        ("/mnt/a", "tmpfs"),
        ("/srv/\u00e9/a", "virtiofs"),
    ],
)
def test_the_longest_and_latest_mount_above_a_path_tells_its_type(path: str, expected: str) -> None:
    assert type_from(TABLE, path.encode()) == expected


def test_an_empty_table_tells_nothing() -> None:
    assert type_from(b"", b"/x") is None


def test_without_a_table_the_type_is_not_known(tmp_path: Path) -> None:
    assert file_system(str(tmp_path), str(tmp_path / "missing")) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mountinfo is Linux's")
def test_the_type_of_a_real_folder_is_found() -> None:
    assert file_system("/proc/self") == "proc"


@pytest.mark.parametrize("fs_type", ["nfs", "cifs", "9p", "fuse.anything", "fuse", "virtiofs"])
def test_file_systems_that_others_change_unseen_are_silent(fs_type: str) -> None:
    assert events_are_silent(fs_type)


@pytest.mark.parametrize("fs_type", ["ext4", "btrfs", "xfs", "tmpfs", "overlay", "fuseblk", "zfs"])
def test_local_file_systems_are_trusted(fs_type: str) -> None:
    assert not events_are_silent(fs_type)

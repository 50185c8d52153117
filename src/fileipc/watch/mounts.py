"""Which file system a folder lies on, and whether its events can be trusted there."""

from __future__ import annotations

import os
import re

MOUNTINFO = "/proc/self/mountinfo"

# A change made by another machine, the host of a virtual machine or a FUSE server's own side
# never passes through this kernel's VFS, so inotify stays silent about it.
_SILENT = frozenset(
    [
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "sshfs"),
        *("9p", "virtiofs", "vboxsf", "prl_fs", "vmhgfs", "drvfs", "wslfs"),
        *("ceph", "glusterfs", "lustre", "gpfs", "beegfs", "orangefs", "pvfs2", "ocfs2", "gfs2"),
        "fuse",
    ]
)
_ESCAPE = re.compile(rb"\\([0-7]{3})")


def events_are_silent(fs_type: str) -> bool:
    """Whether files may come on this file system without an event.

    Of FUSE only `fuseblk` is trusted: a local disk that nobody else has mounted.
    """
    return fs_type in _SILENT or fs_type.startswith("fuse.")


def file_system(folder: str, mountinfo: str = MOUNTINFO) -> str | None:
    """The type of the file system a folder lies on, as the kernel names it; None: not known."""
    try:
        with open(mountinfo, "rb") as file:
            table = file.read()
    except OSError:
        return None
    return type_from(table, os.fsencode(os.path.realpath(folder)))


def type_from(table: bytes, path: bytes) -> str | None:
    """Look up an absolute, resolved path in the text of a mountinfo file (proc(5))."""
    best = b""
    found: bytes | None = None
    for line in table.splitlines():
        mount, separator, source = line.partition(b" - ")
        fields = mount.split(b" ")
        if not separator or len(fields) < 5:
            continue
        point = _ESCAPE.sub(lambda match: bytes([int(match[1], 8) & 255]), fields[4])
        inside = point == b"/" or path == point or path.startswith(point + b"/")
        # Of two mounts on one place the later line hides the earlier.
        if inside and len(point) >= len(best):
            best, found = point, source.split(b" ", 1)[0]
    return None if found is None else os.fsdecode(found)

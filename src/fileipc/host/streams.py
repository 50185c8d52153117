"""Standard streams that are there, whoever started this program."""

from __future__ import annotations

import errno
import os
import sys


def have_standard_streams() -> None:
    """Open the null device for each standard stream that is closed.

    To be called first of all: a program that was started with one closed (`2>&-`) would get its
    number for the next file it opens, and whatever is told on standard error would be written
    there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            fd = os.open(os.devnull, os.O_RDWR)
            if fd != number:  # another thread took the lowest free number in between
                os.dup2(fd, number)
                os.close(fd)
            os.set_inheritable(number, True)  # children shall have one as well
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 lives as long as the process
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115

"""The command line. Worker processes import the main module again, so this stays empty."""

from __future__ import annotations


def main() -> None:
    """The console script `fileipc`; ends the process with its exit code."""
    import sys

    from .entry import enter

    sys.exit(enter(sys.argv[1:]))

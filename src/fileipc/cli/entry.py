"""From arguments to a subcommand.

`send` has a lane of its own: scripts and agents call it over and over, and importing click alone
takes three times as long as all that a `send` does. The lane reads the same table of options
that click's `send` is built from, and leaves whatever it does not know (help, a misspelt option,
completion) to click.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .common import ExitCode, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence


def enter(argv: Sequence[str]) -> int:
    """Run one command line (without the program's name) and return the exit code."""
    try:
        if argv[:1] == ["send"] and "_FILEIPC_COMPLETE" not in os.environ:
            from .request import build, run, tokenize

            raw = tokenize(argv[1:])
            if raw is not None:
                return guarded(lambda: run(build(raw)))
        from .app import run_app

        return run_app(argv)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED

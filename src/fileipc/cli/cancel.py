"""`fileipc cancel`: stop a command that waits or runs."""

from __future__ import annotations

import click

from ..client import Client
from .common import ExitCode, complain, write
from .options import root_option, timeout_option

_TOO_LATE = {
    "finished": "it had ended already",
    "unknown": "no such command waits, runs or has ended here",
}


@click.command("cancel")
@click.argument("command_id", metavar="ID")
@root_option()
@timeout_option("How long to wait for the daemon [default: 10s].", default="10s")
def command(command_id: str, root: str | None, timeout: float) -> int:
    """Stop a command that waits or runs, and print what came of it.

    cancelled: it never ran. cancelling: it was running; its own response says how it ended.
    finished, unknown: there was nothing to stop, and the exit code is 1.
    """
    state = Client(root).cancel(command_id, timeout=timeout)
    write(state)
    if state in _TOO_LATE:
        complain(_TOO_LATE[state])
        return ExitCode.FAILED
    return ExitCode.COMPLETED

"""The click application: subcommands by name, each imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

from .. import __version__
from .common import PROGRAM, ExitCode, complain, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence

SUBCOMMANDS = {
    "init": "Make a root: the .ipc folder of a project.",
    "run": "Serve roots: the daemon.",
    "send": "Send a command, and wait for its answer.",
    "wait": "Wait for the answers of commands sent before.",
    "cancel": "Stop a command that waits or runs.",
    "status": "Show how a root is doing.",
    "config": "Check the configuration, or show what it comes to.",
    "schema": "Print a JSON Schema.",
    "demo": "Show every type of command at work, in a folder of its own.",
}
"""name -> help; `fileipc.cli.NAME` has the click command as its attribute `command`.

Its callback returns an exit code (None: 0) and raises `FileipcError`s as they are.
"""


class Subcommands(click.Group):
    """A group that knows its commands' names, and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in SUBCOMMANDS:
            return None
        command = import_module(f".{cmd_name}", __package__).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))


@click.group(
    cls=Subcommands,
    name=PROGRAM,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 completed, 1 the command failed, 2 usage, 66 no root or no such "
    "command, 69 no daemon, 74 files cannot be read or written, 75 not now, 78 configuration, "
    "124 the wait timed out, 130 interrupted.",
)
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
def application() -> None:
    """Ask for work by files: a daemon serves the .ipc folders of your projects."""


def run_app(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    return guarded(lambda: _invoke(argv))


def _invoke(argv: Sequence[str]) -> int | None:
    try:
        code = application.main(list(argv), prog_name=PROGRAM, standalone_mode=False)
    except click.Abort:
        return ExitCode.INTERRUPTED
    except click.UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2: no error at all
            error.show()
        else:
            complain(error.format_message())
            complain(f"see: {error.ctx.command_path if error.ctx else PROGRAM} --help")
        return error.exit_code
    except click.ClickException as error:
        complain(error.format_message())
        return error.exit_code
    return code if isinstance(code, int) else None

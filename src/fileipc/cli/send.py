"""`fileipc send`: send a command, and wait for its answer."""

from __future__ import annotations

from typing import Any

import click

from .request import OPTIONS, build, run

_HELP = """Send a command of a TYPE (ping, analyze_file, ...) and wait for its answer.

A VALUE that is JSON is taken as such (3, true, [1,2], '"3"'), any other as text.
The result is printed as JSON. A wait that ends without an answer takes the command back if it
has not started."""


def _options() -> list[click.Parameter]:
    options: list[click.Parameter] = [
        click.Option((option.flag,), metavar=option.metavar, help=option.help, multiple=option.many)
        for option in OPTIONS
    ]
    wait = click.Option(
        ("--wait/--no-wait",),
        default=True,
        help="Wait for the answer, or print the id and end [default: wait].",
    )
    whole = click.Option(
        ("--json",),
        is_flag=True,
        help='Print the whole response, failed or not, on one line; with --no-wait {"id": ...}.',
    )
    return [*options, wait, whole]


def _send(**raw: Any) -> int:
    return run(build(raw))


command = click.Command(
    "send",
    callback=_send,
    help=_HELP,
    params=[
        click.Argument(("type",)),
        click.Argument(("pairs",), nargs=-1, metavar="[KEY=VALUE]..."),
        *_options(),
    ],
)

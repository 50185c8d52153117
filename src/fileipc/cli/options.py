"""Click options that several subcommands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .values import duration

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def root_option() -> Decorator:
    return click.option(
        "--root",
        metavar="DIR",
        help="The .ipc folder or its project [default: the nearest upward].",
    )


def timeout_option(help: str, *, default: str | None = None) -> Decorator:
    """`--timeout`, in seconds for the callback; `default` as one would type it."""

    def seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
        return duration(value, param.opts[0], command=ctx.info_name or "")

    return click.option("--timeout", metavar="TIME", default=default, callback=seconds, help=help)


def json_option(help: str) -> Decorator:
    return click.option("--json", "as_json", is_flag=True, help=help)

"""`fileipc wait`: wait for commands sent before."""

from __future__ import annotations

import time

import click

from ..client.answers import time_left
from ..client.core import answer_id
from ..client.exchange import Exchange
from ..errors import CommandGone, WaitTimeout
from .common import ExitCode, complain, exit_code
from .options import json_option, root_option, timeout_option
from .show import Display, show


@click.command("wait")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@root_option()
@timeout_option("How long to wait for all of them [default: the ttl of each, and a bit].")
@json_option("Print each whole response, failed or not, on one line.")
@click.option("--keep", is_flag=True, help="Leave the responses where they are.")
def command(
    ids: tuple[str, ...], root: str | None, timeout: float | None, as_json: bool, keep: bool
) -> int:
    """Wait for commands sent before, and print their results in the order given.

    A wait that ends without an answer leaves the command alone. The exit code is that of the
    worst: 124 or 66 where an answer is missing, 1 where one failed.
    """
    names = [answer_id(text) for text in ids]
    exchange = Exchange(root)
    end = None if timeout is None else time.monotonic() + timeout
    worst = ExitCode.COMPLETED
    for name in names:
        if end is None:
            left = time_left(exchange.mailbox.peek(name), time.time())
        else:
            left = max(0.0, end - time.monotonic())
        try:
            with Display() as display:
                answer = exchange.await_final(name, left, on_running=display.progress)
        except (CommandGone, WaitTimeout) as error:
            complain(str(error))
            worst = max(worst, exit_code(error))
            continue
        worst = max(worst, show(answer, root=exchange.root, whole=as_json))
        if not keep:
            exchange.discard(name, answer)
    return worst

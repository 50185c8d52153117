"""One `fileipc send`: its options, its arguments, and what it does. No click in here."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ..client.core import DEFAULT_TTL, MARGIN, command_id, encode_command, new_id, no_daemon
from ..client.exchange import Exchange
from .common import BadUsage, ExitCode, complain, emit, write
from .show import Display, show
from .values import duration, load_args, pairs, utf8

if TYPE_CHECKING:
    from collections.abc import Sequence

Raw = dict[str, Any]


class Option(NamedTuple):
    """An option that takes a text; `many`: it may stand more than once."""

    flag: str
    metavar: str
    help: str
    many: bool = False

    @property
    def key(self) -> str:
        return self.flag.lstrip("-")


OPTIONS = (
    Option("--args", "JSON|@FILE|-", "All arguments as one JSON object; KEY=VALUE adds to it."),
    Option("--root", "DIR", "The .ipc folder or its project [default: the nearest upward]."),
    Option("--ttl", "TIME", "How long it may wait and run, such as 30s or 5m."),
    Option("--priority", "N", "Higher goes first [default: 0]."),
    Option("--meta", "KEY=VALUE", "Echoed in the response.", many=True),
    Option("--id", "UUID", "The id to send it under [default: a new one]."),
    Option("--timeout", "TIME", "How long to wait for the answer [default: the ttl, and a bit]."),
)
_BY_FLAG = {option.flag: option for option in OPTIONS}
_SWITCHES = {"--wait": ("wait", True), "--no-wait": ("wait", False), "--json": ("json", True)}


class Request(NamedTuple):
    """A `send` that makes sense; times in seconds."""

    type: str
    args: dict[str, Any]
    root: str | None
    id: str
    ttl: float | None
    priority: int
    meta: dict[str, Any]
    timeout: float
    wait: bool
    json: bool


def tokenize(argv: Sequence[str]) -> Raw | None:
    """Arguments by their names, as click gives them; None: click must look at them."""
    raw: Raw = {option.key: () if option.many else None for option in OPTIONS}
    raw |= {"wait": True, "json": False}
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word in _SWITCHES:
            key, value = _SWITCHES[word]
            raw[key] = value
        elif word.startswith("-") and word != "-":
            flag, given, text = word.partition("=")
            option = _BY_FLAG.get(flag)
            taken = text if given else next(rest, None)
            if option is None or taken is None:
                return None
            raw[option.key] = (*raw[option.key], taken) if option.many else taken
        else:
            words.append(word)
    if not words:
        return None
    return {**raw, "type": words[0], "pairs": tuple(words[1:])}


def build(raw: Raw) -> Request:
    """Make sense of texts.

    Raises:
        BadUsage, InvalidCommand: they make none.
    """
    ttl = duration(raw["ttl"], "--ttl")
    timeout = duration(raw["timeout"], "--timeout")
    try:
        priority = int(raw["priority"] or 0)
    except ValueError:
        raise BadUsage(
            f"--priority {raw['priority']!r} is not a whole number", command="send"
        ) from None
    return Request(
        type=utf8(raw["type"], "the type"),
        args={**load_args(raw["args"]), **pairs(raw["pairs"], "the argument")},
        root=raw["root"],
        id=new_id() if raw["id"] is None else command_id(raw["id"]),
        ttl=ttl,
        priority=priority,
        meta=pairs(raw["meta"], "--meta"),
        timeout=(DEFAULT_TTL if ttl is None else ttl) + MARGIN if timeout is None else timeout,
        wait=raw["wait"],
        json=raw["json"],
    )


def run(request: Request) -> int:
    """Send it; wait for it if asked to. Returns the exit code."""
    command = encode_command(
        request.type,
        request.args,
        id=request.id,
        now=time.time(),
        ttl=request.ttl,
        priority=request.priority,
        meta=request.meta,
    )
    exchange = Exchange(request.root)
    exchange.post(request.id, command, check_daemon=request.wait)
    if not request.wait:
        if request.json:
            emit({"id": request.id}, one_line=True)
        else:
            write(request.id)
        if not exchange.is_served():
            complain(f"{no_daemon(exchange.root)}; until then the command waits on disk")
        return ExitCode.COMPLETED
    try:
        with Display() as display:
            answer = exchange.await_final(
                request.id, request.timeout, on_running=display.progress, withdraw=True
            )
    except KeyboardInterrupt:
        print(file=sys.stderr)
        _tell_where(exchange, request.id)
        return ExitCode.INTERRUPTED
    code = show(answer, root=exchange.root, whole=request.json)
    exchange.discard(request.id, answer)
    return code


def _tell_where(exchange: Exchange, name: str) -> None:
    """After Ctrl-C: what has started is not stopped by that."""
    if exchange.mailbox.is_claimed(name) or exchange.mailbox.fetch(name) is not None:
        complain(f"command {name} goes on; stop it with: fileipc cancel {name}")
    else:
        complain(f"command {name} had not started and was withdrawn")

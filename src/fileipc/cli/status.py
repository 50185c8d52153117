"""`fileipc status`: how a root is doing, from its files alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click
import msgspec

from ..client.exchange import locate
from ..client.health import State, Survey, survey
from ..errors import InvalidCommand, NoRoot
from ..protocol.times import parse_timestamp
from ..spool.layout import Layout
from .common import complain, emit, visible, write
from .options import json_option, root_option

if TYPE_CHECKING:
    from collections.abc import Iterator

_CODES = {State.SERVING: 0, State.DEGRADED: 1, State.NOT_RESPONDING: 1, State.NOT_RUNNING: 3}
_NO_ROOT = 4
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@click.command("status")
@root_option()
@json_option("Print everything as one line of JSON.")
def command(root: str | None, as_json: bool) -> int:
    """Show how a root is doing. Works with the daemon down, too.

    Exit codes, as init scripts use them: 0 serving, 1 degraded or not responding, 3 not running,
    4 no root.
    """
    try:
        layout = Layout(locate(root))
    except NoRoot as error:
        complain(str(error))
        return _NO_ROOT
    found = survey(layout)
    if as_json:
        emit(msgspec.to_builtins(found), one_line=True)
    else:
        write("\n".join(visible(line) for line in _lines(found)))
    return _CODES[found.state]


def _lines(found: Survey) -> Iterator[str]:
    state = found.state.value.replace("_", " ")
    yield f"{found.root}: {state}{f' ({found.reason})' if found.reason else ''}"
    if found.holder is not None:
        version = f", version {found.heartbeat.version}" if found.heartbeat else ""
        yield (
            f"  daemon    pid {found.holder.pid} on {found.holder.host}{version}, "
            f"up {_since(found.holder.started_at)}"
        )
    elif found.heartbeat is not None:
        yield f"  daemon    last heard of {_since(found.heartbeat.timestamp)} ago"
    oldest = "" if found.oldest_age is None else f" (the oldest for {_span(found.oldest_age)})"
    running = f", {found.running} running"
    if found.holder is None:
        running = f", {found.running} to be finished by the next start" if found.running else ""
    yield f"  commands  {found.waiting} waiting{oldest}{running}"
    beat = found.heartbeat
    if beat is not None and found.holder is not None:
        yield (
            f"  answered  {beat.completed} completed, {beat.failed} failed, "
            f"{beat.rejected} rejected since the daemon started"
        )
        yield f"  types     {', '.join(beat.types)}"


def _since(moment: str) -> str:
    try:
        return _span(max(0.0, time.time() - parse_timestamp(moment)))
    except InvalidCommand:
        return "an unknown time"


def _span(seconds: float) -> str:
    """Two units at most: `3 h 12 min`, `4.2 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    rest = int(seconds)
    parts: list[str] = []
    for worth, unit in _UNITS:
        count, rest = divmod(rest, worth)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])

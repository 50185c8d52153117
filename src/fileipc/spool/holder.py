"""Who holds a root: the content of `locks/daemon.json`, for people and for messages."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from .layout import Layout


class Holder(Struct, frozen=True, kw_only=True):
    """Who serves a root."""

    instance: str
    pid: int
    host: str
    started_at: str


def read_holder(layout: Layout) -> Holder | None:
    """Who holds (or last held) the root's lock, as far as is known."""
    try:
        with open(layout.daemon_holder, "rb") as file:
            return msgspec.json.decode(file.read(64 * 1024), type=Holder)
    except (OSError, ValueError):
        return None


def describe_holder(layout: Layout) -> str:
    holder = read_holder(layout)
    if holder is None:
        return "another daemon"
    return f"pid {holder.pid} on {holder.host} since {holder.started_at}"

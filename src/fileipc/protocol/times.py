"""When a command was sent, when it expires, when it is stale: from its own words first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from ..errors import Expired, InvalidCommand, Stale
from .models import Command

_MILLISECONDS_FROM = 1e11  # as seconds: the year 5138; as milliseconds: 1973


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds since 1970."""

    sent_at: float
    expires_at: float
    stale_at: float

    def over(self, now: float) -> bool:
        """Whether the command may not run any more."""
        return now >= min(self.expires_at, self.stale_at)

    def check(self, now: float) -> None:
        """Raise Expired or Stale where the command may not run any more."""
        if now >= self.expires_at:
            raise Expired(
                f"the ttl passed {now - self.expires_at:.1f} s ago, while the command was waiting",
                details={"expired_at": iso(self.expires_at)},
            )
        if now >= self.stale_at:
            raise Stale(
                "the command waited longer than stale_after allows",
                details={"waiting_since": iso(self.sent_at)},
            )


def timing(
    command: Command, *, arrival: float, now: float, default_ttl: float, stale_after: float
) -> Timing:
    """Work out a command's times.

    Args:
        arrival: when its file came to lie in the folder, seconds since 1970.
        default_ttl: seconds, for commands that name none.

    A timestamp in the future, or none, means the arrival; so does an arrival in the future
    (a clock that was set back) mean now.
    """
    arrived = min(arrival, now)
    sent = arrived if command.timestamp is None else parse_timestamp(command.timestamp)
    if sent > now:
        sent = arrived
    ttl = default_ttl if command.ttl is None else command.ttl
    return Timing(sent_at=sent, expires_at=sent + ttl, stale_at=arrived + stale_after)


def parse_timestamp(value: str | float) -> float:
    """Seconds since 1970 of an ISO 8601 text or a number of seconds or milliseconds."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            raise InvalidCommand(
                f"timestamp {value[:40]!r} is not an ISO 8601 time such as 2026-05-17T00:00:00Z",
                details={"field": "timestamp"},
            ) from None
    if not math.isfinite(value) or value < 0:
        raise InvalidCommand("timestamp must be a positive number", details={"field": "timestamp"})
    return value / 1000 if value >= _MILLISECONDS_FROM else float(value)


def iso(moment: float) -> str:
    """ISO 8601 in UTC with milliseconds; the nearest that a date can hold."""
    try:
        when = datetime.fromtimestamp(moment, UTC)
    except (OverflowError, ValueError, OSError):
        when = datetime.max.replace(tzinfo=UTC) if moment > 0 else datetime.min.replace(tzinfo=UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def day(moment: float) -> str:
    """The archive folder of a moment: YYYY-MM-DD in UTC."""
    return iso(moment)[:10]

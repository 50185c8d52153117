"""One documented reading of every time, wherever the daemon's clock and zone are."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fileipc.errors import Expired, InvalidCommand, Stale
from fileipc.protocol.models import Command
from fileipc.protocol.times import iso, parse_timestamp, timing

ID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
NOON = 1_779_019_200.0  # 2026-05-17T12:00:00Z


@pytest.fixture(params=["UTC", "Asia/Kolkata", "America/New_York"])
def _zone(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("_zone")
@pytest.mark.parametrize(
    "value",
    ["2026-05-17T12:00:00", "2026-05-17T12:00:00Z", "2026-05-17T17:30:00+05:30",
     "2026-05-17 12:00", NOON, NOON * 1000],
)  # fmt: skip
def test_a_time_without_offset_is_utc_in_every_zone(value: str | float) -> None:
    """Case S15."""
    assert parse_timestamp(value) == NOON


@pytest.mark.parametrize("value", ["yesterday", "", "99999-01-01", -1.0])
def test_a_time_that_is_none_is_refused(value: str | float) -> None:
    with pytest.raises(InvalidCommand, match="timestamp"):
        parse_timestamp(value)


def check(command: Command, arrival: float, now: float) -> None:
    times = timing(command, arrival=arrival, now=now, default_ttl=300, stale_after=3600)
    times.check(now)


def test_the_ttl_counts_from_the_timestamp() -> None:
    command = Command(id=ID, type="ping", timestamp=NOON, ttl=60)
    check(command, NOON + 50, NOON + 59)
    with pytest.raises(Expired):
        check(command, NOON + 50, NOON + 60)


def test_a_missing_or_future_timestamp_means_the_arrival() -> None:
    """Case S14."""
    for stamp in (None, NOON + 9e5):
        command = Command(id=ID, type="ping", timestamp=stamp, ttl=60)
        check(command, NOON, NOON + 59)
        with pytest.raises(Expired):
            check(command, NOON, NOON + 61)


def test_a_command_with_a_long_ttl_goes_stale_all_the_same() -> None:
    command = Command(id=ID, type="ping", ttl=1e9)
    with pytest.raises(Stale):
        check(command, NOON, NOON + 3601)


@given(st.floats(allow_nan=False), st.floats(0, 4e9), st.floats(0, 4e9))
def test_no_time_makes_the_check_fail_otherwise(stamp: float, arrival: float, now: float) -> None:
    with contextlib.suppress(Expired, Stale, InvalidCommand):
        check(Command(id=ID, type="ping", timestamp=stamp, ttl=60), arrival, now)


@given(st.floats(allow_nan=False))
def test_any_number_of_seconds_can_be_written_down(moment: float) -> None:
    assert iso(moment).endswith("Z")

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileipc.config.units import (
    DURATION_PATTERN,
    SIZE_PATTERN,
    UnitError,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)

quiet = settings(database=None, deadline=None)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30s", 30.0),
        ("5m", 300.0),
        ("1h", 3600.0),
        ("7d", 604800.0),
        ("250ms", 0.25),
        ("1h30m", 5400.0),
        ("1d 2h 3m 4s 5ms", 93784.005),
        ("1.5h", 5400.0),
        ("0.1s", 0.1),
        ("90", 90.0),
        (90, 90.0),
        (1.5, 1.5),
        (0, 0.0),
    ],
)
def test_a_duration_is_read_as_seconds(written: object, seconds: float) -> None:
    assert parse_duration(written) == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("1MiB", 1024**2),
        ("20MB", 20_000_000),
        ("512KiB", 512 * 1024),
        ("1GiB", 1024**3),
        ("1.5KiB", 1536),
        ("20 kB", 20_000),
        ("7B", 7),
        ("7", 7),
        (7, 7),
    ],
)
def test_a_size_is_read_as_bytes(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize("value", [True, False, None, [], math.nan, math.inf, -1, -0.5, 10**400])
def test_what_is_no_amount_is_refused(value: object) -> None:
    with pytest.raises(UnitError):
        parse_duration(value)
    with pytest.raises(UnitError):
        parse_size(value)


@pytest.mark.parametrize(
    "text", ["", "m", "s5", "1m1h", "1s1s", "1_0", "٣s", "5s\n", " 5s", "1e3", "0x1", "9" * 50]
)
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [("5min", "5m"), ("5 minutes", "5m"), ("5M", "5m"), ("2hrs", "2h"), ("1x", None)],
)
def test_a_near_miss_of_a_duration_suggests_the_unit(text: str, meant: str | None) -> None:
    with pytest.raises(UnitError) as caught:
        parse_duration(text)
    assert caught.value.suggestion == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [("1M", "1MiB"), ("1mib", "1MiB"), ("20mb", "20MB"), ("3Gi", "3GiB"), ("1k", "1KiB")],
)
def test_a_near_miss_of_a_size_suggests_the_unit(text: str, meant: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_size(text)
    assert caught.value.suggestion == meant


@pytest.mark.parametrize("text", ["-5s", "-5", "- 1h"])
def test_a_negative_duration_is_called_negative(text: str) -> None:
    with pytest.raises(UnitError, match="negative"):
        parse_duration(text)


def test_a_part_of_a_byte_is_refused() -> None:
    with pytest.raises(UnitError, match="whole number of bytes"):
        parse_size("0.3B")
    with pytest.raises(UnitError, match="whole number of bytes"):
        parse_size(1.5)


def test_amounts_are_written_in_the_largest_unit_that_fits() -> None:
    assert format_duration(5400.0) == "1h30m"
    assert format_duration(604800.0) == "7d"
    assert format_duration(0.25) == "250ms"
    assert format_duration(0.0) == 0
    assert format_size(20 * 1024**2) == "20MiB"
    assert format_size(20_000_000) == "20MB"
    assert format_size(1025) == 1025


@quiet
@given(st.floats(min_value=0, max_value=1e12))
def test_a_written_duration_reads_back_as_the_same_number(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@quiet
@given(st.integers(min_value=0, max_value=10**18))
def test_a_written_size_reads_back_as_the_same_number(size: int) -> None:
    assert parse_size(format_size(size)) == size


@quiet
@given(st.text("0123456789.dhms MKGTiBk-", max_size=12))
def test_the_patterns_of_the_schema_know_what_the_parsers_take(text: str) -> None:
    for pattern, parse in ((DURATION_PATTERN, parse_duration), (SIZE_PATTERN, parse_size)):
        told = refusal(parse, text)
        if told is None or "whole number" in told:
            assert re.search(pattern, text)
        else:
            assert not re.search(pattern, text)


def refusal(parse: Callable[[object], object], text: str) -> str | None:
    try:
        parse(text)
    except UnitError as error:
        return error.message
    return None

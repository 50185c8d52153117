"""Results become strict JSON, whether they are values or a program's own text."""

from __future__ import annotations

import contextlib
import json
import math
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fileipc.errors import InvalidCommand, TooLarge
from fileipc.protocol import codec, results
from fileipc.protocol.results import MAX_RESULT_DEPTH, checked, encode_result

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_every_result_becomes_strict_json(value: Any) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    try:
        raw = bytes(encode_result(value, limit=1 << 20))
    except ValueError:
        return  # a lone surrogate has no JSON form
    json.loads(raw, parse_constant=refuse)


def test_numbers_that_json_lacks_become_text() -> None:
    value = [math.nan, math.inf, -math.inf]
    assert bytes(encode_result(value, limit=100)) == b'["NaN","Infinity","-Infinity"]'


def test_a_result_over_the_limit_is_refused_with_its_size() -> None:
    with pytest.raises(TooLarge, match="102 bytes"):
        encode_result("x" * 100, limit=50)


def spelt_out(value: Any) -> Any:
    """What `encode_result` promises of numbers, in the plainest words."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: spelt_out(item) for key, item in value.items()}
    return [spelt_out(item) for item in value] if isinstance(value, list | tuple) else value


@given(json_values)
def test_only_numbers_that_json_lacks_are_changed(value: Any) -> None:
    with contextlib.suppress(ValueError):  # a lone surrogate has no JSON form
        wanted = msgspec.json.encode(spelt_out(value))
        assert bytes(encode_result(value, limit=1 << 20)) == wanted


def nested(depth: int, inmost: Any, kind: type = list) -> Any:
    for _ in range(depth):
        inmost = {"a": inmost} if kind is dict else kind([inmost])
    return inmost


@pytest.mark.parametrize("kind", [list, tuple, dict])
@pytest.mark.parametrize("inmost", [1, 1.5, math.nan, "x", None])
def test_a_value_may_be_nested_as_deep_as_a_text(kind: type, inmost: Any) -> None:
    raw = encode_result(nested(MAX_RESULT_DEPTH, inmost, kind), limit=1 << 20)
    assert checked(bytes(raw)).data == bytes(raw)
    with pytest.raises(ValueError, match="nested deeper than 256 levels"):
        encode_result(nested(MAX_RESULT_DEPTH + 1, inmost, kind), limit=1 << 20)
    with pytest.raises(ValueError, match="nested deeper than 256 levels"):
        checked(b"[" + bytes(raw) + b"]")


def test_raw_json_is_passed_on_as_it_is_once_it_was_checked() -> None:
    text = b'{ "a" : 1.50 , "a" : [ ] }'
    assert bytes(encode_result(msgspec.Raw(text), limit=100)) == text
    assert bytes(encode_result(checked(b" 1\n"), limit=100)) == b"1"
    with pytest.raises(ValueError, match="not valid JSON"):
        encode_result(msgspec.Raw(b"[NaN]"), limit=100)
    with pytest.raises(TooLarge):
        encode_result(msgspec.Raw(text), limit=10)


def accepted(raw: bytes) -> bool:
    try:
        checked(raw)
    except ValueError:
        return False
    return True


def read_by_a_strict_parser(raw: bytes) -> bool:
    try:
        codec.parse(raw, max_depth=MAX_RESULT_DEPTH)
    except codec.Incomplete:
        return False
    except InvalidCommand as error:
        return "stands twice" in error.message  # the one thing that is not looked at
    return True


TEXTS = (
    st.text(alphabet='[]{}",:\\/ue0189.-+Etrufalsn \n\t\x00\x1fé\U0001f600', max_size=30)
    | st.builds(lambda parts: "".join(parts), st.lists(st.sampled_from(
        ['"', "\\", '\\"', "\\\\", "\\ud83d", "\\ude00", "\\u0041", "a", "[", "]", ",", "1e308",
         "1e309", "-0.0", "1E+400", "9" * 400, "9" * 401, "0", ".5", "{", "}", ":", "true",
         "null", "NaN"]
    ), max_size=8))
    | json_values.map(json.dumps)
)  # fmt: skip


@given(TEXTS, st.sampled_from([1, 2, 3, 7, results._CHUNK]))
@example('["\\\\", "\\"]", 1e400]', 1)
@example('["\\ud83d\\ude00"]', 1)
@example("[" + "9" * 400 + "]", 3)
@example("[-" + "9" * 401 + "]", 3)
@example("9" * 350 + ".0", 7)
@example('{"a": 1, "a": 2}', 7)
def test_a_text_is_taken_over_where_a_strict_parser_would_read_it(text: str, chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "_CHUNK", chunk)
        raw = text.encode("utf-8", "surrogatepass")
        assert accepted(raw) == read_by_a_strict_parser(raw)


@given(st.binary(max_size=100), st.sampled_from([1, 5, results._CHUNK]))
def test_any_bytes_are_taken_over_or_refused_with_a_reason(raw: bytes, chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "_CHUNK", chunk)
        for text in (raw, b'"' + raw + b'"'):
            assert accepted(text) == read_by_a_strict_parser(text)


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 10_000_000,
        b"[" * 5000 + b"]" * 5000,
        b"9" * 5_000_000,
        b"0." + b"9" * 5_000_000,
        b"[" + b"1," * 100_000 + b"1e999]",
    ],
)
def test_what_would_hurt_its_reader_is_refused(raw: bytes) -> None:
    assert not accepted(raw)


def test_a_large_text_is_not_turned_into_objects() -> None:
    raw = b"[" + b",".join([b"{}"] * 1_000_000) + b"]"
    tracemalloc.start()
    try:
        raw_result = encode_result(checked(raw), limit=len(raw))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(bytes(raw_result)) == len(raw)
    assert peak < 3 * len(raw)

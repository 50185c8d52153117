"""Arguments arrive flat or nested and leave as one validated shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from fileipc.errors import InvalidArgs
from fileipc.protocol.args import custom_target, flatten, validate


class Search(Struct, frozen=True):
    pattern: str
    path: str = "."
    depth: int = 1


@given(st.dictionaries(st.sampled_from(["a", "b", "depth"]), st.integers()))
def test_flat_and_nested_arguments_mean_the_same(params: dict[str, int]) -> None:
    flat = {"target": "t", **params}
    assert flatten({"target": "t", "params": params}) == flatten(flat) == flat


def test_a_handler_with_an_argument_params_keeps_it() -> None:
    query = {"query": "SELECT ?", "params": {"a": 1}}
    assert flatten(query, declared=frozenset({"query", "params"})) == query


def test_two_different_targets_are_refused() -> None:
    with pytest.raises(InvalidArgs, match="target"):
        flatten({"target": "a", "params": {"target": "b"}})


def test_the_seeds_target_stands_for_the_handlers_own_word() -> None:
    args = validate({"pattern": "x", "target": "src"}, Search, alias="path")
    assert args == Search(pattern="x", path="src")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "missing argument `pattern`"),
        ({"pattern": "x", "dpth": 2}, "did you mean `depth`"),
        ({"pattern": "x", "depth": "2"}, "depth"),
        ({"pattern": 5}, "pattern"),
        ({"pattern": "x", "path": "a", "target": "b"}, "same"),
    ],
)
def test_a_wrong_argument_is_named(args: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgs, match=message):
        validate(args, Search, alias="path")


def test_of_endless_unknown_arguments_the_first_are_named() -> None:
    with pytest.raises(InvalidArgs) as caught:
        validate({f"{n}{'x' * 5000}": n for n in range(5000)}, Search)
    assert caught.value.message.endswith("; and 4990 more unknown arguments")
    assert len(caught.value.message) < 2000
    assert len(caught.value.details["unknown"]) == 10
    assert max(map(len, caught.value.details["unknown"])) == 80
    assert caught.value.details["unknown_count"] == 5000


def test_a_custom_command_names_its_handler() -> None:
    assert custom_target({"target": "sum", "n": 1}) == ("sum", {"n": 1})
    assert custom_target({"target": "sum", "params": {"n": 1}}) == ("sum", {"n": 1})
    with pytest.raises(InvalidArgs):
        custom_target({"n": 1})

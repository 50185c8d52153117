"""`send` is parsed by a lane of its own or by click: it must not matter by which."""

from __future__ import annotations

from typing import Any

import click
from hypothesis import given
from hypothesis import strategies as st

from fileipc.cli.request import OPTIONS, tokenize
from fileipc.cli.send import command

WORDS = st.one_of(
    st.sampled_from(
        [
            *(option.flag for option in OPTIONS),
            *(f"{option.flag}=x" for option in OPTIONS),
            *("--wait", "--no-wait", "--json", "--json=1", "--", "-", "-h", "--help", "--tll"),
            *("ping", "a=1", "b=[1, 2]", "=", "", "-5", "--meta=a=b", "-x", "---", "--args="),
        ]
    ),
    st.text(max_size=5),
)


def by_click(argv: list[str]) -> dict[str, Any] | None:
    """None where click reports an error, or prints help."""
    try:
        context = command.make_context("send", list(argv), help_option_names=["-h", "--help"])
    except (click.UsageError, click.exceptions.Exit):
        return None
    return dict(context.params)


@given(st.lists(WORDS, max_size=8))
def test_what_the_lane_understands_click_understands_in_the_same_way(argv: list[str]) -> None:
    raw = tokenize(argv)
    if raw is not None:
        assert raw == by_click(argv)


@given(st.lists(st.sampled_from(["ping", "a=1", "--json", "--ttl=3", "--no-wait"]), min_size=1))
def test_the_lane_understands_every_ordinary_command_line(argv: list[str]) -> None:
    if any(not word.startswith("--") for word in argv):
        assert tokenize(argv) is not None


def test_both_know_the_same_options() -> None:
    flags = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
    assert flags >= {option.flag for option in OPTIONS}
    for param in command.params:
        if isinstance(param, click.Option):
            for flag in (*param.opts, *param.secondary_opts):
                words = [flag] if param.is_flag else [flag, "x"]
                assert tokenize(["ping", *words]) is not None

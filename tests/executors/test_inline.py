"""Calls that the daemon answers itself."""

from __future__ import annotations

from typing import Any

import pytest

from fileipc.errors import CommandFailure, Forbidden, HandlerError, Outcome, TooLarge
from fileipc.executors.inline import InlineExecutor
from fileipc.executors.port import InlineCall, Stop

from .support import job, value


def test_the_result_comes_back_as_json() -> None:
    raw = InlineExecutor().run(InlineCall(lambda: {"pong": True, "rate": float("inf")}), job())
    assert value(raw) == {"pong": True, "rate": "Infinity"}


def _forbid() -> Any:
    raise Forbidden("not you")


@pytest.mark.parametrize(
    ("run", "failure", "outcome"),
    [
        (_forbid, Forbidden, Outcome.NOT_STARTED),
        (lambda: 1 / 0, HandlerError, Outcome.FINISHED),
        (lambda: object(), HandlerError, Outcome.FINISHED),
        (lambda: "x" * 100, TooLarge, Outcome.FINISHED),
    ],
)
def test_nothing_but_a_command_failure_leaves_it(
    run: Any, failure: type[CommandFailure], outcome: Outcome
) -> None:
    with pytest.raises(failure) as caught:
        InlineExecutor().run(InlineCall(run), job(result_limit=50))
    assert caught.value.actual_outcome is outcome


def test_a_stop_before_the_start_runs_nothing() -> None:
    stop = Stop()
    stop.request("interrupted")
    ran: list[int] = []
    with pytest.raises(CommandFailure) as caught:
        InlineExecutor().run(InlineCall(lambda: ran.append(1)), job(stop=stop))
    assert caught.value.actual_outcome is Outcome.NOT_STARTED
    assert ran == []

"""The two handlers that the daemon answers itself."""

from __future__ import annotations

from typing import Any

import pytest

from fileipc.errors import InvalidArgs, NotFound
from fileipc.executors.port import InlineCall
from fileipc.handlers.cancel import CancelHandler
from fileipc.handlers.ping import PingHandler

from .harness import Place

ID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


class Control:
    """A root that knows one command."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []

    def describe(self) -> dict[str, Any]:
        return {"version": "1", "waiting": 3}

    def cancel(self, command_id: str) -> str:
        self.cancelled.append(command_id)
        return "cancelled" if command_id == ID else "unknown"


def test_ping_answers_with_what_the_root_says_of_itself(place: Place) -> None:
    answer = place.run(PingHandler(Control()), {"target": "", "anything": 1})
    assert answer == {"pong": True, "version": "1", "waiting": 3}


def test_cancel_names_the_command_and_its_state(place: Place) -> None:
    answer = place.run(CancelHandler(Control()), {"target": ID.upper()})
    assert answer == {"target": ID, "state": "cancelled"}


def test_cancel_does_nothing_before_it_is_run(place: Place) -> None:
    control = Control()
    call = CancelHandler(control).prepare({"target": ID}, place.scope)
    assert isinstance(call, InlineCall)
    assert control.cancelled == []


def test_cancel_of_an_unknown_command_is_not_found(place: Place) -> None:
    with pytest.raises(NotFound, match="no command"):
        place.run(CancelHandler(Control()), {"target": ID.replace("3", "4")})


@pytest.mark.parametrize("args", [{}, {"target": "x"}, {"target": 5}, {"target": ID, "why": "no"}])
def test_cancel_wants_the_id_of_a_command(place: Place, args: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgs):
        place.run(CancelHandler(Control()), args)

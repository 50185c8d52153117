"""Taking a command back is told as done only where it surely never runs."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from fileipc.spool.layout import Layout
from fileipc.spool.mailbox import Mailbox


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    for name in ("commands", "responses", "locks"):
        (tmp_path / name).mkdir()
    return Mailbox(Layout(str(tmp_path)))


def posted(mailbox: Mailbox) -> str:
    command_id = str(uuid.uuid4())
    mailbox.post(command_id, b"{}")
    return command_id


def test_a_waiting_command_is_withdrawn(mailbox: Mailbox) -> None:
    command_id = posted(mailbox)
    assert mailbox.withdraw(command_id)
    assert not mailbox.is_waiting(command_id)
    assert not mailbox.withdraw(command_id)


def test_a_claimed_command_is_left_alone(mailbox: Mailbox) -> None:
    command_id = posted(mailbox)
    Path(mailbox.layout.claim(command_id)).write_text("{}")
    assert not mailbox.withdraw(command_id)
    assert mailbox.is_waiting(command_id)


def test_a_command_that_was_answered_in_the_same_moment_was_not_withdrawn(
    mailbox: Mailbox,
) -> None:
    command_id = posted(mailbox)
    Path(mailbox.layout.response(command_id)).write_text("{}")
    assert not mailbox.withdraw(command_id)

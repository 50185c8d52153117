from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fileipc.client import core
from fileipc.client.core import Patience, Verdict
from fileipc.errors import InvalidCommand
from fileipc.protocol.codec import decode_command
from fileipc.protocol.times import parse_timestamp

ID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


def test_a_new_id_is_a_random_uuid_in_canonical_form() -> None:
    first, second = core.new_id(), core.new_id()
    assert first != second
    assert str(uuid.UUID(first)) == first
    assert uuid.UUID(first).version == 4
    assert uuid.UUID(first).variant == uuid.RFC_4122


def test_an_encoded_command_reads_back_with_all_its_fields() -> None:
    raw = core.encode_command(
        "echo", {"text": "é"}, id=ID, now=1.5, ttl=30, priority=-2, meta={"a": [1]}
    )
    decoded = decode_command(raw)
    command = decoded.command
    assert decoded.warnings == ()
    assert (command.id, command.type, command.args) == (ID, "echo", {"text": "é"})
    assert (command.ttl, command.priority, command.meta) == (30, -2, {"a": [1]})
    assert isinstance(command.timestamp, str)
    assert parse_timestamp(command.timestamp) == 1.5


def test_paths_and_dates_in_arguments_become_text() -> None:
    args = {"target": Path("a/b"), "since": datetime(2026, 5, 17, tzinfo=UTC)}
    raw = core.encode_command("echo", args, id=ID, now=0)
    assert json.loads(raw)["args"] == {"target": "a/b", "since": "2026-05-17T00:00:00Z"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), "\ud800", {1, object()}])
def test_an_argument_without_json_form_is_refused_before_anything_is_sent(value: object) -> None:
    with pytest.raises(InvalidCommand):
        core.encode_command("echo", {"x": value}, id=ID, now=0)


@pytest.mark.parametrize(
    "fields",
    [{"type": ""}, {"ttl": 0}, {"ttl": -1}, {"ttl": float("nan")}, {"priority": 10**7}],
)
def test_a_field_out_of_its_range_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidCommand):
        core.encode_command(**{"type": "ping", "args": None, "id": ID, "now": 0, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ttl": "x"}, "ttl must be a positive number of seconds, not 'x'"),
        ({"ttl": True}, "ttl must be a positive number of seconds, not True"),
        ({"args": [1]}, r"args must be a dictionary or None, not \[1\]"),
        ({"args": []}, r"args must be a dictionary or None, not \[\]"),
        ({"meta": "m"}, "meta must be a dictionary or None, not 'm'"),
        ({"priority": "high"}, "priority must be a whole number .*, not 'high'"),
        ({"priority": 1.5}, "priority must be a whole number .*, not 1.5"),
    ],
)
def test_a_field_of_the_wrong_kind_is_told_in_plain_words(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidCommand, match=f"^{message}$"):
        core.encode_command(**{"type": "ping", "args": None, "id": ID, "now": 0, **fields})


def test_an_id_that_is_no_text_is_told() -> None:
    wrong: Any = 5
    with pytest.raises(InvalidCommand, match=r"^id must be a text, not 5$"):
        core.command_id(wrong)


def test_an_id_is_read_in_any_case_and_nothing_but_an_id_is() -> None:
    assert core.command_id(f"CMD-{ID.upper()}") == f"cmd-{ID}"
    for text in ("", "cmd-001", "../../etc/passwd", f"{ID}\n"):
        with pytest.raises(InvalidCommand):
            core.command_id(text)


def test_an_answer_may_be_asked_for_under_the_stem_of_a_refused_file_but_no_path() -> None:
    assert core.answer_id("cmd-001") == "cmd-001"
    for text in ("../x", "a/b", ".hidden", "", "x\0"):
        with pytest.raises(InvalidCommand):
            core.answer_id(text)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"id": "%s", "status": "comp' % ID.encode(),
        b"[]",
        b"null",
        b'{"status": "completed"}',
        b'{"id": "another", "status": "completed"}',
        b'{"id": "%s", "status": "finished"}' % ID.encode(),
        b'{"id": "%s", "status": ["completed"]}' % ID.encode(),
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
)
def test_bytes_that_are_no_answer_of_this_id_are_not_there_yet(raw: bytes) -> None:
    assert core.parse_answer(raw, ID) is None


def test_a_foreign_error_becomes_an_error_object() -> None:
    def error_of(error: object) -> dict[str, Any]:
        raw = json.dumps({"id": ID, "status": "failed", "error": error}).encode()
        answer = core.parse_answer(raw, ID)
        assert answer is not None
        found = answer["error"]
        assert isinstance(found, dict)
        return found

    assert error_of("it broke")["message"] == "it broke"
    assert error_of("it broke")["outcome"] == "unknown"
    assert error_of(None)["code"] == "handler_error"
    assert error_of({"code": 3, "message": [], "outcome": {}, "details": 1}) == error_of(None)
    whole = {"code": "busy", "message": "m", "outcome": "not_started", "details": {"a": 1}}
    assert error_of(whole) == whole


def test_only_a_truncated_result_with_its_whole_beside_it_is_a_preview() -> None:
    assert core.is_preview({"truncated": True, "path": "responses/x.result.json"})
    assert not core.is_preview({"truncated": True, "path": "src/main.py"})
    assert not core.is_preview({"truncated": False, "path": "responses/x.result.json"})
    assert not core.is_preview([])
    assert not core.is_preview(None)


def test_looks_come_after_200_then_500_milliseconds_then_every_second_until_the_deadline() -> None:
    patience = Patience(100.0, 10.0)
    assert [patience.pause(100.0) for _ in range(4)] == [0.2, 0.5, 1.0, 1.0]
    assert patience.pause(109.5) == 0.5
    assert patience.pause(111.0) == 0.0


def test_a_daemon_may_be_away_for_the_grace_but_no_longer() -> None:
    patience = Patience(0.0, 100.0, grace=5.0)
    assert patience.judge(1.0, served=False, traces=True) is None
    assert patience.judge(5.9, served=False, traces=True) is None
    assert patience.judge(6.0, served=False, traces=True) is Verdict.NO_DAEMON


def test_a_daemon_that_came_back_starts_the_grace_anew() -> None:
    patience = Patience(0.0, 100.0, grace=5.0)
    patience.judge(1.0, served=False, traces=True)
    patience.judge(4.0, served=True, traces=True)
    assert patience.judge(7.0, served=False, traces=True) is None


def test_a_command_without_traces_is_gone_after_the_grace_whoever_serves() -> None:
    patience = Patience(0.0, 100.0, grace=5.0)
    assert patience.judge(0.0, served=True, traces=False) is None
    assert patience.judge(5.0, served=True, traces=False) is Verdict.GONE


def test_the_deadline_ends_the_wait() -> None:
    patience = Patience(0.0, 3.0, grace=5.0)
    assert patience.judge(2.9, served=True, traces=True) is None
    assert patience.due(3.0)
    assert patience.judge(3.0, served=True, traces=True) is Verdict.TIMEOUT

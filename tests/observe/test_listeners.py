from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fileipc.config.settings import LogSettings
from fileipc.errors import Outcome
from fileipc.observe import EVENTS, RESULTS, RootLog, SupervisorLog, fan_out
from fileipc.observe.render import trace_ids
from fileipc.protocol.codec import encode_result
from fileipc.protocol.facts import Fact, Level
from fileipc.protocol.models import ErrorInfo, Response, Status

ID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def response(**changes: Any) -> Response:
    base = Response(
        id=ID, type="ping", status=Status.COMPLETED, timestamp="2026-01-02T03:04:05.678Z"
    )
    return msgspec.structs.replace(base, **changes)


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def root(tmp_path: Path) -> RootLog:
    return RootLog.open("shop", str(tmp_path), LogSettings())


def test_a_fact_is_one_json_line_with_its_fields_after_what_it_is(
    root: RootLog, tmp_path: Path
) -> None:
    root(Fact("command_claimed", root="shop", fields={"command_id": ID, "attempt": 1}))
    root.close()
    [line] = written(tmp_path / EVENTS)
    assert list(line) == ["timestamp", "level", "event", "root", "command_id", "attempt"]
    assert line["timestamp"].endswith("Z")
    assert len(line["timestamp"]) == len("2026-01-02T03:04:05.678Z")
    assert (line["level"], line["event"], line["root"]) == ("info", "command_claimed", "shop")


def test_facts_of_other_roots_and_below_the_level_are_left_out(
    root: RootLog, tmp_path: Path
) -> None:
    root(Fact("started"))
    root(Fact("x", root="other"))
    root(Fact("x", Level.DEBUG, root="shop"))
    root(Fact("kept", root="shop"))
    root.close()
    assert [line["event"] for line in written(tmp_path / EVENTS)] == ["kept"]


def test_a_response_is_one_line_of_results_whatever_the_level(tmp_path: Path) -> None:
    root = RootLog.open("shop", str(tmp_path), LogSettings(level="error"))
    settled = response(result={"pong": True}, attempt=1, meta={"a": 1})
    root(Fact("command_settled", root="shop", response=settled))
    root.close()
    assert not (tmp_path / EVENTS).exists()
    [line] = written(tmp_path / RESULTS)
    assert line == msgspec.to_builtins(settled)


def test_a_large_result_is_left_out_with_its_size(root: RootLog, tmp_path: Path) -> None:
    root(Fact("s", root="shop", response=response(result="x" * 20_000, attempt=2)))
    raw = encode_result(["y" * 20_000], limit=100_000)
    root(Fact("s", root="shop", response=response(result=raw)))
    root.close()
    first, second = written(tmp_path / RESULTS)
    assert (first["result"], first["result_bytes"], first["result_cut"]) == (None, 20_002, True)
    assert first["attempt"] == 2
    assert second["result_bytes"] == 20_004


def test_a_response_with_huge_extras_keeps_what_was_answered(root: RootLog, tmp_path: Path) -> None:
    error = ErrorInfo(
        code="crashed", message="m" * 50_000, outcome=Outcome.UNKNOWN, details={"d": "d" * 50_000}
    )
    huge = response(status=Status.FAILED, type="t" * 50_000, error=error, meta={"m": "m" * 900_000})
    root(Fact("s", root="shop", response=huge))
    root.close()
    assert (tmp_path / RESULTS).stat().st_size < 10_000
    [line] = written(tmp_path / RESULTS)
    assert (line["id"], line["status"], line["error"]["code"]) == (ID, "failed", "crashed")
    assert line["cut"] is True


def test_a_result_that_came_as_spread_out_json_stays_on_one_line(
    root: RootLog, tmp_path: Path
) -> None:
    raw = msgspec.Raw(b'{\n  "a": [1,\n 2]\n}')
    root(Fact("s", root="shop", response=response(result=raw)))
    root.close()
    [line] = written(tmp_path / RESULTS)
    assert line["result"] == {"a": [1, 2]}


def test_values_that_json_cannot_carry_become_text(root: RootLog, tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    odd = {
        "surrogate": os.fsdecode(b"\xff.json"),
        "nan": float("nan"),
        "big": 10**30,
        "object": object,
        "set": {1},
        "deep": deep,
        "nested": {"\udcff": ["\udcfe"]},
    }
    for name, value in odd.items():
        root(Fact(name, root="shop", fields={name: value}))
    root(
        Fact("s", root="shop", response=response(meta={"bad": "\udcff"}, result=msgspec.Raw(b"1")))
    )
    root.close()
    found = {line["event"]: line for line in written(tmp_path / EVENTS)}
    assert root.trouble.count == root.results_trouble.count == 0
    assert found["surrogate"]["surrogate"] == "\\udcff.json"
    assert found["big"]["big"] == 10**30
    assert found["nested"]["nested"] == {"\\udcff": ["\\udcfe"]}
    assert set(found) == {*odd, "s"}
    [line] = written(tmp_path / RESULTS)
    assert (line["id"], line["result"], line["meta"]) == (ID, 1, {"bad": "\\udcff"})


def test_a_line_break_in_a_value_does_not_make_a_line(root: RootLog, tmp_path: Path) -> None:
    root(Fact("x", root="shop", fields={"name": 'a\n{"event":"forged"}'}))
    root.close()
    assert len((tmp_path / EVENTS).read_text().splitlines()) == 1


def test_a_huge_value_is_cut_out_of_the_line(root: RootLog, tmp_path: Path) -> None:
    root(Fact("x", root="shop", fields={"command_id": ID, "name": "n" * 1_000_000}))
    root.close()
    [line] = written(tmp_path / EVENTS)
    assert (line["event"], line["command_id"], line["line_cut"]) == ("x", ID, True)
    assert line["line_bytes"] > 1_000_000
    assert "name" not in line


def test_a_field_cannot_pass_for_what_the_line_says_of_itself(
    root: RootLog, tmp_path: Path
) -> None:
    fields = {"timestamp": 1, "level": "debug", "event": "forged", "root": "other"}
    root(Fact("true", root="shop", fields=fields))
    root.close()
    [line] = written(tmp_path / EVENTS)
    assert (line["level"], line["event"], line["root"]) == ("info", "true", "shop")
    assert line["event_"] == "forged"


def test_a_traceparent_becomes_a_trace_id(root: RootLog, tmp_path: Path) -> None:
    root(Fact("a", root="shop", fields={"traceparent": PARENT}))
    root(Fact("b", root="shop", response=response(meta={"traceparent": PARENT})))
    root(Fact("c", root="shop", fields={"traceparent": "nonsense\n"}))
    root.close()
    a, b, c = written(tmp_path / EVENTS)
    assert a["trace_id"] == b["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert "traceparent" not in a
    assert set(c) == {"timestamp", "level", "event", "root"}


@pytest.mark.parametrize(
    "wrong",
    [
        *(None, 5, "", PARENT.upper(), PARENT[:-1], f"{PARENT}\n", f"{PARENT}-more", f" {PARENT}"),
        f"ff{PARENT[2:]}",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
    ],
)
def test_a_traceparent_that_is_not_valid_is_no_trace(wrong: object) -> None:
    assert trace_ids(wrong) == {}


def test_a_traceparent_of_a_later_version_may_go_on() -> None:
    assert trace_ids(f"01{PARENT[2:]}-more")["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_log_that_cannot_be_written_is_told_elsewhere_once_and_never_raises(
    tmp_path: Path,
) -> None:
    told: list[Fact] = []
    root = RootLog.open("shop", str(tmp_path / "gone" / "log"), LogSettings(), trouble=told.append)
    for _ in range(50):
        root(Fact("x", root="shop", response=response()))
    assert root.trouble.count == root.results_trouble.count == 50
    assert [fact.event for fact in told] == ["log_failed", "log_failed"]
    assert all(fact.root == "shop" and fact.level is Level.ERROR for fact in told)
    assert {fact.fields["sink"].rsplit("/", 1)[1] for fact in told} == {EVENTS, RESULTS}


def test_the_supervisor_log_has_the_daemon_and_the_warnings_of_every_root() -> None:
    stream = io.StringIO()
    log = SupervisorLog(LogSettings(level="debug"), stream)
    log(Fact("started"))
    log(Fact("detail", Level.DEBUG))
    log(Fact("command_settled", root="shop"))
    log(Fact("root_missing", Level.WARNING, "shop"))
    log(Fact("root_broken", Level.ERROR, "bakery"))
    events = [json.loads(line)["event"] for line in stream.getvalue().splitlines()]
    assert events == ["started", "detail", "root_missing", "root_broken"]


def test_the_supervisor_log_respects_its_level() -> None:
    stream = io.StringIO()
    log = SupervisorLog(LogSettings(level="error"), stream)
    log(Fact("started"))
    log(Fact("root_missing", Level.WARNING, "shop"))
    log(Fact("root_broken", Level.ERROR, "shop"))
    assert len(stream.getvalue().splitlines()) == 1


def test_text_is_one_line_a_fact_and_shows_no_control_characters() -> None:
    stream = io.StringIO()
    log = SupervisorLog(LogSettings(format="text"), stream)
    hostile = {
        "name": "x\x1b[2J\r\nforged",
        "override": "a\u202eb\u2028c\x9b",
        "list": ["\x1b[31m"],
        "bytes": "\udcff",
        "key\nwith\x1b": 1,
        "exception": "Traceback\nlines",
        "stack": "a\nb",
    }
    log(Fact("odd", Level.WARNING, "shop", hostile))
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.strip().isprintable()
    assert "warning" in text
    assert "root=shop" in text
    assert "\\x1b[2J" in text


def test_a_huge_value_is_shortened_in_text() -> None:
    stream = io.StringIO()
    log = SupervisorLog(LogSettings(format="text"), stream)
    log(Fact("odd", fields={"text": "x" * 1_000_000, "list": ["y" * 1_000_000]}))
    assert len(stream.getvalue()) < 5000
    assert "(1000000 characters)" in stream.getvalue()


def test_the_format_is_text_on_a_terminal_and_json_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    main, side = pty.openpty()
    try:
        with open(side, "w", closefd=False) as terminal:
            SupervisorLog(LogSettings(), terminal)(Fact("started"))
            shown = os.read(main, 4096).decode()
            monkeypatch.setenv("NO_COLOR", "1")
            SupervisorLog(LogSettings(), terminal)(Fact("started"))
            plain = os.read(main, 4096).decode()
    finally:
        os.close(main)
        os.close(side)
    assert "\x1b[" in shown
    assert "\x1b[" not in plain
    assert "started" in plain
    assert not plain.startswith("{")
    stream = io.StringIO()
    SupervisorLog(LogSettings(), stream)(Fact("started"))
    assert json.loads(stream.getvalue())["event"] == "started"


def test_the_supervisor_log_goes_to_its_file_and_nowhere_else(tmp_path: Path) -> None:
    stream = io.StringIO()
    path = tmp_path / "daemon.log"
    log = SupervisorLog(LogSettings(file=str(path), format="text"), stream)
    log(Fact("started"))
    log.close()
    assert "started" in path.read_text()
    assert stream.getvalue() == ""


def test_a_supervisor_file_that_cannot_be_written_is_told_on_the_stream_once(
    tmp_path: Path,
) -> None:
    stream = io.StringIO()
    log = SupervisorLog(LogSettings(file=str(tmp_path / "gone" / "log" / "x")), stream)
    for _ in range(20):
        log(Fact("started"))
    assert log.trouble.count == 20
    [line] = stream.getvalue().splitlines()
    assert json.loads(line)["event"] == "log_failed"


def test_a_stream_that_cannot_be_written_is_borne_in_silence() -> None:
    stream = io.StringIO()
    stream.close()
    log = SupervisorLog(LogSettings(), stream)
    log(Fact("started"))
    assert log.trouble.count == 1


def test_without_any_stream_the_supervisor_log_is_silent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    log = SupervisorLog(LogSettings())
    log(Fact("started"))
    assert log.trouble.count == 0
    path = tmp_path / "daemon.log"
    log = SupervisorLog(LogSettings(file=str(path)))
    log(Fact("started"))
    log.close()
    assert [line["event"] for line in written(path)] == ["started"]


def test_a_closed_log_drops_what_comes_late_and_opens_nothing(
    root: RootLog, tmp_path: Path
) -> None:
    path = tmp_path / "daemon.log"
    daemon = SupervisorLog(LogSettings(file=str(path)))
    for log in (root, daemon):
        log(Fact("first", Level.WARNING, "shop", response=response()))
        log.close()
        log.close()
    for name in (EVENTS, RESULTS, "daemon.log"):
        (tmp_path / name).unlink()
    before = os.listdir("/dev/fd")
    for log in (root, daemon):
        log(Fact("late", Level.WARNING, "shop", response=response()))
    assert os.listdir("/dev/fd") == before
    assert os.listdir(tmp_path) == []
    assert root.trouble.count == daemon.trouble.count == 0


def test_a_closed_stream_log_is_silent() -> None:
    stream = io.StringIO()
    log = SupervisorLog(LogSettings(), stream)
    log.close()
    log(Fact("late"))
    assert stream.getvalue() == ""
    assert not stream.closed


def test_a_listener_that_fails_does_not_keep_a_fact_from_the_others() -> None:
    heard: list[Fact] = []

    def broken(_fact: Fact) -> None:
        raise RuntimeError

    fan_out(broken, heard.append)(Fact("x"))
    assert [fact.event for fact in heard] == ["x"]


def test_logging_leaves_the_global_set_up_of_structlog_alone(tmp_path: Path) -> None:
    script = f"""
import structlog
from fileipc.config.settings import LogSettings
from fileipc.observe import RootLog, SupervisorLog
RootLog.open("r", {str(tmp_path)!r}, LogSettings())
SupervisorLog(LogSettings())
assert not structlog.is_configured()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)

"""Reading commands: generous with encodings, strict with everything else."""

from __future__ import annotations

import contextlib
import json
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fileipc.errors import InvalidCommand
from fileipc.protocol import codec
from fileipc.protocol.codec import Incomplete, decode_command, encode_result
from fileipc.protocol.models import Response, Status

ID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


def command(**fields: Any) -> bytes:
    return json.dumps({"id": ID, "type": "ping", **fields}).encode()


def test_the_seed_shape_is_read() -> None:
    decoded = decode_command(
        command(
            id=f"cmd-{ID}",
            args={"target": "a.py", "params": {}},
            timestamp="2026-05-17T00:00:00Z",
            ttl=300,
        )
    )
    assert decoded.command.id == f"cmd-{ID}"
    assert decoded.command.ttl == 300
    assert decoded.warnings == ()


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_every_encoding_that_editors_write_is_read(encoding: str) -> None:
    """Case S05."""
    text = command(meta={"who": "cafe\u0301 €"}).decode().replace(",", ",\r\n")
    assert decode_command(text.encode(encoding)).command.id == ID


def test_an_upper_case_id_is_read_in_lower_case_and_told() -> None:
    decoded = decode_command(command(id=ID.upper()))
    assert decoded.command.id == ID
    assert "lower case" in decoded.warnings[0]


def test_an_unknown_field_is_a_warning_with_a_near_miss() -> None:
    decoded = decode_command(command(tll=5))
    assert "ttl" in decoded.warnings[0]


def test_of_endless_unknown_fields_the_first_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def counted(name: str, *_args: object, **_named: object) -> list[str]:
        compared.append(name)
        return []

    monkeypatch.setattr("fileipc.protocol.hints.get_close_matches", counted)
    many = {f"f{number}": 1 for number in range(75_000)}
    warnings = decode_command(command(**{"x" * 900_000: 1}, **many)).warnings
    assert len(warnings) == 11
    assert warnings[-1] == "and 74991 more unknown fields were ignored"
    assert max(map(len, warnings)) < 200
    assert len(compared) == 9, "what is endless is no slip of the pen"


def test_an_endless_type_is_refused_and_not_repeated() -> None:
    assert decode_command(command(type="x" * 200)).command.type == "x" * 200
    with pytest.raises(InvalidCommand, match="type has 900000 characters") as caught:
        decode_command(command(type="x" * 900_000))
    assert len(caught.value.message) < 100


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"ttl": True}, "ttl"),
        ({"ttl": "60"}, "ttl"),
        ({"ttl": 0}, "ttl"),
        ({"ttl": -1}, "ttl"),
        ({"id": 5}, "id"),
        ({"id": "x"}, "UUID"),
        ({"id": f"{ID}\n"}, "UUID"),
        ({"id": "../../evil"}, "UUID"),
        ({"args": []}, "args"),
        ({"type": None}, "type"),
        ({"type": ""}, "type"),
        ({"priority": 1.5}, "priority"),
        ({"meta": "m"}, "meta"),
        ({"timestamp": []}, "timestamp"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(fields: dict[str, Any], named: str) -> None:
    """Case S07."""
    with pytest.raises(InvalidCommand, match=named):
        decode_command(command(**fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ttl": "5"}, 'ttl must be a number above 0 or null, not the text "5"'),
        ({"ttl": 0}, "ttl must be a number above 0 or null, not 0"),
        ({"ttl": True}, "ttl must be a number above 0 or null, not true"),
        ({"args": [1]}, "args must be an object, not the list [1]"),
        ({"id": None}, "id must be a text, not null"),
        ({"type": ""}, 'type must be a text that is not empty, not the text ""'),
        ({"timestamp": {}}, "timestamp must be a text, a number or null, not the object {}"),
        (
            {"priority": 10**7},
            "priority must be a whole number from -1000000 to 1000000, not 10000000",
        ),
    ],
)
def test_a_field_of_the_wrong_kind_is_told_in_plain_words(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidCommand) as caught:
        decode_command(command(**fields))
    assert caught.value.message == message
    assert caught.value.details == {"field": next(iter(fields))}


def test_a_missing_field_is_told_in_plain_words() -> None:
    with pytest.raises(InvalidCommand, match=r"^missing the required field `type`$"):
        decode_command(b'{"id": "%s"}' % ID.encode())


def test_null_in_an_optional_field_is_as_if_it_were_missing() -> None:
    names = ("args", "timestamp", "ttl", "priority", "meta")
    decoded = decode_command(command(**dict.fromkeys(names)))
    assert decoded == decode_command(command())


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b'{"id": "%s", "type": "ping", "ttl": %s}' % (ID.encode(), b"9" * 5000),
        b'{"id": "%s", "type": "ping", "ttl": 1e309}' % ID.encode(),
        b'{"id": "%s", "type": "ping", "ttl": NaN}' % ID.encode(),
        b'{"id": "%s", "type": "ping", "id": "x"}' % ID.encode(),
        b'{"id": "%s", "type": "ping", "args": {"a": "\\ud800"}}' % ID.encode(),
        b"[]",
        b"5",
        b"null",
        b'"text"',
        b'{"id": "caf\xe9"}',
        b'{"id": 1,}',
        b"{'id': 1}",
        b'{"id": "%s"} trailing' % ID.encode(),
        b"\xff\xfe\x00",
    ],
)
def test_hostile_json_is_an_invalid_command_and_nothing_else(raw: bytes) -> None:
    """Case S07; W01."""
    with pytest.raises((InvalidCommand, Incomplete)):
        decode_command(raw)


@given(st.data())
def test_every_true_prefix_of_a_command_is_incomplete_and_never_a_command(
    data: st.DataObject,
) -> None:
    whole = json.dumps(
        {
            "id": ID,
            "type": "ping",
            "args": {"t": "é\n\u2028", "n": -1.5e3, "b": [True, None, False]},
        },
        ensure_ascii=data.draw(st.booleans()),
    ).encode(data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])))
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(Incomplete):
        decode_command(whole[:cut])


@given(st.binary(max_size=300))
def test_any_bytes_are_a_command_or_a_stated_error(raw: bytes) -> None:
    with contextlib.suppress(InvalidCommand, Incomplete):
        decode_command(raw)


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=3), st.text(max_size=20))
def test_a_response_survives_the_wire(meta: dict[str, Any], timestamp: str) -> None:
    try:
        timestamp.encode()
    except UnicodeEncodeError:
        return
    response = Response(
        id=str(uuid.uuid4()), status=Status.COMPLETED, timestamp=timestamp, meta=meta
    )
    assert msgspec.json.decode(codec.encode(response), type=Response) == response


def test_a_raw_result_stands_in_the_response_as_it_is() -> None:
    raw = encode_result({"a": 1}, limit=100)
    data = codec.encode(Response(id=ID, status=Status.COMPLETED, timestamp="t", result=raw))
    assert json.loads(data)["result"] == {"a": 1}


def test_a_torn_claim_reads_as_none() -> None:
    assert codec.decode_claim(b"") is None
    assert codec.decode_claim(b'{"owner":') is None
    assert codec.decode_claim(b"\0" * 64) is None


def test_schemas_are_made_from_the_models() -> None:
    from fileipc.protocol.models import command_schema, response_schema

    assert "ttl" in json.dumps(command_schema())
    assert "outcome" in json.dumps(response_schema())
    msgspec.json.encode(command_schema())

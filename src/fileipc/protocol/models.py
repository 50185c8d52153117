"""What travels through a root: commands, responses, claims, status; as frozen structs.

The JSON Schemas that `fileipc schema` prints are made from these types.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ..errors import CommandFailure, Outcome

PROTOCOL_VERSION = 1


class Status(StrEnum):
    """The three words a response may carry."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class Command(Struct, frozen=True, kw_only=True):
    """One request for work, as it stands in `commands/{id}.json`."""

    id: Annotated[str, Meta(description="A UUID, with an optional short prefix such as `cmd-`.")]
    type: Annotated[
        str,
        Meta(
            description="The handler: ping, analyze_file, ...",
            min_length=1,
            extra_json_schema={"maxLength": 200},
        ),
    ]
    args: Annotated[dict[str, Any], Meta(description="The handler's arguments.")] = {}
    timestamp: Annotated[
        str | float | None,
        Meta(
            description="When it was sent: ISO 8601 (no offset means UTC), or a number of seconds "
            "(milliseconds from 1e11 on) since 1970. Missing or in the future: its arrival."
        ),
    ] = None
    ttl: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Seconds for waiting and running together."),
    ] = None
    priority: Annotated[
        int, Meta(description="Higher goes first.", ge=-1_000_000, le=1_000_000)
    ] = 0
    meta: Annotated[
        dict[str, Any], Meta(description="Echoed in the response; traceparent goes to the logs.")
    ] = {}


class ErrorInfo(Struct, frozen=True, kw_only=True):
    """The `error` of a failed response."""

    code: Annotated[str, Meta(description="A stable lower-case word; see the error table.")]
    message: str
    outcome: Annotated[Outcome, Meta(description="Is it safe to send the command again?")]
    details: dict[str, Any] = {}


class Progress(Struct, frozen=True, kw_only=True):
    """How far a running command is."""

    current: float
    total: float | None = None
    message: str | None = None


class Response(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """The answer, as it stands in `responses/{id}.json`."""

    id: str
    type: str | None = None
    status: Status
    result: Any = None
    error: ErrorInfo | None = None
    timestamp: Annotated[str, Meta(description="When it was written: ISO 8601, UTC.")]
    duration_ms: Annotated[int, Meta(description="Milliseconds of running.", ge=0)] = 0
    queue_ms: Annotated[int, Meta(description="Milliseconds of waiting.", ge=0)] = 0
    attempt: Annotated[int, Meta(description="1 for the first run; 0: it never ran.", ge=0)] = 0
    progress: Progress | None = None
    warnings: list[str] = []
    meta: dict[str, Any] = {}

    @property
    def final(self) -> bool:
        return self.status is not Status.RUNNING


class Claim(Struct, frozen=True, kw_only=True):
    """Who runs a command: the content of `locks/{id}.lock`.

    Written before the handler starts. Whoever holds the daemon lock of the root owns every
    claim in it, so a claim of another `owner` is the trace of a daemon that died.
    """

    owner: str
    pid: int
    host: str
    attempt: int
    claimed_at: str
    type: str = ""
    file: str = ""


class RootStatus(Struct, frozen=True, kw_only=True):
    """The heartbeat in `status.json`; `state` is serving, degraded, stopping or stopped."""

    state: str
    reason: str | None = None
    instance: str
    pid: int
    pid_started: float | None = None
    host: str
    boot_id: str | None = None
    version: str
    protocol: int = PROTOCOL_VERSION
    started_at: str
    timestamp: str
    interval: Annotated[float, Meta(description="Seconds until the next heartbeat is due.")]
    waiting: int = 0
    running: int = 0
    completed: int = 0
    failed: int = 0
    rejected: int = 0
    oldest_age: Annotated[float, Meta(description="Seconds the oldest command waits.")] = 0.0
    workers: int = 0
    observer: str = "inotify"
    types: list[str] = []


def error_info(failure: CommandFailure) -> ErrorInfo:
    """The wire form of a failure."""
    return ErrorInfo(
        code=failure.code,
        message=failure.message,
        outcome=failure.actual_outcome,
        details=failure.details,
    )


def command_schema() -> dict[str, Any]:
    return _schema(Command, "command")


def response_schema() -> dict[str, Any]:
    return _schema(Response, "response")


def _schema(kind: type[Struct], name: str) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"fileipc {name}",
        **msgspec.json.schema(kind),
    }

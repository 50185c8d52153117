"""What a client decides: pure, so that a blocking and an asynchronous client can share it.

Answers are plain dictionaries here (`parse_answer`); `Client` makes `Response`s of them. Times
of `Patience` are on the monotonic clock.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ..errors import InvalidCommand, Outcome
from ..protocol.names import RESULT_SUFFIX, SUFFIX, is_safe_stem, parse_id

DEFAULT_TTL = 300.0
MARGIN = 5.0  # seconds past the ttl in which the daemon kills, and says so
GRACE = 5.0  # seconds a daemon may be away: a restart takes one or two
BACKOFF = (0.2, 0.5, 1.0)
PROMPT = (*[0.0005] * 6, *[0.001] * 7, *[0.002] * 5, *[0.005] * 4)
"""Pauses of the first looks, 40 ms in all: most answers are there before a watch would pay.

(Setting one up is cheap; the kernel takes some 10 ms to close it, at the process's end too.)
"""

_FINAL = ("completed", "failed")
_PRIORITIES = 1_000_000
_WORDS = frozenset(Outcome)


class Verdict(StrEnum):
    """Why there is no point in waiting any longer."""

    TIMEOUT = "timeout"
    NO_DAEMON = "no_daemon"
    GONE = "gone"


class Fate(StrEnum):
    """What is known of a command that got no final answer."""

    WAITING = "it still waits and may run yet"
    RUNNING = "it was running and may have effects"
    UNREADABLE = "its response cannot be read"
    UNSEEN = "nothing is to be seen of it"
    WITHDRAWN = "it had not started and was withdrawn"


class Patience:
    """How long to wait, how often to look, and when waiting has no point any more."""

    def __init__(self, now: float, timeout: float, *, grace: float = GRACE) -> None:
        self.timeout = timeout
        self.deadline = now + timeout
        self._grace = grace
        self._step = 0
        self._next_check = now + BACKOFF[0]
        self._unserved_since: float | None = None
        self._gone_since: float | None = None

    def pause(self, now: float) -> float:
        """Seconds until the next look, never past the deadline."""
        step = BACKOFF[min(self._step, len(BACKOFF) - 1)]
        self._step += 1
        return max(0.0, min(step, self.deadline - now))

    def due(self, now: float) -> bool:
        """Whether it is time to ask about the daemon and the command's traces again."""
        return now >= min(self._next_check, self.deadline)

    def judge(self, now: float, *, served: bool, traces: bool) -> Verdict | None:
        """Decide after a look that found no final answer.

        Args:
            served: some daemon holds the root.
            traces: a command, a claim or an unfinished response of this id is there.
        """
        self._next_check = now + BACKOFF[0]
        self._gone_since = None if traces else _since(self._gone_since, now)
        self._unserved_since = None if served else _since(self._unserved_since, now)
        if self._gone_since is not None and now - self._gone_since >= self._grace:
            return Verdict.GONE
        if self._unserved_since is not None and now - self._unserved_since >= self._grace:
            return Verdict.NO_DAEMON
        return Verdict.TIMEOUT if now >= self.deadline else None


def _since(moment: float | None, now: float) -> float:
    return now if moment is None else moment


def new_id() -> str:
    """A random UUID (version 4)."""
    # The uuid module costs a `fileipc send` more than the rest of its work on the command.
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def command_id(text: str) -> str:
    """The canonical form of an id to send under; InvalidCommand where it is not a UUID."""
    if not isinstance(text, str):
        raise InvalidCommand(f"id must be a text, not {_shown(text)}")
    found = parse_id(text)
    if found is None:
        raise InvalidCommand(
            f"id {text[:80]!r} is not a UUID; use one such as "
            "3f2504e0-4f89-41d3-9a0c-0305e82c3301, or leave it out"
        )
    return found


def answer_id(text: str) -> str:
    """The name an answer lies under: an id, or the stem of a file that was refused."""
    found = parse_id(text) or (text if is_safe_stem(text) else None)
    if found is None:
        raise InvalidCommand(f"{text[:80]!r} is not the id of a command")
    return found


def encode_command(
    type: str,
    args: Mapping[str, Any] | None,
    *,
    id: str,
    now: float,
    ttl: float | None = None,
    priority: int = 0,
    meta: Mapping[str, Any] | None = None,
) -> bytes:
    """A command as strict JSON; `now` is seconds since 1970, `ttl` seconds.

    Dates, UUIDs, paths, structs and dataclasses in `args` and `meta` become what JSON has.

    Raises:
        InvalidCommand: a value has no JSON form, or a field is out of its range.
    """
    if not isinstance(type, str) or not type:
        raise InvalidCommand("type must be a text such as ping")
    if ttl is not None and not (_is_number(ttl) and 0 < ttl < float("inf")):
        raise InvalidCommand(f"ttl must be a positive number of seconds, not {_shown(ttl)}")
    whole = isinstance(priority, int) and _is_number(priority)
    if not (whole and -_PRIORITIES <= priority <= _PRIORITIES):
        raise InvalidCommand(
            f"priority must be a whole number from -{_PRIORITIES} to {_PRIORITIES}, "
            f"not {_shown(priority)}"
        )
    for name, value in (("args", args), ("meta", meta)):
        if value is not None and not isinstance(value, Mapping):
            raise InvalidCommand(f"{name} must be a dictionary or None, not {_shown(value)}")
    command: dict[str, Any] = {
        "id": id,
        "type": type,
        "args": dict(args or {}),
        "timestamp": timestamp(now),
    }
    if ttl is not None:
        command["ttl"] = ttl
    if priority:
        command["priority"] = priority
    if meta:
        command["meta"] = dict(meta)
    try:
        return json.dumps(
            command, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidCommand(f"the command has no JSON form: {error}") from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return repr(value)[:80]


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    import msgspec

    return msgspec.to_builtins(value)


def timestamp(moment: float) -> str:
    """ISO 8601 in UTC with milliseconds."""
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    return f"{text}.{int(moment % 1 * 1000):03d}Z"


def parse_answer(raw: bytes, name: str) -> dict[str, Any] | None:
    """A response as a dictionary; None where these bytes are not one of this id (yet).

    Generous: an `error` that is a plain text, or lacks a code, becomes an error object.
    """
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("status") not in (*_FINAL, "running"):
        return None
    if str(found.get("id")).lower() != name.lower():
        return None
    found["error"] = _error(found.get("error")) if found["status"] == "failed" else None
    found.setdefault("result", None)
    return found


def _error(found: Any) -> dict[str, Any]:
    error = found if isinstance(found, dict) else {}
    code, message, outcome = (error.get(key) for key in ("code", "message", "outcome"))
    details = error.get("details")
    if not isinstance(message, str):
        message = found if isinstance(found, str) else "no reason was given"
    return {
        "code": code if isinstance(code, str) and code else "handler_error",
        "message": message,
        "outcome": outcome
        if isinstance(outcome, str) and outcome in _WORDS
        else Outcome.UNKNOWN.value,
        "details": details if isinstance(details, dict) else {},
    }


def is_final(answer: Mapping[str, Any]) -> bool:
    return answer["status"] in _FINAL


def is_preview(result: Any) -> bool:
    """Whether a result may be the preview of a larger one that lies beside the response."""
    if not isinstance(result, dict) or result.get("truncated") is not True:
        return False
    path = result.get("path")
    return isinstance(path, str) and path.endswith(f"{RESULT_SUFFIX}{SUFFIX}")


def no_daemon(root: str) -> str:
    return f"no daemon serves {root}; start one with: fileipc run --root {root}"


def explain(
    verdict: Verdict, name: str, fate: Fate, *, root: str, state: str, waited: float
) -> str:
    """Why a wait of `waited` seconds ended without an answer; `state` is the daemon's, in words."""
    if verdict is Verdict.GONE:
        return (
            f"there is no command {name} in {root}: it was answered and read, withdrawn, "
            "or never sent here"
        )
    if verdict is Verdict.NO_DAEMON:
        return f"the daemon of {root} went away without an answer to {name}; {fate}"
    return f"no answer to {name} within {round(waited, 1):g} s; {state}; {fate}"

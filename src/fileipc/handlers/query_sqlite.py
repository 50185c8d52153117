"""`run_query` on SQLite, in its own process.

The process is what stops a query that never ends; the engine itself refuses what the
configuration does not allow.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import math
import os
import re
import sqlite3
import stat
import urllib.parse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from ..errors import Forbidden, InvalidArgs, NotFound, Outcome, QueryFailed
from .confine import Border, shown
from .query_guard import Guard

MAX_BYTES = 8 * 1024 * 1024  # of all rows of a result, as JSON
_REFUSALS = frozenset({sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})
_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_STORAGE = {int: "integer", float: "real", str: "text", bytes: "blob", type(None): "null"}
_INT64 = 2**63
# One step through SQL: what is text, a name or a comment is passed over as a whole.
_STEP = re.compile(
    r"""(?P<nothing>[ \t\n\f\r;]+ | --[^\n]* | /\*.*?(?:\*/|\Z))
      | '[^']*'? | "[^"]*"? | `[^`]*`? | \[[^\]]*\]? | [^ \t\n\f\r;'"`\[/-]+ | .""",
    re.DOTALL | re.VERBOSE,
)


def run(
    *,
    name: str,
    file: str,
    query: str,
    params: list[Any] | dict[str, Any],
    max_rows: int,
    write: bool,
    busy: float,
    project: str,
    root: str,
) -> dict[str, Any]:
    """Run one statement.

    Returns `{columns: [{name, type}], rows: [[...]], row_count, truncated, truncated_by}`;
    a writing database adds `changes` (rows). `type` is what the returned values of a column are:
    "integer", "real", "text" or "blob" (nulls aside), "any" where they differ, "null" where
    there is none. `truncated_by` is "rows", "bytes" (8 MiB) or null.

    Values: integers as they are, a blob as `{"base64": ...}`, the infinities as the texts
    "Infinity" and "-Infinity", text that is not UTF-8 with U+FFFD for what is broken (and
    `lossy: true` in the result). A parameter may be a blob in the same form.

    Raises:
        NotFound, Forbidden: of the file, or what the database may not do (the reason is told).
        InvalidArgs: parameters that do not fit; no statement, or several.
        QueryFailed: the engine's own message; outcome `not_started` where it was locked.
    """
    path = _database(name, file, Border(project, root))
    bound = _bound(params)
    guard = Guard(write=write)
    mode = "rw" if write else "ro"
    uri = f"file:{urllib.parse.quote(path)}?mode={mode}"
    text = _Text()
    with _told(name, guard, busy), contextlib.closing(_connect(uri, busy)) as connection:
        connection.text_factory = text
        guard.limit(connection)
        if write:
            # Closing the connection without COMMIT rolls back.
            connection.execute("BEGIN")
        before = connection.total_changes
        with (
            guard.watching(connection),
            contextlib.closing(_execute(connection, _trimmed(query), bound)) as cursor,
        ):
            result = _rows(cursor, max_rows)
        if write:
            connection.execute("COMMIT")
            result["changes"] = connection.total_changes - before
        elif not result["columns"]:
            raise InvalidArgs("the query holds no statement")
    if text.lossy:
        result["lossy"] = True
    return result


def _connect(uri: str, busy: float) -> sqlite3.Connection:
    # No isolation level: the module would otherwise begin transactions of its own.
    return sqlite3.connect(uri, uri=True, timeout=busy, isolation_level=None)


def _database(name: str, file: str, border: Border) -> str:
    """The real path of the database. A relative one stays inside the project, whatever links
    the project holds; an absolute one is the configuration's own word."""
    if os.path.isabs(file):
        path = os.path.realpath(file)
    else:
        try:
            path = border.absolute(border.resolve(file))
        except Forbidden as error:
            raise Forbidden(f"database {name}: {error.message}") from None
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if isinstance(error, PermissionError):
            raise Forbidden(f"database {name}: the daemon may not read {shown(file)}") from None
        raise NotFound(f"database {name}: no file {shown(file)}") from None
    if not stat.S_ISREG(mode):
        raise Forbidden(f"database {name}: not a regular file: {shown(file)}")
    return path


def _bound(params: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any]:
    if isinstance(params, dict):
        return {key: _value(f"params.{key}", value) for key, value in params.items()}
    return [_value(f"params[{number}]", value) for number, value in enumerate(params)]


def _value(place: str, value: Any) -> Any:
    if isinstance(value, dict) and list(value) == ["base64"] and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error:
            raise InvalidArgs(f"{shown(place)}: not base64") from None
    if isinstance(value, list | dict):
        kind = "a list" if isinstance(value, list) else "an object"
        raise InvalidArgs(
            f"{shown(place)} is {kind}; a value is text, a number, true, false, null or "
            '{"base64": ...}'
        )
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise InvalidArgs(f"{shown(place)}: SQLite integers have 64 bits")
    return value


def _trimmed(query: str) -> str:
    """The query without the empty statements (`;`) around it, which the module would count."""
    if ";" not in query:
        return query
    start, end = len(query), 0
    for step in _STEP.finditer(query):
        if step["nothing"] is None:
            start, end = min(start, step.start()), step.end()
    return query[start:end]


def _execute(
    connection: sqlite3.Connection, query: str, params: list[Any] | dict[str, Any]
) -> sqlite3.Cursor:
    with warnings.catch_warnings():
        # A list for named placeholders: deprecated in Python, harmless here.
        warnings.simplefilter("ignore", DeprecationWarning)
        return connection.execute(query, params)


@contextmanager
def _told(name: str, guard: Guard, busy: float) -> Iterator[None]:
    """Turn the engine's errors into failures that say what to do."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.Warning) as error:
        # Python's own: the number and kind of parameters, more than one statement.
        raise InvalidArgs(f"{error}", details={"database": name}) from None
    except MemoryError:
        raise QueryFailed(
            "the query needs more memory than the engine may take", details={"database": name}
        ) from None
    except UnicodeEncodeError:
        raise InvalidArgs("a parameter holds a lone surrogate") from None
    except UnicodeDecodeError as error:
        raise QueryFailed(f"a name is not UTF-8: {error}", details={"database": name}) from None
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) or 0
        details = {"database": name, "sqlite": getattr(error, "sqlite_errorname", None)}
        if guard.refused is not None or code & 0xFF in _REFUSALS:
            what = guard.refused or str(error)
            raise Forbidden(f"database {name}: {what}", details=details) from None
        if code & 0xFF in _LOCKED:
            raise QueryFailed(
                f"database is locked by another program; waited {busy:g} s",
                details=details,
                outcome=Outcome.NOT_STARTED,
            ) from None
        raise QueryFailed(str(error), details=details) from None


class _Text:
    """Decodes texts; notes whether any was not UTF-8."""

    def __init__(self) -> None:
        self.lossy = False

    def __call__(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.lossy = True
            return raw.decode("utf-8", "replace")


def _rows(cursor: sqlite3.Cursor, max_rows: int) -> dict[str, Any]:
    names = [column[0] for column in cursor.description or ()]
    kinds: list[set[str]] = [set() for _ in names]
    rows: list[list[Any]] = []
    left = MAX_BYTES
    cut: str | None = None
    for row in cursor:
        if len(rows) >= max_rows:
            cut = "rows"
            break
        values = [_plain(value) for value in row]
        left -= len(msgspec.json.encode(values)) + 1
        if left < 0:
            cut = "bytes"
            break
        for kind, value in zip(kinds, row, strict=True):
            kind.add(_STORAGE[type(value)])
        rows.append(values)
    return {
        "columns": [
            {"name": name, "type": _kind(kind)} for name, kind in zip(names, kinds, strict=True)
        ],
        "rows": rows,
        "row_count": len(rows),
        "truncated": cut is not None,
        "truncated_by": cut,
    }


def _kind(seen: set[str]) -> str:
    known = seen - {"null"}
    return known.pop() if len(known) == 1 else "any" if known else "null"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value

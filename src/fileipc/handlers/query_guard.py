"""What a SQLite connection may do here: told to the engine, which asks before every statement."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

_READING = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_NEVER = frozenset(
    {
        sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_DETACH,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_SAVEPOINT,
    }
)
_SPECIAL = frozenset({sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA})
_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"})
_SCHEMA_TABLES = frozenset({"sqlite_master", "sqlite_schema", "sqlite_temp_master"})
# Those that only tell, with an argument and without.
_TELLING_OF = frozenset(
    {
        "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo",
        "foreign_key_list", "foreign_key_check", "integrity_check", "quick_check",
    }
)  # fmt: skip
_TELLING = _TELLING_OF | frozenset(
    {
        "database_list", "collation_list", "function_list", "module_list", "pragma_list",
        "compile_options", "data_version", "encoding", "page_size", "page_count",
        "freelist_count", "user_version", "application_id", "schema_version", "journal_mode",
        "foreign_keys", "auto_vacuum",
    }
)  # fmt: skip
_NAMES = {
    getattr(sqlite3, name): name.removeprefix("SQLITE_").replace("_", " ")
    for name in (
        "SQLITE_ALTER_TABLE", "SQLITE_ANALYZE", "SQLITE_ATTACH", "SQLITE_CREATE_INDEX",
        "SQLITE_CREATE_TABLE", "SQLITE_CREATE_TEMP_INDEX", "SQLITE_CREATE_TEMP_TABLE",
        "SQLITE_CREATE_TEMP_TRIGGER", "SQLITE_CREATE_TEMP_VIEW", "SQLITE_CREATE_TRIGGER",
        "SQLITE_CREATE_VIEW", "SQLITE_CREATE_VTABLE", "SQLITE_DELETE", "SQLITE_DETACH",
        "SQLITE_DROP_INDEX", "SQLITE_DROP_TABLE", "SQLITE_DROP_TEMP_INDEX",
        "SQLITE_DROP_TEMP_TABLE", "SQLITE_DROP_TEMP_TRIGGER", "SQLITE_DROP_TEMP_VIEW",
        "SQLITE_DROP_TRIGGER", "SQLITE_DROP_VIEW", "SQLITE_DROP_VTABLE", "SQLITE_FUNCTION",
        "SQLITE_INSERT", "SQLITE_PRAGMA", "SQLITE_REINDEX", "SQLITE_SAVEPOINT",
        "SQLITE_TRANSACTION", "SQLITE_UPDATE",
    )
}  # fmt: skip

MAX_VALUE = 16 * 1024 * 1024  # bytes of one text or blob, on the way as well
MAX_HEAP = 256 * 1024 * 1024  # bytes of memory the engine may take
_LIMITS = (
    (sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1024 * 1024),
    (sqlite3.SQLITE_LIMIT_COLUMN, 2000),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 500),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 200),
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 50),
    (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
)


class Guard:
    """The rights of one connection; `refused` says why an action was denied, in words."""

    def __init__(self, *, write: bool) -> None:
        self.refused: str | None = None
        self._write = write

    def limit(self, connection: sqlite3.Connection) -> None:
        """Set what bounds the engine, before anything of the asker's is looked at."""
        for limit, value in _LIMITS:
            connection.setlimit(limit, value)
        connection.execute("PRAGMA trusted_schema=OFF")
        # Sorting in memory, and the memory bounded: otherwise a cross join fills the disk.
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute(f"PRAGMA hard_heap_limit={MAX_HEAP}")
        if not self._write:
            connection.execute("PRAGMA query_only=ON")
            _connect_virtual_tables(connection)

    @contextlib.contextmanager
    def watching(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Have the engine ask before each action of a statement."""
        connection.set_authorizer(self._authorize)
        yield
        connection.set_authorizer(None)

    def _authorize(
        self, action: int, first: str | None, second: str | None, *_where: str | None
    ) -> int:
        if self._allowed(action, first, second):
            return sqlite3.SQLITE_OK
        if self.refused is None:
            what = second if action == sqlite3.SQLITE_FUNCTION else first
            name = _NAMES.get(action, f"action {action}")
            writing = not self._write and action not in _NEVER and action not in _SPECIAL
            rule = "the database is read-only here" if writing else "it is never allowed here"
            self.refused = (
                f"{name} {what} is refused: {rule}" if what else f"{name} is refused: {rule}"
            )
        return sqlite3.SQLITE_DENY

    def _allowed(self, action: int, first: str | None, second: str | None) -> bool:
        if action == sqlite3.SQLITE_FUNCTION:
            return (second or "").lower() not in _FUNCTIONS
        if action == sqlite3.SQLITE_PRAGMA:
            return (first or "").lower() in (_TELLING if second is None else _TELLING_OF)
        if action in _READING:
            return True
        if action == sqlite3.SQLITE_UPDATE and first in _SCHEMA_TABLES:
            # Asked for when a virtual table is connected, even for reading; a statement that
            # says UPDATE sqlite_master is refused by the engine in any case.
            return True
        return self._write and action not in _NEVER


def _connect_virtual_tables(connection: sqlite3.Connection) -> None:
    # An R-tree prepares its own INSERT and DELETE when it is first used, even for reading; the
    # authorizer would refuse them. `query_only` is on already, so nothing can be written here.
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0 LIMIT 200"
    with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
        for (name,) in connection.execute(tables).fetchall():
            quoted = str(name).replace('"', '""')
            with contextlib.suppress(sqlite3.Error):
                connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0')  # noqa: S608 (quoted)

"""`run_query {query, params, database, max_rows}`: SQL on a database of the configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from msgspec import Meta, Struct

from ..config.settings import DatabaseSettings
from ..errors import InvalidArgs, NotFound
from ..executors.port import Isolation, ProcessCall
from ..protocol.args import validate
from .confine import shown
from .port import Scope
from .program import check_text

DEFAULT_DATABASE = "default"
_SQLITE = "sqlite"
_MEMORY = 1024 * 1024 * 1024  # bytes of address space for one call
_BUSY = 5.0  # seconds that a locked database is waited for, at most


class QueryArgs(Struct, frozen=True, kw_only=True):
    """`params`: a list for `?`, an object for `:name`. `max_rows`: at most what the
    configuration of the database says, which is also the default."""

    query: Annotated[str, Meta(min_length=1)]
    params: list[Any] | dict[str, Any] = []
    database: str = DEFAULT_DATABASE
    max_rows: Annotated[int, Meta(ge=1)] | None = None


@dataclass(frozen=True, slots=True)
class QueryHandler:
    """Answers as `query_sqlite.run` says.

    Time limit and idempotence are those of the database that a command names: `for_command`
    gives the handler as it is for that one.
    """

    databases: Mapping[str, DatabaseSettings]
    name: str = "run_query"
    isolation: Isolation = Isolation.PROCESS
    idempotent: bool = True
    timeout: float = 30.0

    def for_command(self, args: Mapping[str, Any]) -> QueryHandler:
        """The same handler with the limits of the database that `args` name."""
        name = args.get("database", args.get("target", DEFAULT_DATABASE))
        settings = self.databases.get(name) if isinstance(name, str) else None
        if settings is None:
            return self
        return replace(self, timeout=settings.timeout, idempotent=not settings.write)

    def prepare(self, args: Mapping[str, Any], scope: Scope) -> ProcessCall:
        wanted = validate(args, QueryArgs, alias="database")
        check_text("query", wanted.query)
        settings = self._settings(wanted.database)
        rows = settings.max_rows
        return ProcessCall(
            f"{__package__}.query_sqlite:run",
            {
                "name": wanted.database,
                "file": _sqlite_file(wanted.database, _url(wanted.database, settings)),
                "query": wanted.query,
                "params": wanted.params,
                "max_rows": rows if wanted.max_rows is None else min(rows, wanted.max_rows),
                "write": settings.write,
                "busy": min(_BUSY, settings.timeout / 2),
                "project": scope.project,
                "root": scope.root,
            },
            memory=_MEMORY,
        )

    def _settings(self, name: str) -> DatabaseSettings:
        settings = self.databases.get(name)
        if settings is None:
            known = ", ".join(sorted(self.databases)) or "none"
            raise NotFound(
                f"no database {shown(name)} in the configuration; configured are: {known}",
                details={"configured": sorted(self.databases)},
            )
        return settings


def _url(name: str, settings: DatabaseSettings) -> str:
    if settings.url is not None:
        return settings.url
    variable = settings.url_env or ""
    url = os.environ.get(variable)
    if not url:
        raise NotFound(f"database {name}: the environment variable {variable} is not set")
    return url


def _sqlite_file(name: str, url: str) -> str:
    """The file of `sqlite:///relative` or `sqlite:////absolute`.

    No message shows the URL: it may hold a password.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or not scheme:
        raise NotFound(f"database {name}: its URL in the configuration is not a URL")
    if scheme != _SQLITE:
        raise NotFound(
            f"database {name}: {shown(scheme)} needs an extra that is not part of this version; "
            "SQLite is (sqlite:///path)"
        )
    if not rest.startswith("/") or len(rest) < 2 or rest == "/:memory:":
        raise NotFound(f"database {name}: its URL names no file (sqlite:///path)")
    if "?" in rest:
        raise InvalidArgs(f"database {name}: its URL has options, and none are known")
    return rest[1:]

"""What can be set. The README's reference, the schema and the checks are made from here.

Durations are seconds, sizes are bytes: the loader has translated `5m` and `1MiB` already.
Paths are absolute, but for those that are relative to the project on purpose (scripts,
SQLite files, exec programs).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

MiB = 1024 * 1024


class Durability(StrEnum):
    PROCESS = "process"
    POWER = "power"


class Mode(StrEnum):
    PRIVATE = "private"
    GROUP = "group"


class ObserverKind(StrEnum):
    AUTO = "auto"
    INOTIFY = "inotify"
    POLLING = "polling"


BUILT_IN = ("ping", "cancel", "analyze_file", "search_pattern", "run_query", "execute_script")
RESERVED = (*BUILT_IN, "custom", "pipeline")  # names that no configured handler may take
SAFE_TYPES = ("ping", "cancel", "analyze_file", "search_pattern", "run_query")


class ScriptSettings(Struct, frozen=True, kw_only=True):
    """`allow`: patterns of paths relative to the project; empty: no scripts at all."""

    allow: tuple[str, ...] = ()
    timeout: float = 600.0
    env: tuple[str, ...] = ("PATH", "LANG", "LC_ALL", "TZ", "HOME")
    memory: int | None = None
    output: int = 256 * 1024


class DatabaseSettings(Struct, frozen=True, kw_only=True):
    """Exactly one of `url` and `url_env` (the name of an environment variable)."""

    url: str | None = None
    url_env: str | None = None
    write: bool = False
    timeout: float = 30.0
    max_rows: int = 1000


class HandlerSettings(Struct, frozen=True, kw_only=True):
    """Exactly one of `python` (module:function) and `exec` (program and arguments)."""

    python: str | None = None
    exec: tuple[str, ...] | None = None
    timeout: float = 300.0
    idempotent: bool = False
    env: tuple[str, ...] = ("PATH", "LANG", "LC_ALL", "TZ", "HOME")
    memory: int | None = None


class Retention(Struct, frozen=True, kw_only=True):
    """How long what is finished stays."""

    responses: float = 3600.0
    archive: float = 7 * 86400.0
    rejected: float = 30 * 86400.0
    temporaries: float = 3600.0


class Limits(Struct, frozen=True, kw_only=True):
    command: int = MiB
    response: int = 16 * MiB
    depth: int = 64
    inline: int = 256 * 1024


class RootSettings(Struct, frozen=True, kw_only=True):
    """Everything about one root."""

    path: str
    name: str
    project: str
    project_config: bool = False
    workers: int = 4
    ttl: float = 300.0
    stale_after: float = 3600.0
    settle: float = 5.0
    durability: Durability = Durability.PROCESS
    mode: Mode = Mode.PRIVATE
    allow: tuple[str, ...] | None = None
    """Types that may be asked for; None: the safe built-in ones and every configured handler."""
    allow_users: tuple[str, ...] = ()
    allow_groups: tuple[str, ...] = ()
    scripts: ScriptSettings = field(default_factory=ScriptSettings)
    databases: dict[str, DatabaseSettings] = field(default_factory=dict)
    handlers: dict[str, HandlerSettings] = field(default_factory=dict)
    retention: Retention = field(default_factory=Retention)
    limits: Limits = field(default_factory=Limits)
    max_pending: int = 100_000
    max_attempts: int = 3
    rescan: float = 30.0
    observer: ObserverKind = ObserverKind.AUTO


class LogSettings(Struct, frozen=True, kw_only=True):
    """The supervisor's own log; `file` None: standard error.

    `max_size`, `max_age` and `keep` also rule the logs in each root.
    """

    level: str = "info"
    format: str = "auto"
    file: str | None = None
    max_size: int = 20 * MiB
    max_age: float = 7 * 86400.0
    keep: int = 5


class Settings(Struct, frozen=True, kw_only=True):
    """One daemon."""

    version: int = 1
    roots: tuple[RootSettings, ...] = ()
    log: LogSettings = field(default_factory=LogSettings)
    stop_timeout: float = 30.0
    source: str | None = None
    """The file it was read from; None: built-in defaults."""

"""Every key of the configuration: the one table behind checks, schema, `show` and reference."""

from __future__ import annotations

from enum import StrEnum

from .kinds import Choice, Duration, Flag, Integer, ListOf, OrNull, Size, Version
from .sections import Key, Layer, MapOf, Section
from .settings import (
    BUILT_IN,
    RESERVED,
    DatabaseSettings,
    Durability,
    HandlerSettings,
    Limits,
    LogSettings,
    Mode,
    ObserverKind,
    Retention,
    RootSettings,
    ScriptSettings,
    Settings,
)
from .texts import GROUP, USER, Path, Text, Url

VERSION = 1
KiB, MiB, GiB = 1024, 1024**2, 1024**3
DAY = 86400.0
YEARS = 3650 * DAY

MOMENT = Duration(0.1, 7 * DAY)  # how long one thing may run
AGE = Duration(1.0, YEARS)  # how long something stays
MEMORY = Size(16 * MiB, 16 * 1024 * GiB)
OUTPUT = Size(KiB, GiB)

TYPE_PATTERN = "[a-z][a-z0-9_-]{0,199}"  # no longer than the `type` of a command may be
TYPE_NAME = Text(
    "a type's name: lower-case letters, digits, _ and -, at most 200",
    TYPE_PATTERN,
    lambda text: text.strip().lower().replace(" ", "_").replace(".", "_"),
)
VARIABLE = Text("an environment variable's name, without its value", "[A-Za-z_][A-Za-z0-9_]*")
IN_PROJECT = Text(
    "a pattern relative to the project, without ..", r"(?![/~])(?!(?:.*/)?\.\.(?:/|$)).+"
)
PYTHON = Text(
    "module:function",
    r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*",
    lambda text: ":".join(text.removesuffix("()").rsplit(".", 1)),
)
ROOT_NAME = Text("a name of at most 64 characters without /", r"(?! )[^/]{1,64}(?<! )")
DATABASE_NAME = Text("letters, digits, ., _ and -", "[A-Za-z0-9_][A-Za-z0-9_.-]*")


def _choice(enum: type[StrEnum]) -> Choice:
    return Choice(tuple(str(member) for member in enum), enum)


ENVIRONMENT = Key(
    "env", ListOf(VARIABLE), "Environment variables that are passed on from the daemon."
)

SCRIPTS = Section(
    ScriptSettings,
    (
        Key(
            "allow",
            ListOf(IN_PROJECT),
            "Patterns of the scripts that may be run, relative to the project; empty: none.",
        ),
        Key("timeout", MOMENT, "A script that runs longer is killed."),
        ENVIRONMENT,
        Key("memory", OrNull(MEMORY), "Address space of a script.", default="no limit"),
        Key("output", OUTPUT, "How much of stdout and of stderr is kept, each."),
    ),
)

DATABASES = Section(
    DatabaseSettings,
    (
        Key("url", Url(), "Where it is; `sqlite:///PATH` is relative to the project."),
        Key("url_env", VARIABLE, "An environment variable of the daemon that holds the URL."),
        Key("write", Flag(), "Whether queries may change the database."),
        Key("timeout", MOMENT, "A query that runs longer is stopped."),
        Key("max_rows", Integer(1, 10_000_000), "The most rows that a query may ask for."),
    ),
    one_of=("url", "url_env"),
)

HANDLERS = Section(
    HandlerSettings,
    (
        Key("python", PYTHON, "A function, imported with the project folder on the path."),
        Key(
            "exec",
            ListOf(Text("text", ".*"), minimum=1),
            "A program and its arguments: arguments as JSON on stdin, result as JSON on stdout.",
        ),
        Key("timeout", MOMENT, "A call that runs longer is killed."),
        Key(
            "idempotent",
            Flag(),
            "Whether it may be run again after a crash of the daemon.",
        ),
        Key(
            "env",
            ENVIRONMENT.kind,
            "Environment variables that are passed on from the daemon; of exec handlers only.",
        ),
        Key("memory", OrNull(MEMORY), "Address space of the handler.", default="no limit"),
    ),
    one_of=("python", "exec"),
    belongs_to={"env": ("exec", "env is for exec handlers; take it away")},
    refused={"mcp": "mcp handlers are not supported by this version; use python or exec"},
)

RETENTION = Section(
    Retention,
    (
        Key("responses", AGE, "Responses that nobody took away."),
        Key("archive", AGE, "Commands and responses that are settled."),
        Key("rejected", AGE, "Files that were not commands, with their reasons."),
        Key("temporaries", AGE, "Unfinished files that writers left behind."),
    ),
)

LIMITS = Section(
    Limits,
    (
        Key("command", Size(KiB, GiB), "The largest command file."),
        Key("response", Size(KiB, 4 * GiB), "The largest result."),
        Key("depth", Integer(4, 512), "How deep the JSON of a command may be nested."),
        Key("inline", Size(KiB, GiB), "A larger result lies in a file beside its response."),
    ),
)

ROOT = Section(
    RootSettings,
    (
        Key(
            "path",
            Path("the path of an .ipc folder, or of the project folder that holds it"),
            "The `.ipc` folder; any other folder means the `.ipc` in it.",
            required=True,
        ),
        Key("name", ROOT_NAME, "How logs and status call the root.", "the project folder's name"),
        Key("project", Path(), "The folder that handlers work in.", "the parent of `.ipc`"),
        Key(
            "project_config",
            Flag(),
            "Also read `fileipc.yaml` beside `.ipc`, if it belongs to the daemon's user or root "
            "and nobody else may write it.",
        ),
        Key("workers", Integer(1, 256), "How many commands may run at once."),
        Key("ttl", Duration(0.1, YEARS), "For commands that name none."),
        Key("stale_after", Duration(1.0, YEARS), "What waited longer is not run any more."),
        Key(
            "settle",
            Duration(0.1, 3600.0),
            "A file that does not parse is judged once it has not changed for so long.",
        ),
        Key(
            "durability",
            _choice(Durability),
            "What files survive: the death of the `process`, or a cut of `power` (slower).",
        ),
        Key(
            "mode",
            _choice(Mode),
            "`private`: only the daemon's user may ask; `group`: also the folder's group.",
        ),
        Key(
            "allow",
            OrNull(ListOf(TYPE_NAME)),
            f"Types that may be asked for: {', '.join(BUILT_IN)} and handlers.",
            "the built-in ones (execute_script where scripts are allowed), and every handler",
        ),
        Key(
            "allow_users",
            ListOf(USER),
            "Owners of command files; `me` is the daemon's user, digits are a uid.",
            "the daemon's user and root",
        ),
        Key(
            "allow_groups",
            ListOf(GROUP),
            "Groups whose members may own command files, besides `allow_users`.",
            "none",
        ),
        Key("scripts", SCRIPTS, "What `execute_script` may run.", "no scripts"),
        Key(
            "databases",
            MapOf(DATABASE_NAME, DATABASES),
            "Databases of `run_query`, by name; `default` is taken when a query names none.",
            "none",
        ),
        Key(
            "handlers",
            MapOf(
                TYPE_NAME,
                HANDLERS,
                {name: f"{name} is a built-in type; choose another name" for name in RESERVED},
            ),
            "Types of your own, by name.",
            "none",
        ),
        Key("retention", RETENTION, "How long what is finished stays."),
        Key("limits", LIMITS, "What is too large."),
        Key(
            "max_pending",
            Integer(1, 10_000_000),
            "How many commands may wait; more are refused as `busy`.",
        ),
        Key(
            "max_attempts",
            Integer(1, 100),
            "How often an idempotent command is started before it is given up.",
        ),
        Key("rescan", Duration(0.1, 3600.0), "The folder is read this often, events or not."),
        Key(
            "observer",
            _choice(ObserverKind),
            "How new files are noticed; `auto` decides by the file system.",
        ),
    ),
)

DEFAULTS = ROOT.without(("path", "name", "project"), "belongs in a root, not in defaults")

_PROJECT_MAY_NOT = (
    "path",
    "name",
    "project",
    "project_config",
    "allow_users",
    "allow_groups",
    "mode",
    "durability",
)
_PROJECT_ROOT = ROOT.without(
    _PROJECT_MAY_NOT, "only the daemon's own configuration may set this, not a project's"
)
_VERSION_KEY = Key("version", Version(VERSION), "The version of the configuration's format.")
PROJECT = Section(RootSettings, (_VERSION_KEY, *_PROJECT_ROOT.keys), refused=_PROJECT_ROOT.refused)

LOG = Section(
    LogSettings,
    (
        Key("level", Choice(("debug", "info", "warning", "error")), "The least that is logged."),
        Key(
            "format",
            Choice(("auto", "json", "text")),
            "`auto`: text on a terminal, JSON lines elsewhere.",
        ),
        Key("file", OrNull(Path()), "The daemon's own log.", "standard error"),
        Key(
            "max_size",
            Size(64 * KiB, 1024 * GiB),
            "A log is rotated at this size; also the logs of each root.",
        ),
        Key("max_age", Duration(60.0, YEARS), "A log is rotated at this age; also in roots."),
        Key("keep", Integer(0, 1000), "How many rotated logs are kept; also in roots."),
    ),
)

TOP = Section(
    Settings,
    (
        _VERSION_KEY,
        Key("defaults", Layer(DEFAULTS), "Any key of a root but path, name and project."),
        Key(
            "roots",
            ListOf(Layer(ROOT), minimum=1),
            "The roots; lists and maps of a root replace those of `defaults`.",
            "required",
        ),
        Key("log", LOG, "The daemon's own log, and the rotation of every log."),
        Key(
            "stop_timeout",
            Duration(0.0, 86400.0),
            "How long running commands may go on when the daemon is stopped.",
        ),
    ),
    refused={key.name: "belongs in a root or in defaults" for key in ROOT.keys},
)

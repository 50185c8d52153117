"""What every subcommand shares: exit codes, and how it speaks.

Results go to stdout, everything else to stderr as `fileipc: message`. No click in here.
"""

from __future__ import annotations

import json
import os
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from ..errors import (
    CommandFailed,
    CommandGone,
    ConfigError,
    FileipcError,
    InvalidCommand,
    NoDaemon,
    NoRoot,
    RootError,
    RootMissing,
    WaitTimeout,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = "fileipc"


class ExitCode(IntEnum):
    """Those of sysexits.h and of timeout(1), where they have one."""

    COMPLETED = 0
    FAILED = 1  # the command was answered, and failed
    USAGE = 2
    NO_INPUT = 66  # no root, or no such command
    NO_DAEMON = 69
    IO_ERROR = 74
    NOT_NOW = 75  # the root is held by another daemon, or cannot be served at the moment
    CONFIG = 78
    TIMED_OUT = 124
    INTERRUPTED = 130
    BROKEN_PIPE = 141  # whoever read stdout is gone


_CODES: tuple[tuple[type[FileipcError], ExitCode], ...] = (
    (CommandGone, ExitCode.NO_INPUT),
    (WaitTimeout, ExitCode.TIMED_OUT),
    (NoDaemon, ExitCode.NO_DAEMON),
    (NoRoot, ExitCode.NO_INPUT),
    (RootMissing, ExitCode.NO_INPUT),
    (RootError, ExitCode.NOT_NOW),
    (ConfigError, ExitCode.CONFIG),
    (InvalidCommand, ExitCode.USAGE),
    (CommandFailed, ExitCode.FAILED),
)


class BadUsage(FileipcError):
    """The command line does not make sense; `command` is the subcommand's name."""

    def __init__(self, message: str, *, command: str) -> None:
        super().__init__(message)
        self.command = command


def guarded(action: Callable[[], int | None]) -> int:
    """Run a subcommand; errors become one message and an exit code, never a traceback."""
    try:
        code = action() or ExitCode.COMPLETED
        if sys.stdout is not None:
            sys.stdout.flush()
    except BadUsage as error:
        complain(str(error))
        complain(f"see: {PROGRAM} {error.command} --help")
        return ExitCode.USAGE
    except FileipcError as error:
        complain(str(error))
        return exit_code(error)
    except BrokenPipeError:
        # Python flushes stdout once more at its end: that must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.BROKEN_PIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror or error}")
        return ExitCode.IO_ERROR
    return code


def exit_code(error: FileipcError) -> ExitCode:
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)


def complain(message: str) -> None:
    """A message for people, on stderr."""
    if sys.stderr is not None:
        for line in message.splitlines() or [""]:
            print(f"{PROGRAM}: {visible(line)}", file=sys.stderr)


def visible(text: str) -> str:
    """Text from elsewhere without what could drive a terminal: control characters escaped."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode()
        for char in text
    )


def write(text: str) -> None:
    """One result on stdout, as UTF-8 whatever the locale."""
    if sys.stdout is None:
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def emit(value: Any, *, one_line: bool = False) -> None:
    """A JSON value on stdout: coloured on a terminal, indented elsewhere too, unless
    `one_line` asks for something that programs read line by line."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    text = to_text(value, one_line=one_line and not terminal)
    if not terminal or os.environ.get("NO_COLOR"):
        write(text)
        return
    from rich.console import Console
    from rich.highlighter import JSONHighlighter

    Console().print(JSONHighlighter()(text), soft_wrap=True)


def to_text(value: Any, *, one_line: bool = False) -> str:
    """JSON as it may be printed: everything readable as it is, control characters escaped."""
    if one_line:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    else:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    # JSON itself escapes only those below 0x20; these stand inside texts alone.
    return text if text.isascii() and "\x7f" not in text else text.translate(_CONTROLS)


_CONTROLS = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0x202E)}

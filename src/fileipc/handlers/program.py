"""What every handler that starts a program needs: safe arguments, a clean environment, a
program that can really be started, and an end told in words."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import CommandFailure, InvalidArgs, Outcome, ScriptFailed
from ..executors.port import ChildEnd
from .confine import shown

DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
MAX_ARGUMENT = 128 * 1024 - 1  # bytes: what Linux takes as one argument
MAX_ARGUMENTS = 1024 * 1024  # bytes of all of them; Linux takes a quarter of the stack limit
_SHEBANG = 256  # bytes the kernel reads of a script's first line
_TAIL = 4096


def clean_environment(names: Iterable[str]) -> dict[str, str]:
    """The named variables of the daemon's own environment, and a PATH in any case."""
    found = {name: os.environ[name] for name in names if name in os.environ}
    found.setdefault("PATH", DEFAULT_PATH)
    return found


def check_text(name: str, value: str) -> None:
    """Refuse text that no program can be given.

    Raises:
        InvalidArgs: a NUL character, or a lone surrogate.
    """
    if "\0" in value:
        raise InvalidArgs(f"{name} holds a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgs(f"{name} holds a lone surrogate") from None


def check_arguments(arguments: Iterable[str], *, name: str = "args") -> None:
    """Refuse arguments that the kernel would not take.

    Raises:
        InvalidArgs: names the argument; `details.reason` is "arguments_too_long" for its size.
    """
    total = 0
    for number, argument in enumerate(arguments):
        check_text(f"{name}[{number}]", argument)
        size = len(argument.encode())
        total += size + 1
        if size > MAX_ARGUMENT:
            raise _too_long(f"{name}[{number}]", size, MAX_ARGUMENT)
    if total > MAX_ARGUMENTS:
        raise _too_long(f"all of {name} together", total, MAX_ARGUMENTS)


def _too_long(what: str, size: int, limit: int) -> InvalidArgs:
    return InvalidArgs(
        f"argument too long: {what} has {size} bytes; the limit is {limit}",
        details={"reason": "arguments_too_long", "bytes": size, "limit": limit},
    )


def check_interpreter(head: bytes, script: str, path: str) -> None:
    """See that a script's first line names a program that can be started.

    Args:
        head: the beginning of the file.
        path: the PATH the script will have (for `#!/usr/bin/env NAME`).

    Raises:
        ScriptFailed: outcome `not_started`; `details.reason` is "bad_format" or
            "bad_interpreter".
    """
    if head.startswith(b"\x7fELF"):
        return
    if not head.startswith(b"#!"):
        raise not_started(
            f"{script} has no interpreter line: its first line must be such as #!/bin/sh",
            reason="bad_format",
        )
    line, newline, _ = head[2:_SHEBANG].partition(b"\n")
    if not newline and len(head) >= _SHEBANG:
        raise _bad(f"the first line of {script} is longer than {_SHEBANG} bytes")
    if line.endswith(b"\r"):
        raise _bad(
            f"the first line of {script} ends with CR LF, so the system looks for an interpreter "
            "whose name ends with a carriage return; save the script with LF line ends"
        )
    words = os.fsdecode(line).split()
    if not words:
        raise _bad(f"the first line of {script} names no interpreter")
    interpreter = words[0]
    if not interpreter.startswith("/"):
        raise _bad(f"the interpreter of {script} is not an absolute path: {shown(interpreter)}")
    if not os.path.isfile(interpreter) or not os.access(interpreter, os.X_OK):
        raise _bad(f"the interpreter of {script} is not a program: {shown(interpreter)}")
    if os.path.basename(interpreter) == "env":
        program = next((word for word in words[1:] if _names_program(word)), None)
        if program is None:
            raise _bad(f"the first line of {script} names no program for env")
        if shutil.which(program, path=path) is None:
            raise _bad(f"the interpreter of {script} is not in PATH: {shown(program)}")


def find_program(program: str, project: str, path: str) -> str:
    """The absolute path of a configured program.

    With a "/" in it, it is relative to the project; without, it is looked up in `path`.

    Raises:
        ScriptFailed: outcome `not_started`; `details.reason` is "not_found" or
            "not_executable".
    """
    if "/" not in program:
        found = shutil.which(program, path=path)
        if found is None:
            raise not_started(f"{shown(program)} is not in PATH", reason="not_found")
        return os.path.abspath(found)
    absolute = os.path.normpath(os.path.join(project, program))
    if not os.path.isfile(absolute):
        raise not_started(f"{shown(program)} is not there", reason="not_found")
    if not os.access(absolute, os.X_OK):
        raise not_started(f"{shown(program)} is not executable", reason="not_executable")
    return absolute


def not_started(message: str, *, reason: str) -> CommandFailure:
    """A program that was not started, for a reason in one word."""
    return ScriptFailed(message, details={"reason": reason}, outcome=Outcome.NOT_STARTED)


def how_it_ended(end: ChildEnd) -> str:
    """ "ended with exit code 3", "was ended by SIGKILL" """
    if end.signal is not None:
        return f"was ended by {end.signal}"
    return f"ended with exit code {end.exit_code}"


def tail(stream: bytes) -> str:
    """The last 4 KiB of a stream as text."""
    return stream[-_TAIL:].decode("utf-8", "replace")


def end_details(end: ChildEnd) -> Mapping[str, Any]:
    """Exit code, signal and the end of standard error."""
    return {"exit_code": end.exit_code, "signal": end.signal, "stderr": tail(end.stderr)}


def _names_program(word: str) -> bool:
    return not word.startswith("-") and "=" not in word


def _bad(message: str) -> CommandFailure:
    return not_started(message, reason="bad_interpreter")

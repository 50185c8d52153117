"""`execute_script {script, args, stdin}`: run a script that the configuration allows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from msgspec import Struct

from ..config.settings import ScriptSettings
from ..errors import Forbidden, ScriptFailed
from ..executors.port import ChildCall, ChildEnd, Isolation
from ..protocol.args import validate
from .confine import Border, plain, shown
from .port import Scope
from .program import (
    check_arguments,
    check_interpreter,
    check_text,
    clean_environment,
    how_it_ended,
    not_started,
)

_HEAD = 512


class ScriptArgs(Struct, frozen=True, kw_only=True):
    """`script`: a path in the project. `args`: texts, passed as they are. `stdin`: text."""

    script: str
    args: list[str] = []
    stdin: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptHandler:
    """Answers `{exit_code, signal, stdout, stderr, stdout_bytes, stderr_bytes, truncated,
    duration_ms}`; a non-zero exit code or a signal is `script_failed` with the same in `details`.

    stdout and stderr are UTF-8 (other bytes become U+FFFD), each kept up to `output` bytes of
    the configuration; the byte counts are those of all that was printed. A script that could
    not be started is `script_failed` with outcome `not_started` and, in `details.reason`,
    "not_executable", "bad_format", "bad_interpreter" or "not_found".
    """

    settings: ScriptSettings
    name: str = "execute_script"
    isolation: Isolation = Isolation.SUBPROCESS
    idempotent: bool = False

    @property
    def timeout(self) -> float:
        return self.settings.timeout

    def prepare(self, args: Mapping[str, Any], scope: Scope) -> ChildCall:
        wanted = validate(args, ScriptArgs, alias="script")
        border = Border(scope.project, scope.root)
        relative = border.resolve(wanted.script)
        # The real path counts: a link with an allowed name does not make its target allowed.
        if not any(matches(pattern, relative) for pattern in self.settings.allow):
            raise Forbidden(
                f"the configuration does not allow this script: {shown(relative)}",
                details={"allow": list(self.settings.allow)},
            )
        check_arguments(wanted.args)
        if wanted.stdin is not None:
            check_text("stdin", wanted.stdin)
        environment = clean_environment(self.settings.env)
        self._check_script(border, relative, environment["PATH"])
        # The kernel gets the path and not the open descriptor: through /dev/fd/N a script's $0
        # would no longer tell where it lies. A swap in between gains nobody anything, since who
        # can replace an allowed script can as well write another text into it.
        return ChildCall(
            argv=(border.absolute(relative), *wanted.args),
            cwd=border.project,
            env=environment,
            finish=partial(_finish, relative),
            stdin=(wanted.stdin or "").encode(),
            capture=self.settings.output,
            memory=self.settings.memory,
        )

    @staticmethod
    def _check_script(border: Border, relative: str, path: str) -> None:
        with border.open_file(relative) as opened:
            if not opened.status.st_mode & 0o111 or not os.access(
                border.absolute(relative), os.X_OK
            ):
                raise not_started(
                    f"{shown(relative)} is not executable; chmod +x makes it so",
                    reason="not_executable",
                )
            check_interpreter(os.read(opened.fd, _HEAD), shown(relative), path)


def matches(pattern: str, path: str) -> bool:
    """Whether a path fits an allow-list pattern: `*`, `?` and `[...]` stay within one part of
    the path; a part `**` stands for any number of folders."""
    parts = path.split("/")
    # How many parts the pattern so far may stand for; a set, so that each is looked at once.
    ends = {0}
    for wanted in pattern.removeprefix("./").split("/"):
        if not ends:
            return False
        if wanted == "**":
            ends = set(range(min(ends), len(parts) + 1))
        else:
            ends = {end + 1 for end in ends if end < len(parts) and fnmatchcase(parts[end], wanted)}
    return len(parts) in ends


def _finish(script: str, end: ChildEnd) -> dict[str, Any]:
    result = {
        "exit_code": end.exit_code,
        "signal": end.signal,
        "stdout": end.stdout.decode("utf-8", "replace"),
        "stderr": end.stderr.decode("utf-8", "replace"),
        "stdout_bytes": end.stdout_bytes,
        "stderr_bytes": end.stderr_bytes,
        "truncated": end.stdout_bytes > len(end.stdout) or end.stderr_bytes > len(end.stderr),
        "duration_ms": round(end.duration * 1000),
    }
    if end.exit_code != 0:
        raise ScriptFailed(
            f"{plain(script)} {how_it_ended(end)}", details={"script": plain(script), **result}
        )
    return result

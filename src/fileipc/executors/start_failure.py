"""Why a program did not start, in words that say what to mend."""

from __future__ import annotations

import errno
import os

from ..errors import Outcome, ScriptFailed
from .edge import clean
from .port import ChildCall

_REASONS = {
    errno.ENOENT: ("not_found", "it does not exist"),
    errno.EACCES: ("not_executable", "it may not be executed (chmod +x?)"),
    errno.EPERM: ("not_executable", "it may not be executed"),
    errno.ENOTDIR: ("not_found", "a part of its path is not a folder"),
    errno.ELOOP: ("not_found", "its path goes round in circles"),
    errno.ENAMETOOLONG: ("not_found", "its path is too long"),
    errno.ENOEXEC: ("bad_format", "it is neither a program nor does it begin with #!"),
    errno.E2BIG: ("arguments_too_long", "its arguments or its environment are too long"),
    errno.ETXTBSY: ("being_written", "a writer still has it open"),
    errno.ENOMEM: ("no_memory", "there is not enough memory, or its memory limit is too low"),
    errno.EAGAIN: ("too_many_processes", "there are too many processes"),
    errno.EMFILE: ("too_many_files", "there are too many open files"),
    errno.ENFILE: ("too_many_files", "there are too many open files"),
    errno.EINVAL: ("invalid", "an argument or a limit is not valid"),
}


def start_failure(call: ChildCall, number: int, text: str, at_cwd: bool) -> ScriptFailed:
    """Turn the errno of a failed start into a failure with a stable `details.reason`."""
    path = os.path.join(call.cwd, call.argv[0])
    if at_cwd:
        reason, why = "no_folder", f"its working folder {call.cwd} cannot be entered: {text}"
    elif number == errno.ENOENT and "/" in call.argv[0] and os.path.exists(path):
        reason, why = "bad_interpreter", "the interpreter that its first line names does not exist"
    elif number == errno.EACCES and os.path.isdir(path):
        reason, why = "not_executable", "it is a folder"
    else:
        reason, why = _REASONS.get(number, ("start_failed", text))
    return ScriptFailed(
        clean(f"{call.argv[0]} did not start: {why}"),
        outcome=Outcome.NOT_STARTED,
        details={"reason": reason, "errno": errno.errorcode.get(number, str(number))},
    )

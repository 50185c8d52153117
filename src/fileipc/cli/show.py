"""Answers and progress, as people and programs see them. No click in here."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

from ..client.core import is_preview
from .common import ExitCode, complain, emit, to_text, visible

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID

    from ..client.lookout import Answer

_HINTS = {
    "not_started": "it did not start: it is safe to send it again",
    "finished": "it ran to its end",
    "unknown": "it may have had effects: look before sending it again",
}


def show(answer: Answer, *, root: str, whole: bool) -> ExitCode:
    """Print a final answer: its result, or (`whole`) all of it on one line.

    A failure goes to stderr unless `whole`.
    """
    failed = answer["status"] == "failed"
    if whole:
        emit(answer, one_line=True)
    elif failed:
        _show_error(answer["error"])
    else:
        emit(answer["result"])
    if not whole:
        for warning in answer.get("warnings") or ():
            complain(f"warning: {warning}")
        if is_preview(answer["result"]):
            place = os.path.join(root, answer["result"]["path"])
            complain(f"the result is a preview; the whole is in {place}")
    return ExitCode.FAILED if failed else ExitCode.COMPLETED


def _show_error(error: dict[str, Any]) -> None:
    complain(f"{error['code']}: {error['message']}")
    if not _is_told(error["details"], error["message"]):
        complain(to_text(error["details"]))
    complain(_HINTS[error["outcome"]])


def _is_told(details: Any, message: str) -> bool:
    """Whether a message has all the values of its details already."""
    if isinstance(details, dict | list):
        values = details.values() if isinstance(details, dict) else details
        return all(_is_told(value, message) for value in values)
    return re.search(rf"(?<!\w){re.escape(str(details))}(?!\w)", message) is not None


class Display:
    """Progress of a running command on a terminal; nothing at all elsewhere."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def progress(self, answer: Answer) -> None:
        """Show one `running` answer."""
        if sys.stderr is None or not sys.stderr.isatty():
            return
        progress = self._started()
        state = answer.get("progress")
        state = state if isinstance(state, dict) else {}
        text = visible(str(state.get("message") or answer.get("type") or "running"))
        current, total = (_number(state.get(key)) for key in ("current", "total"))
        if self._task is None:
            self._task = progress.add_task(text, total=total)
        progress.update(self._task, description=text, completed=current or 0.0, total=total)

    def _started(self) -> Progress:
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.start()
        return self._progress

    def __enter__(self) -> Display:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()


def _number(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None

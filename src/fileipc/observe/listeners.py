"""Who listens to facts: the logs of each root, and the supervisor's own."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from typing import Any, TextIO

import msgspec

from ..config.settings import LogSettings
from ..protocol.facts import Fact, Level, Listener
from ..protocol.models import Response
from ..spool.logfile import LogFile
from .render import LineSink, is_enough, json_logger, text_logger, to_json

EVENTS = "fileipc.jsonl"
RESULTS = "results.jsonl"
RESULT_LIMIT = 16 * 1024
_TROUBLE_EVERY = 60.0


def fan_out(*listeners: Listener) -> Listener:
    """One listener that tells each of `listeners`; none can keep a fact from the others."""

    def tell(fact: Fact) -> None:
        for listener in listeners:
            with suppress(Exception):  # a notifier must not fail what it tells of
                listener(fact)

    return tell


class Trouble:
    """Counts what could not be written, and says so elsewhere at most once a minute."""

    def __init__(self, sink: str, root: str | None, tell: Listener | None) -> None:
        self._sink = sink
        self._root = root
        self._tell = tell
        self._lock = threading.Lock()
        self._untold = 0
        self._next = 0.0
        self.count = 0

    def note(self, error: Exception) -> None:
        now = time.monotonic()
        with self._lock:
            self.count += 1
            self._untold += 1
            if self._tell is None or now < self._next:
                return
            self._next = now + _TROUBLE_EVERY
            lines, self._untold = self._untold, 0
        fields = {"sink": self._sink, "error": str(error), "lines": lines}
        self._tell(Fact("log_failed", Level.ERROR, self._root, fields))


class RootLog:
    """Writes the facts of one root into that root.

    Each fact of at least `level` is a line of `events`; each final response, whatever the level,
    is a line of `results`. `trouble` hears of a log that cannot be written.

    Once closed, for good: what a thread that is late still tells is dropped, for a root that is
    no longer held may be another daemon's, or gone.
    """

    def __init__(
        self,
        root: str,
        events: LogFile,
        results: LogFile,
        *,
        level: str = "info",
        trouble: Listener | None = None,
    ) -> None:
        self._root = root
        self._level = Level(level)
        self._events = events
        self._results = results
        self._logger = json_logger(events)
        self._lock = threading.RLock()  # who hears of trouble may tell this log
        self._closed = False
        self.trouble = Trouble(events.path, root, trouble)
        self.results_trouble = Trouble(results.path, root, trouble)

    @classmethod
    def open(
        cls,
        root: str,
        folder: str,
        settings: LogSettings,
        *,
        mode: int = 0o600,
        folder_mode: int = 0o700,
        trouble: Listener | None = None,
    ) -> RootLog:
        """The two logs in `folder` (the root's `log/`); files are made when first written."""

        def file(name: str) -> LogFile:
            return LogFile(
                f"{folder}/{name}",
                mode,
                max_size=settings.max_size,
                max_age=settings.max_age,
                keep=settings.keep,
                folder_mode=folder_mode,
            )

        return cls(root, file(EVENTS), file(RESULTS), level=settings.level, trouble=trouble)

    def __call__(self, fact: Fact) -> None:
        if fact.root != self._root:
            return
        with self._lock:
            if not self._closed:
                self._write(fact)

    def close(self) -> None:
        """Close both files; may be called again."""
        with self._lock:
            self._closed = True
            self._events.close()
            self._results.close()

    def _write(self, fact: Fact) -> None:
        if is_enough(fact.level, self._level):
            try:
                self._logger.tell(fact)
            except Exception as error:  # noqa: BLE001 a notifier
                self.trouble.note(error)
        if fact.response is not None:
            try:
                self._results.write(result_line(fact.response))
            except Exception as error:  # noqa: BLE001 a notifier
                self.results_trouble.note(error)


class SupervisorLog:
    """Writes what concerns the whole daemon, and every warning and error of any root.

    To `settings.file`, rotated, or to `stream` (standard error). Where the file cannot be
    written, `stream` is told; where `stream` cannot, or there is none, nobody is. Once closed
    it drops what it is told.
    """

    def __init__(self, settings: LogSettings, stream: TextIO | None = None) -> None:
        stream = sys.stderr if stream is None else stream
        self._level = Level(settings.level)
        self._file: LogFile | None = None
        self._lock = threading.Lock()
        self._closed = False
        terminal = _is_terminal(stream)
        fallback = _Stream(stream)
        sink: LineSink = fallback
        notify: Listener | None = None
        if settings.file is not None:
            self._file = LogFile(
                settings.file,
                max_size=settings.max_size,
                max_age=settings.max_age,
                keep=settings.keep,
            )
            sink = self._file
            notify = _Guarded(fallback, terminal)
        as_text = settings.format == "text" or (
            settings.format == "auto" and settings.file is None and terminal
        )
        colors = terminal and settings.file is None and "NO_COLOR" not in os.environ
        self._logger = text_logger(sink, colors=colors) if as_text else json_logger(sink)
        self.trouble = Trouble(settings.file or "stderr", None, notify)

    def __call__(self, fact: Fact) -> None:
        least = self._level
        if fact.root is not None and not is_enough(least, Level.WARNING):
            least = Level.WARNING
        if not is_enough(fact.level, least):
            return
        with self._lock:
            if self._closed:
                return
            try:
                self._logger.tell(fact)
            except Exception as error:  # noqa: BLE001 a notifier
                self.trouble.note(error)

    def close(self) -> None:
        """Close the file; may be called again. The stream is not this one's to close."""
        with self._lock:
            self._closed = True
            if self._file is not None:
                self._file.close()


def result_line(response: Response) -> bytes:
    """A response as one line; a large result is left out, with its size in its place."""
    line = to_json(response)
    if len(line) > RESULT_LIMIT:
        result = to_json(response.result)
        fields: dict[str, Any] = msgspec.structs.asdict(response)
        if len(result) > RESULT_LIMIT:
            fields |= {"result": None, "result_bytes": len(result), "result_cut": True}
        line = to_json(fields)
        if len(line) > 4 * RESULT_LIMIT:
            line = to_json(_without_extras(fields, response))
    # A result taken over as raw JSON may be spread over several lines.
    return msgspec.json.format(line, indent=-1) if b"\n" in line else line


def _without_extras(fields: dict[str, Any], response: Response) -> dict[str, Any]:
    error = response.error
    if error is not None:
        error = msgspec.structs.replace(error, message=error.message[:1024], details={})
    kind = response.type and response.type[:200]
    return fields | {"type": kind, "error": error, "meta": {}, "warnings": [], "cut": True}


class _Stream:
    """A text stream as a sink; a line goes out in one write. None: it goes nowhere."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, line: bytes) -> None:
        if self._stream is None:
            return
        with self._lock:
            self._stream.write(line.decode("utf-8", "backslashreplace") + "\n")
            self._stream.flush()


class _Guarded:
    """The last resort: tells the stream, or nobody."""

    def __init__(self, stream: _Stream, terminal: bool) -> None:
        self._logger = text_logger(stream, colors=False) if terminal else json_logger(stream)

    def __call__(self, fact: Fact) -> None:
        with suppress(Exception):  # a notifier
            self._logger.tell(fact)


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False

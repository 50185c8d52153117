"""The engine inside another program: one root, with handlers added by decorator."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import msgspec

from . import __version__
from .config.load import settings_for_roots
from .config.settings import BUILT_IN, LogSettings, RootSettings
from .engine.root import Root, State
from .engine.serving import Surroundings
from .errors import RootError, RootHeld
from .executors.port import Isolation
from .handlers.embedded import EmbeddedHandler, Function
from .host.identity import identify
from .host.signals import SignalFlags
from .observe.listeners import RootLog, SupervisorLog
from .protocol.names import is_safe_stem
from .protocol.requests import Request
from .spool.atomic import MODES, Writer
from .spool.create import create_root
from .spool.layout import Layout

F = TypeVar("F", bound=Function)
_FIRST_TRY = 60.0


class Worker:
    """Serves one root from inside a program.

        worker = Worker(".")

        @worker.handler(timeout=120, idempotent=True)
        def summarize(args):
            return {"words": len(args["text"].split())}

        if __name__ == "__main__":
            worker.run()

    Args:
        root: a project folder, or its `.ipc`; made if it is not there.
        settings: any key of `RootSettings`, such as `workers=8` or `ttl=60.0`.

    Raises:
        TypeError: there is no such setting. msgspec.ValidationError: it has the wrong type.
    """

    def __init__(self, root: str | os.PathLike[str] = ".", **settings: Any) -> None:
        found = settings_for_roots([os.fspath(root)], cwd=os.getcwd()).roots[0]
        chosen = {**msgspec.to_builtins(found), **msgspec.to_builtins(settings)}
        unknown = sorted(set(settings) - set(RootSettings.__struct_fields__))
        if unknown:
            raise TypeError(f"unknown settings: {', '.join(unknown)}")
        self.settings = msgspec.convert(chosen, RootSettings)
        self._handlers: dict[str, EmbeddedHandler] = {}
        self._root: Root | None = None
        self._log: SupervisorLog | None = None

    def handler(
        self,
        name: str | None = None,
        *,
        timeout: float = 300.0,
        idempotent: bool = False,
        isolation: Literal["process", "thread"] = "process",
    ) -> Callable[[F], F]:
        """Register the decorated function; `name` defaults to the function's own.

        Args:
            timeout: seconds; the function's process is killed then.
            idempotent: it may run again if the program dies while it runs.
            isolation: "process" (killable; the function must be importable) or "thread".

        Raises:
            ValueError: the name is taken, not a plain word, or the function cannot be imported
                by a process of its own.
        """

        def register(function: F) -> F:
            chosen = name or function.__name__
            if chosen in self._handlers or chosen in (*BUILT_IN, "custom"):
                raise ValueError(f"there is a handler {chosen!r} already")
            if not is_safe_stem(chosen):
                raise ValueError(f"{chosen!r} is no name for a handler")
            if isolation == "process" and "<" in function.__qualname__:
                raise ValueError(
                    f"{chosen}: a function defined inside another cannot be found by a process of "
                    'its own; move it to the module or use isolation="thread"'
                )
            self._handlers[chosen] = EmbeddedHandler(
                name=chosen,
                function=function,
                isolation=Isolation(isolation),
                timeout=timeout,
                idempotent=idempotent,
            )
            return function

        return register

    def start(self) -> None:
        """Serve in threads of their own; returns once commands are answered.

        Raises:
            RootHeld: another daemon serves the root. RootError: it cannot be served.
        """
        if self._root is not None:
            raise RuntimeError("the worker runs already")
        layout = Layout(self.settings.path)
        modes = MODES[self.settings.mode]
        create_root(layout, Writer(modes))
        log_settings = LogSettings(level="warning")
        log = SupervisorLog(log_settings)
        around = Surroundings(
            identity=identify(__version__),
            tell=log,
            open_log=lambda root, its: RootLog.open(
                root.name,
                its.log,
                LogSettings(),
                mode=modes.file,
                folder_mode=modes.folder,
                trouble=log,
            ),
            handlers=tuple(self._handlers.values()),
            import_main=True,
        )
        root = Root(self.settings, around)
        root.start()
        root.wait_first(_FIRST_TRY)
        if root.state is not State.SERVING:
            held = root.held_by
            root.stop(0.0)
            root.join(5.0)
            raise (
                held
                if isinstance(held, RootHeld)
                else RootError(
                    f"{layout.path} cannot be served; the reason stands on standard error"
                )
            )
        self._root, self._log = root, log

    def stop(self, drain: float = 30.0) -> None:
        """Take nothing new, give what runs `drain` seconds, then end it."""
        root, self._root = self._root, None
        if root is None:
            return
        root.stop(drain)
        root.join(drain + 15.0)
        if self._log is not None:
            self._log.close()

    def run(self) -> None:
        """Serve until SIGTERM or Ctrl-C; to be called in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("run() handles signals and belongs in the main thread; use start()")
        flags = SignalFlags()
        flags.install()
        try:
            self.start()
            while not {Request.STOP, Request.STOP_NOW} & flags.wait(None):
                pass
            self.stop()
        finally:
            flags.restore()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


__all__ = ["Worker"]

"""Which types a root answers, and with what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..config.settings import BUILT_IN, RESERVED, SAFE_TYPES, HandlerSettings, RootSettings
from ..errors import CommandFailure, Forbidden, UnknownType
from ..protocol.args import custom_target, flatten
from ..protocol.hints import cut, near
from .analyze import AnalyzeHandler
from .cancel import CancelHandler
from .confine import plain
from .exec_handler import ExecHandler
from .ping import PingHandler
from .port import Handler, RootControl
from .python_handler import PythonHandler
from .query import QueryHandler
from .script import ScriptHandler
from .search import SearchHandler, find_ripgrep

CUSTOM = "custom"
ALWAYS_ALLOWED = ("ping", "cancel")
_DECLARE_PARAMS = {"run_query": frozenset({"params"})}


class Registry:
    """The handlers of one root: the built-in ones, those of its configuration, and any added."""

    def __init__(
        self, handlers: Mapping[str, Handler], allowed: frozenset[str], *, scripts: bool
    ) -> None:
        self._handlers = dict(handlers)
        self._allowed = allowed
        self._scripts = scripts

    @classmethod
    def build(cls, settings: RootSettings, control: RootControl) -> Registry:
        """What the configuration of a root asks for.

        Raises:
            ValueError: a configured handler has a name that is reserved.
        """
        built_in = {handler.name: handler for handler in _built_in(settings, control)}
        limit = settings.limits.response
        configured = [_configured(name, one, limit) for name, one in settings.handlers.items()]
        scripts = bool(settings.scripts.allow)
        return cls(_merged(built_in, configured), _allowed(settings), scripts=scripts)

    def with_handlers(self, extra: Iterable[Handler]) -> Registry:
        """A registry with these as well, all of them allowed.

        Raises:
            ValueError: a name is empty, reserved or taken; then none is registered.
        """
        added = tuple(extra)
        allowed = self._allowed | {handler.name for handler in added}
        return Registry(_merged(self._handlers, added), allowed, scripts=self._scripts)

    def find(self, type_: str, args: Mapping[str, Any]) -> Handler | None:
        """The handler that `resolve` gives; None where it raises."""
        try:
            return self.resolve(type_, args)[0]
        except CommandFailure:
            return None

    def names(self) -> tuple[str, ...]:
        """The types that may be asked for here."""
        return tuple(name for name in self._handlers if name in self._allowed)

    def resolve(self, type_: str, args: Mapping[str, Any]) -> tuple[Handler, dict[str, Any]]:
        """The handler of a command, and its arguments made flat.

        `{"type": "custom", "args": {"target": NAME, ...}}` and `{"type": NAME, "args": {...}}`
        are the same.

        Raises:
            UnknownType, Forbidden: no such type, or not one for this root.
            InvalidArgs: the arguments contradict themselves.
        """
        if type_ == CUSTOM:
            name, flat = custom_target(args)
        else:
            name = type_
            flat = flatten(args, declared=_DECLARE_PARAMS.get(name, frozenset()))
        handler = self._handlers.get(name)
        if handler is None:
            raise self._unknown(name)
        if name not in self._allowed:
            raise self._forbidden(name)
        if isinstance(handler, QueryHandler):
            return handler.for_command(flat), flat
        return handler, flat

    def _unknown(self, name: str) -> CommandFailure:
        known = self.names()
        close = near(name, known)
        hint = f"did you mean {close}?" if close else f"known are: {', '.join(known)}"
        return UnknownType(
            f"no type {plain(cut(name))} in this root; {hint}", details={"known": list(known)}
        )

    def _forbidden(self, name: str) -> CommandFailure:
        reason = "the configuration does not list it in `allow`"
        if name == "execute_script" and not self._scripts:
            reason = "the configuration allows no scripts"
        return Forbidden(
            f"{name} is not allowed in this root: {reason}", details={"allowed": list(self.names())}
        )


def _merged(known: Mapping[str, Handler], added: Iterable[Handler]) -> dict[str, Handler]:
    handlers = dict(known)
    for handler in added:
        name = handler.name
        if not name or name in RESERVED:
            raise ValueError(f"{name!r} cannot be the name of a handler")
        if name in handlers:
            raise ValueError(f"there is a handler {name!r} already")
        handlers[name] = handler
    return handlers


def _allowed(settings: RootSettings) -> frozenset[str]:
    if settings.allow is not None:
        return frozenset((*ALWAYS_ALLOWED, *settings.allow))
    scripts = ("execute_script",) if settings.scripts.allow else ()
    return frozenset((*SAFE_TYPES, *scripts, *settings.handlers))


def _built_in(settings: RootSettings, control: RootControl) -> tuple[Handler, ...]:
    handlers: tuple[Handler, ...] = (
        PingHandler(control),
        CancelHandler(control),
        AnalyzeHandler(),
        SearchHandler(find_ripgrep()),
        QueryHandler(dict(settings.databases)),
        ScriptHandler(settings.scripts),
    )
    assert tuple(handler.name for handler in handlers) == BUILT_IN
    return handlers


def _configured(name: str, settings: HandlerSettings, limit: int) -> Handler:
    if settings.python is not None:
        return PythonHandler(
            name=name,
            target=settings.python,
            idempotent=settings.idempotent,
            timeout=settings.timeout,
            memory=settings.memory,
        )
    return ExecHandler(
        name=name,
        command=settings.exec or (),
        idempotent=settings.idempotent,
        timeout=settings.timeout,
        env=settings.env,
        memory=settings.memory,
        limit=limit,
    )

"""`Client`: ask the daemon of a root for work, from any thread of any program."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from ..errors import CommandFailed, CommandGone, NoDaemon, NotFound, Outcome
from .core import (
    DEFAULT_TTL,
    GRACE,
    MARGIN,
    answer_id,
    command_id,
    encode_command,
    is_preview,
    new_id,
)
from .exchange import Exchange

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from ..protocol.models import Response
    from .health import Health, Survey
    from .lookout import Answer, OnRunning

    OnProgress = Callable[[Response], None]


class Client:
    """One root as a client sees it; may be shared between threads.

        client = Client()                                  # the nearest .ipc upward
        client.call("ping")["version"]
        sent = client.submit("search_pattern", {"pattern": "TODO"}, ttl=60)
        client.wait(sent).result

    Args:
        root: the `.ipc` folder or the project that holds it; None: the nearest one upward.
        poll: look for answers at intervals only (200 ms, 500 ms, 1 s), without notification.
        grace: seconds a daemon may be away during a wait: a restart takes one or two.

    Raises:
        NoRoot: there is no such folder.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        poll: bool = False,
        grace: float = GRACE,
    ) -> None:
        self._exchange = Exchange(root, poll=poll, grace=grace)

    @property
    def root(self) -> str:
        """The absolute path of the root."""
        return self._exchange.root

    def submit(
        self,
        type: str,
        args: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        ttl: float | None = None,
        priority: int = 0,
        meta: Mapping[str, Any] | None = None,
        check_daemon: bool = True,
    ) -> str:
        """Send a command and return its id, without waiting.

        Args:
            id: a UUID, with an optional short prefix; None: a new one.
            ttl: seconds for waiting and running together; None: the root's default.
            priority: higher goes first.
            meta: echoed in the response.
            check_daemon: False: leave the command on disk even where no daemon would take it.

        Raises:
            NoDaemon: nobody serves the root. InvalidCommand: it cannot be a command.
            Duplicate: a command of that id waits or runs already.
        """
        name = new_id() if id is None else command_id(id)
        command = encode_command(
            type, args, id=name, now=time.time(), ttl=ttl, priority=priority, meta=meta
        )
        self._exchange.post(name, command, check_daemon=check_daemon)
        return name

    def wait(
        self,
        id: str,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        discard: bool = True,
    ) -> Response:
        """Wait for a command's final response, completed or failed.

        Args:
            timeout: seconds; None: until the command's ttl has passed, and a little longer.
            on_progress: called, in this thread, with each `running` response.
            discard: remove the response once read. One that carries only a preview stays until
                `result` has fetched the whole.

        Raises:
            WaitTimeout: no answer in time. The command stays where it is.
            NoDaemon: the daemon went away and did not come back. The command stays.
            CommandGone: nothing is left of it.
        """
        name = answer_id(id)
        from .answers import time_left, to_response

        if timeout is None:
            timeout = time_left(self._exchange.mailbox.peek(name), time.time())
        answer = self._exchange.await_final(name, timeout, on_running=_told(on_progress))
        if discard:
            self._exchange.discard(name, answer)
        return to_response(answer)

    def call(
        self,
        type: str,
        args: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        ttl: float | None = None,
        priority: int = 0,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Send a command, wait for it, and return its whole result.

        Giving up (the timeout, a daemon gone, Ctrl-C) withdraws the command if it has not
        started: the error's outcome is `not_started` then, `unknown` otherwise.

        Args:
            timeout: seconds; None: the ttl (or the default of 300) and a little longer.

        Raises:
            CommandFailed: it failed; carries the response, its code and its outcome.
            WaitTimeout, NoDaemon, CommandGone, InvalidCommand: as for `submit` and `wait`.
        """
        name = self.submit(type, args, ttl=ttl, priority=priority, meta=meta)
        if timeout is None:
            timeout = (DEFAULT_TTL if ttl is None else ttl) + MARGIN
        answer = self._exchange.await_final(
            name, timeout, on_running=_told(on_progress), withdraw=True
        )
        if answer["status"] == "failed":
            from .answers import failure, to_response

            self._exchange.drop(name)
            raise failure(to_response(answer))
        result = self._whole(name, answer["result"])
        self._exchange.drop(name)
        return result

    def cancel(self, id: str, *, timeout: float = 10.0) -> str:
        """Stop a command that waits or runs.

        Without a daemon a command that has not started is withdrawn.

        Returns:
            "cancelled", "cancelling" (it was running; its response says how it ended),
            "finished" (it was too late) or "unknown" (no such command).

        Raises:
            NoDaemon: nobody serves the root and the command had started.
            CommandFailed, WaitTimeout: the cancel itself failed, or was not answered.
        """
        name = answer_id(id)
        try:
            result = self.call("cancel", {"target": name}, timeout=timeout, ttl=timeout)
        except CommandFailed as error:
            if error.code == NotFound.code:
                return "unknown"
            raise
        except NoDaemon:
            if self._exchange.mailbox.withdraw(name):
                return "cancelled"
            raise
        return str(result.get("state", "unknown")) if isinstance(result, dict) else str(result)

    def result(self, response: Response) -> Any:
        """The whole result of a response, also where it carries only a preview.

        Raises:
            CommandGone: it was only a preview, and the whole has been removed since.
        """
        name = answer_id(response.id)
        whole = self._whole(name, response.result)
        if is_preview(response.result):
            self._exchange.drop(name)
        return whole

    def health(self) -> Health:
        """The daemon's state (serving, degraded, not_responding, not_running) and why."""
        from .health import examine

        return examine(self._exchange.layout)

    def survey(self) -> Survey:
        """Everything that the files of the root tell about it."""
        from .health import survey

        return survey(self._exchange.layout)

    def _whole(self, name: str, result: Any) -> Any:
        if not is_preview(result):
            return result
        raw = self._exchange.mailbox.fetch_result(name)
        if raw is None:
            raise CommandGone(
                f"the whole result of {name} was removed already; the response has a preview",
                command_id=name,
                outcome=Outcome.FINISHED,
            )
        return json.loads(raw)


def _told(on_progress: OnProgress | None) -> OnRunning | None:
    if on_progress is None:
        return None

    def tell(answer: Answer) -> None:
        from .answers import to_response

        on_progress(to_response(answer))

    return tell

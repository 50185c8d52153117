"""fileipc: a supervisor daemon that turns `.ipc` folders into a reliable way to ask for work.

    from fileipc import Client
    Client().call("ping")

Names are imported when first used: a client must not pay for the daemon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import Client as Client
    from .errors import CommandFailed as CommandFailed
    from .errors import CommandFailure as CommandFailure
    from .errors import CommandGone as CommandGone
    from .errors import FileipcError as FileipcError
    from .errors import InvalidCommand as InvalidCommand
    from .errors import NoDaemon as NoDaemon
    from .errors import NoRoot as NoRoot
    from .errors import Outcome as Outcome
    from .errors import WaitTimeout as WaitTimeout
    from .protocol.models import Command as Command
    from .protocol.models import ErrorInfo as ErrorInfo
    from .protocol.models import Progress as Progress
    from .protocol.models import Response as Response
    from .protocol.models import Status as Status
    from .worker import Worker as Worker

__version__ = "0.1.0"

_HOMES = {
    "Client": "client",
    "Command": "protocol.models",
    "CommandFailed": "errors",
    "CommandFailure": "errors",
    "CommandGone": "errors",
    "ErrorInfo": "protocol.models",
    "FileipcError": "errors",
    "InvalidCommand": "errors",
    "NoDaemon": "errors",
    "NoRoot": "errors",
    "Outcome": "errors",
    "Progress": "protocol.models",
    "Response": "protocol.models",
    "Status": "protocol.models",
    "WaitTimeout": "errors",
    "Worker": "worker",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})

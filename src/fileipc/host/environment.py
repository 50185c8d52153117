"""What a service manager told this process, and nobody else."""

from __future__ import annotations

from collections.abc import MutableMapping

_VARIABLES = (
    *("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"),
    *("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"),
)


def take_service_variables(environment: MutableMapping[str, str]) -> dict[str, str]:
    """Take the service manager's variables out of `environment` (`os.environ`); returns them.

    To be called first of all: a handler's process that inherited NOTIFY_SOCKET could tell the
    manager that the daemon stops.
    """
    return {name: environment.pop(name) for name in _VARIABLES if name in environment}

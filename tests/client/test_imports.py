"""A client does not pay for the daemon."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .fake_daemon import FakeDaemon

HEAVY = (
    *("asyncio", "click", "daemon", "filelock", "logging", "msgspec", "pebble", "psutil", "rich"),
    *("sqlite3", "structlog", "subprocess", "watchdog", "yaml"),
)


def loaded(code: str, *argv: str) -> set[str]:
    """Which of the heavy modules are there after running `code` in a new interpreter."""
    report = f"\nimport sys; print('loaded', *(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code + report, *argv], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_importing_the_client_imports_nothing_heavy() -> None:
    assert loaded("from fileipc import Client") == set()


def test_submitting_and_waiting_imports_nothing_of_the_daemons(
    fake: FakeDaemon, root: Path
) -> None:
    code = (
        "import sys; from fileipc import Client; client = Client(sys.argv[1])\n"
        "assert client.wait(client.submit('ping')).result == {'pong': True}\n"
        "assert client.call('echo', {'a': 1}) == {'a': 1}"
    )
    assert loaded(code, str(root)) <= {"msgspec"}


def test_a_plain_send_imports_neither_click_nor_msgspec(fake: FakeDaemon, root: Path) -> None:
    code = (
        "import sys; from fileipc.cli.entry import enter\n"
        "assert enter(['send', 'ping', '--wait', '--root', sys.argv[1]]) == 0"
    )
    assert loaded(code, str(root)) == set()


def test_every_public_name_can_be_imported() -> None:
    import fileipc

    for name in fileipc.__all__:
        assert getattr(fileipc, name) is not None
    assert set(fileipc.__all__) <= set(dir(fileipc))

from __future__ import annotations

import os
import subprocess
import sys
import uuid

import psutil

from fileipc.host.environment import take_service_variables
from fileipc.host.identity import identify
from fileipc.protocol.times import parse_timestamp


def test_two_runs_never_have_the_same_instance() -> None:
    first, second = identify("1"), identify("1")
    assert first.instance != second.instance
    assert uuid.UUID(first.instance).version == 4


def test_an_identity_tells_a_process_from_a_later_one_of_the_same_pid() -> None:
    identity = identify("1.2.3", started=5.0)
    assert identity.pid == os.getpid()
    assert identity.pid_started == psutil.Process(os.getpid()).create_time()
    assert parse_timestamp(identity.started_at) >= identity.pid_started - 1
    assert identity.host
    if os.path.exists("/proc/sys/kernel/random/boot_id"):
        assert uuid.UUID(identity.boot_id)
    assert (identity.version, identity.started) == ("1.2.3", 5.0)


def test_what_the_service_manager_said_is_kept_from_child_processes() -> None:
    script = """
import os, subprocess
from fileipc.host.environment import take_service_variables
print(take_service_variables(os.environ))
print(take_service_variables(os.environ))
print(subprocess.run(["env"], capture_output=True, text=True).stdout.count("NOTIFY_SOCKET"))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "5"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        "{'NOTIFY_SOCKET': '/run/n', 'WATCHDOG_USEC': '5'}",
        "{}",
        "0",
    ]


def test_other_variables_stay() -> None:
    environment = {"PATH": "/bin", "LISTEN_FDS": "1"}
    assert take_service_variables(environment) == {"LISTEN_FDS": "1"}
    assert environment == {"PATH": "/bin"}

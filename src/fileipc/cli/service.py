"""Wiring: settings become a running daemon. Everything meets here and nowhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import fileipc

from ..config.settings import RootSettings, Settings
from ..engine.serving import Surroundings
from ..engine.supervisor import Supervisor
from ..host.environment import take_service_variables
from ..host.identity import identify
from ..host.signals import SignalFlags
from ..observe.listeners import RootLog, SupervisorLog
from ..protocol.facts import Listener
from ..spool.atomic import MODES
from ..spool.layout import Layout
from .common import ExitCode

_SWITCH = 0.0005  # seconds a thread may keep the interpreter while another has a hint to tell


def serve(
    settings: Settings,
    *,
    standby: bool = False,
    on_ready: Callable[[str], None] = lambda _note: None,
    on_held: Callable[[str], None] = lambda _message: None,
) -> int:
    """Serve all roots until a signal; returns the exit code.

    Args:
        standby: stay, and take over, where another daemon serves every root.
        on_ready: called once each root has been tried for the first time, with a note on
            those that are not served yet ("" where all are).
        on_held: called with a message where it ends because another daemon serves the roots.
    """
    take_service_variables(os.environ)
    sys.setswitchinterval(_SWITCH)
    flags = SignalFlags()
    flags.install()
    log = SupervisorLog(settings.log)
    supervisor = Supervisor(
        settings.roots,
        surroundings(settings, log),
        stop_timeout=settings.stop_timeout,
    )
    held: list[str] = []

    def tried() -> bool:
        if supervisor.all_held and not standby:
            held.append(supervisor.holders())
            return False
        on_ready("".join(f"not served yet: {each}\n" for each in supervisor.unserved()))
        return True

    try:
        supervisor.run(flags, on_tried=tried)
    finally:
        log.close()
        flags.restore()
    if held:
        on_held(held[0])
        return ExitCode.NOT_NOW
    return ExitCode.COMPLETED


def surroundings(settings: Settings, tell: Listener) -> Surroundings:
    """What the daemon's roots share."""

    def open_log(root: RootSettings, layout: Layout) -> RootLog:
        modes = MODES[root.mode]
        return RootLog.open(
            root.name,
            layout.log,
            settings.log,
            mode=modes.file,
            folder_mode=modes.folder,
            trouble=tell,
        )

    identity = identify(fileipc.__version__)
    return Surroundings(identity=identity, tell=tell, open_log=open_log)

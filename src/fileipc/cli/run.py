"""`fileipc run`: serve roots, in the foreground or detached."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from .common import ExitCode, complain

if TYPE_CHECKING:
    from ..config.settings import Settings


@click.command("run", short_help="Serve roots until stopped.")
@click.option("--config", "config_file", metavar="FILE", help="The configuration file.")
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    help="Serve this project folder (or .ipc folder) only; may be given several times.",
)
@click.option("--detach", is_flag=True, help="Go on in the background once everything serves.")
@click.option(
    "--standby",
    is_flag=True,
    help="Where another daemon serves the roots, wait and take over when it ends.",
)
def command(config_file: str | None, roots: tuple[str, ...], detach: bool, standby: bool) -> int:
    """Serve roots until SIGTERM or Ctrl-C; a second one stops at once.

    Which roots: those of the configuration file (--config, $FILEIPC_CONFIG, the user's
    ~/.config/fileipc/config.yaml, /etc/fileipc/config.yaml), or those given by --root. With
    neither: ./.ipc, made if it is not there.
    """
    from ..host.streams import have_standard_streams
    from .settings import load_settings, make_roots

    have_standard_streams()  # before any file takes the number of one that is missing
    settings = load_settings(config_file, roots)
    make_roots(settings, roots)
    return _detached(settings, standby) if detach else _foreground(settings, standby)


def _foreground(settings: Settings, standby: bool) -> int:
    from .service import serve

    return serve(
        settings,
        standby=standby,
        on_held=lambda message: complain(f"already running: {message}"),
    )


def _detached(settings: Settings, standby: bool) -> int:
    # Before any thread: only the thread that forks lives on in the daemon.
    from ..host.detach import detach

    word = detach(log_file=settings.log.file)
    try:
        from .service import serve

        code = serve(
            settings,
            standby=standby,
            on_ready=word.ready,
            on_held=lambda message: word.failed(
                f"fileipc: already running: {message}", ExitCode.NOT_NOW
            ),
        )
    except BaseException as error:
        word.failed(f"fileipc: {type(error).__name__}: {error}", ExitCode.FAILED)
        raise
    word.failed("fileipc: stopped before it was ready", ExitCode.FAILED)
    os._exit(code)

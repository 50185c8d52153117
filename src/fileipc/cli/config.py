"""`fileipc config`: look at the configuration without running anything."""

from __future__ import annotations

import click

from .common import write

_CONFIG = click.option("--config", "config_file", metavar="FILE", help="The configuration file.")


@click.group("config", short_help="Check or show the configuration.")
def command() -> None:
    """Check or show the configuration."""


@command.command("check")
@_CONFIG
def check(config_file: str | None) -> None:
    """Read the configuration and name every error in it; exit code 78 where there is one."""
    from .settings import load_settings

    settings = load_settings(config_file, ())
    source = settings.source or "no configuration file: the defaults"
    write(f"{source}: ok, {len(settings.roots)} root(s)")
    for root in settings.roots:
        write(f"  {root.name}: {root.path}")


@command.command("show")
@_CONFIG
def show(config_file: str | None) -> None:
    """Print the configuration as it takes effect, defaults and all, without passwords."""
    from ..config.show import dump
    from .settings import load_settings

    write(dump(load_settings(config_file, ())).rstrip())

"""`fileipc schema`: the JSON Schemas of what travels, and of the configuration."""

from __future__ import annotations

import click

from .common import emit


@click.command("schema")
@click.argument("kind", type=click.Choice(["command", "response", "config"]))
def command(kind: str) -> None:
    """Print the JSON Schema of a command file, a response file, or the configuration."""
    if kind == "config":
        from ..config.schema import config_schema

        emit(config_schema())
        return
    from ..protocol.models import command_schema, response_schema

    emit(command_schema() if kind == "command" else response_schema())

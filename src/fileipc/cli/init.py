"""`fileipc init`: make a root."""

from __future__ import annotations

import os
import stat

import click

from ..errors import RootError
from ..spool.atomic import GROUP, PRIVATE, Writer
from ..spool.create import create_root, prepare_root
from ..spool.layout import FOLDER, Layout
from .common import complain, write


@click.command("init")
@click.argument("directory", metavar="[DIR]", default=".")
@click.option(
    "--group", is_flag=True, help="Let the folder's group send commands and read answers."
)
def command(directory: str, group: bool) -> None:
    """Make the .ipc folder of the project in DIR [default: here], and print its path.

    What is there already stays as it is.
    """
    path = os.path.abspath(directory)
    if os.path.basename(path) != FOLDER:
        path = f"{path.rstrip('/')}/{FOLDER}"
    modes = GROUP if group else PRIVATE
    writer, layout = Writer(modes), Layout(path)
    try:
        made = create_root(layout, writer)
        prepare_root(layout, writer)
    except OSError as error:
        raise RootError(f"cannot make {path}: {error.strerror}") from error
    write(path)
    if not made and group and not stat.S_IMODE(os.stat(path).st_mode) & stat.S_IXGRP:
        complain(f"{path} was there already; its permissions were left alone: it is private")
    if group:
        complain("the daemon's configuration must say `mode: group` for this root")
    complain(f"{'made' if made else 'checked'}; serve it with: fileipc run --root {path}")

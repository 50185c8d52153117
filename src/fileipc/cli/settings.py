"""From the command line's words to settings, for every command that needs them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..config.load import default_settings, find_config, load, settings_for_roots
from ..config.settings import Settings
from ..spool.atomic import MODES, Writer
from ..spool.create import create_root
from ..spool.layout import Layout


def load_settings(config_file: str | None, roots: Sequence[str]) -> Settings:
    """The settings that these options mean.

    Raises:
        ConfigError: all that is wrong with them.
    """
    cwd = os.getcwd()
    config = find_config(config_file, os.environ)
    if roots:
        return settings_for_roots(roots, cwd=cwd, config=config)
    return default_settings(cwd) if config is None else load(config)


def make_roots(settings: Settings, asked: Sequence[str]) -> None:
    """Make the root folders that were asked for by name, or the default one.

    Those that a configuration file lists are never made: an empty mount point would get one
    that is hidden once the disk is mounted.
    """
    if settings.source is not None and not asked:
        return
    for root in settings.roots:
        writer = Writer(MODES[root.mode])
        create_root(Layout(root.path), writer)

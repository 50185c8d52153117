"""The effective configuration as text that can be loaded again."""

from __future__ import annotations

from typing import Any

import yaml

from .keys import TOP
from .settings import Settings


def effective(settings: Settings, *, mask: bool = True) -> dict[str, Any]:
    """Plain data of every key with its value, durations and sizes in readable units.

    What is None (no limit, no list) is left out. With `mask` the passwords in database URLs are
    hidden; without it the result reads back as equal settings.
    """
    return TOP.show(settings, mask=mask)


def dump(settings: Settings, *, mask: bool = True) -> str:
    """`effective` as YAML."""
    return yaml.safe_dump(
        effective(settings, mask=mask), sort_keys=False, allow_unicode=True, width=100
    )

"""Names that somebody else chose, in messages: near misses, and never too much of them.

A command may hold 75,000 unknown fields, or one of a megabyte. Neither may cost the reader's
time or come back whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches

MAX_SHOWN = 80  # characters of one name
MAX_NAMED = 10  # names in one message
_MAX_COMPARED = 40  # characters; what is longer is no slip of the pen


def near(name: str, known: Sequence[str]) -> str | None:
    """The nearest of the known names, where one is near."""
    if len(name) > _MAX_COMPARED:
        return None
    close = get_close_matches(name, known, n=1)
    return close[0] if close else None


def cut(text: str) -> str:
    """A text that is endless, shortened."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def first(names: Sequence[str], tell: Callable[[str], str], what: str) -> list[str]:
    """What `tell` says of the first names, and "and N more WHAT" where there are more."""
    told = [tell(name) for name in names[:MAX_NAMED]]
    if len(names) > MAX_NAMED:
        told.append(f"and {len(names) - MAX_NAMED} more {what}")
    return told

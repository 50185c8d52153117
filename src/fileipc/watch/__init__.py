"""Watching the folder where commands arrive; the only home of watchdog."""

from .choose import make_observer
from .port import Hints, Observer

__all__ = ["Hints", "Observer", "make_observer"]

"""fileipc: a supervisor daemon that turns `.ipc` folders into a reliable way to ask for work."""

from __future__ import annotations

__version__ = "0.1.0"

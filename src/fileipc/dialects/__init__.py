"""Dialects: the folder and field names on the wire.

A root speaks one dialect. The engine knows commands and responses only as the protocol's
structs; a dialect says where they lie and how their bytes read.
"""

from __future__ import annotations

from .native import NATIVE, Dialect

__all__ = ["NATIVE", "Dialect"]

"""The trace id in `meta.traceparent`, as W3C Trace Context writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


def trace_id(meta: Mapping[str, Any]) -> str | None:
    """The 32 hex digits of the trace, or None where there is no valid traceparent."""
    value = meta.get("traceparent")
    match = _TRACEPARENT.fullmatch(value) if isinstance(value, str) else None
    return match.group(1) if match and set(match.group(1)) != {"0"} else None

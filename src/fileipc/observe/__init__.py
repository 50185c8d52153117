"""Facts into logs; the only home of structlog."""

from .listeners import EVENTS, RESULTS, RootLog, SupervisorLog, fan_out

__all__ = ["EVENTS", "RESULTS", "RootLog", "SupervisorLog", "fan_out"]

"""The engine: from a name in `commands/` to a settled command, and whoever keeps that going."""

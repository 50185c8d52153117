"""Handlers: one file for each type of command."""

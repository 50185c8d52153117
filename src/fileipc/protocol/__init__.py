"""The protocol: pure functions and frozen values, no files, no clocks, no threads."""

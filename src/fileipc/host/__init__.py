"""The process and its host: signals, detaching, identity. What is heavy is imported by name."""

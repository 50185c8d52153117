"""Configuration: YAML in, frozen settings out."""

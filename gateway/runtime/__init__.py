"""What every room stands on: the background loop, caches, telemetry, text and vectors."""

VERSION = "0.3.0"
"""As in `pyproject.toml`; asking the installed package for it would cost a start more."""
PLUGIN_GROUP = "tool_gateway.plugins"
"""The group of entry points by which other distributions add plugins."""

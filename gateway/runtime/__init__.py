"""Shared code of all packages: background loop, caches, telemetry, texts and vectors."""

VERSION = "0.3.0"
"""Version as in `pyproject.toml`. Reading the metadata of the installed package would slow down a
start."""
PLUGIN_GROUP = "tool_gateway.plugins"
"""Group of entry points for plugins in other packages."""

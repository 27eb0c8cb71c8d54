"""Shared code of all packages: background loop, caches, telemetry, texts and vectors."""

VERSION = "0.3.0"
"""Version of the package, equal to the one in `pyproject.toml`. Reading the metadata of the
installed package would slow down each start."""
PLUGIN_GROUP = "tool_gateway.plugins"
"""Group of entry points in which other packages list their plugins."""

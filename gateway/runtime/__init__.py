VERSION = "0.3.0"
"""Version of the package, as in `pyproject.toml`. Reading the installed metadata would be slow."""
PLUGIN_GROUP = "tool_gateway.plugins"
"""Group of entry points in which other packages list their plugins."""

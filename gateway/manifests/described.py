"""The servers of an ``mcp.json`` -> entries: described, searched for, and not started. Pure.

Nothing is taken over that may be a secret: no environment, no headers, no arguments, and of an
address neither its query nor who signs in. To have their tools, configure them instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from gateway.catalog.entries import NAMESPACE, Entry
from gateway.errors import ConfigError
from gateway.types import JsonObject

TABLES = ("mcpServers", "servers")


def is_configuration(raw: Mapping[str, object]) -> bool:
    """Return whether *raw* means to be an ``mcp.json``."""
    return any(isinstance(raw.get(key), dict) for key in TABLES)


def read_servers(
    raw: Mapping[str, object], *, where: str, namespace: str = NAMESPACE
) -> tuple[Entry, ...]:
    """Read the parsed JSON of an ``mcp.json``.

    Args:
        raw: With a table ``mcpServers`` or ``servers``.
        where: The file, for messages.
        namespace: Whose the entries are.

    Raises:
        ConfigError: If one of its servers cannot be described; it says which.
    """
    tables = (raw.get(key) for key in TABLES)
    table = next((each for each in tables if isinstance(each, dict)), {})
    return tuple(_entry(str(name), each, where, namespace) for name, each in table.items())


def _entry(name: str, raw: object, where: str, namespace: str) -> Entry:
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where!r}: server {name!r} must be an object")
    told = raw.get("description", "")
    if not isinstance(told, str):
        raise ConfigError(f"{where!r}: server {name!r}: 'description' must be a text")
    return Entry(
        kind="server", name=name, description=told, namespace=namespace, metadata=_reached(raw)
    )


def _reached(raw: Mapping[str, object]) -> JsonObject:
    command, url = raw.get("command"), raw.get("url")
    if isinstance(command, str):
        return {"transport": "stdio", "command": command}
    if not isinstance(url, str):
        return {}
    try:
        parts = urlsplit(url)
    except ValueError:
        return {"transport": "http"}
    host = parts.netloc.rpartition("@")[2]
    return {"transport": "http", "url": f"{parts.scheme}://{host}{parts.path}"}

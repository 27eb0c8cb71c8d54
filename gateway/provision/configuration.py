"""Adds one server to an ``mcp.json``: nothing else of the file changes, and it changes at once or
not at all.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gateway.errors import ConfigError

_TABLES = ("mcpServers", "servers")


def configured_names(path: Path) -> frozenset[str]:
    """Give the names of the servers in the file, also of those that are disabled; it may be absent.

    Raises:
        ConfigError: It is there and cannot be read as one.
    """
    whole = _whole(path)
    return frozenset(name for key in _TABLES for name in _table(path, whole, key))


def add_server(path: Path, name: str, entry: Mapping[str, object]) -> None:
    """Write *entry* under *name* into the file; it is made if it is absent.

    Raises:
        ConfigError: It cannot be read or written, or has a server of that name.
    """
    whole = _whole(path)
    key = "servers" if "mcpServers" not in whole and "servers" in whole else "mcpServers"
    table = _table(path, whole, key)
    if name in table:
        raise ConfigError(f"{str(path)!r} has a server {name!r} already")
    changed = {**whole, key: {**table, name: dict(entry)}}
    try:
        _replace(path.resolve(), json.dumps(changed, ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be written: {error}") from error


def _whole(path: Path) -> dict[str, object]:
    try:
        whole = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read as JSON: {error}") from error
    if not isinstance(whole, dict):
        raise ConfigError(f"{str(path)!r} needs an object at its top")
    return whole


def _table(path: Path, whole: Mapping[str, object], key: str) -> dict[str, object]:
    table = whole.get(key, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{str(path)!r}: {key!r} must be an object")
    return table


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    made = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        if path.exists():
            shutil.copymode(path, made)
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)

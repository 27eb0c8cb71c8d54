"""Adds one server to an ``mcp.json``, and takes it out again. All else stays byte for byte, and the
file changes at once or not at all.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import ConfigError
from gateway.manifests.json_edit import with_member, without_member
from gateway.manifests.jsonc import parse

_TABLES = ("mcpServers", "servers", "virtualServers")
_MARK = "\ufeff"
"""What some editors put before UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """One edit of a file."""

    path: Path
    place: tuple[str, str]
    """The table and the name in it."""
    before: str | None
    """What the file held; None if there was none."""
    after: str


def configured_names(path: Path) -> frozenset[str]:
    """Give the names of the servers in the file, also of those that are disabled; it may be absent.

    Raises:
        ConfigError: It is there and cannot be read as one.
    """
    whole = _whole(path, _read(path))
    return frozenset(name for key in _TABLES for name in _table(path, whole, key))


def add_server(path: Path, name: str, entry: Mapping[str, object]) -> Added:
    """Write *entry* under *name* into the file; it is made if it is absent.

    Raises:
        ConfigError: It cannot be read or written, or has a server of that name.
    """
    before = _read(path)
    whole = _whole(path, before)
    key = "servers" if "mcpServers" not in whole and "servers" in whole else "mcpServers"
    if name in _table(path, whole, key):
        raise ConfigError(f"{str(path)!r} has a server {name!r} already")
    text = (before or "").removeprefix(_MARK)
    after = with_member(text, (key, name), dict(entry), where=path.name)
    if before is not None and before.startswith(_MARK):
        after = _MARK + after
    _write(path, after)
    return Added(path=path, place=(key, name), before=before, after=after)


def take_back(added: Added) -> None:
    """Undo an edit; what others wrote meanwhile stays.

    Raises:
        ConfigError: The file cannot be read or written.
    """
    path, now = added.path, _read(added.path)
    if now is None:
        return
    if now != added.after:
        _write(path, without_member(now, added.place, where=path.name))
    elif added.before is None:
        path.unlink(missing_ok=True)
    else:
        _write(path, added.before)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error


def _whole(path: Path, text: str | None) -> Mapping[str, object]:
    plain = (text or "").removeprefix(_MARK)
    whole = parse(plain, where=path.name) if plain.strip() else {}
    if not isinstance(whole, dict):
        raise ConfigError(f"{str(path)!r} needs an object at its top")
    return whole


def _table(path: Path, whole: Mapping[str, object], key: str) -> Mapping[str, object]:
    table = whole.get(key, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{str(path)!r}: {key!r} must be an object")
    return table


def _write(path: Path, text: str) -> None:
    try:
        _replace(path.resolve(), text.encode())
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be written: {error}") from error


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    made = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if path.exists():
            shutil.copymode(path, made)
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)

"""Edits of ``mcp.json`` and of other clients' files, which change one member and no other byte.

A file is replaced as a whole, unless it changed since it was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gateway.config.json_edit import parse_object, with_member, without_member
from gateway.errors import ConfigError
from gateway.runtime.atomic_file import write_atomically

_BOM = b"\xef\xbb\xbf"
"""Byte order mark of UTF-8, which some editors write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEdit:
    """A server that was added to a file, for `undo_edit`."""

    path: Path
    member: tuple[str, str]
    """Key of the table of servers, and name of the added server."""
    before: str | None
    """Text before the edit; None if the file did not exist."""
    after: str


def read_text(path: Path, *, missing: str = "", max_bytes: int | None = None) -> str:
    """Return the text of a file.

    Args:
        path: File.
        missing: Error message if the file does not exist; "" returns "" instead.
        max_bytes: Maximum length in bytes; None is unlimited.

    Raises:
        ConfigError: If the file is unreadable, too long, or missing.
    """
    try:
        with path.open("rb") as file:
            content = file.read(-1 if max_bytes is None else max_bytes + 1)
        if max_bytes is not None and len(content) > max_bytes:
            raise ConfigError(f"{str(path)!r} is longer than {max_bytes} bytes: split it")
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        if missing:
            raise ConfigError(missing) from None
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: save it as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error


def write_text(path: Path, text: str, *, expected: str, backup: Path | None = None) -> Path | None:
    """Replace the text of a file in one step. Return the path of the backup, or None.

    Links are followed, and the file keeps its permissions. Missing folders are created.

    Args:
        path: File.
        text: New text.
        expected: Text that `read_text` returned before.
        backup: Path for a copy of the old content (`backup_path`); None makes no copy.

    Raises:
        ConfigError: If the file no longer has the *expected* text, or cannot be written.
    """
    path = path.resolve()
    if read_text(path) != expected:
        raise ConfigError(f"{str(path)!r} was changed meanwhile: run the command again")
    try:
        before = path.read_bytes() if path.exists() else None
        backup = None if before is None else backup
        if before is not None and backup is not None:
            write_atomically(backup, before, mode=path.stat().st_mode & 0o7777)
        bom = _BOM if before is not None and before.startswith(_BOM) else b""
        write_atomically(path, bom + text.encode())
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be written: {error}") from error
    return backup


def server_table(text: str, *, where: str) -> tuple[str, Mapping[str, object]]:
    """Return the key of the table of servers in an ``mcp.json``, and the table, empty if missing.

    Raises:
        ConfigError: If *text* is not an ``mcp.json``. The message calls the file *where*.
    """
    document = parse_object(text, where=where)
    key = "servers" if "servers" in document and "mcpServers" not in document else "mcpServers"
    return key, _table(document, key, where)


def set_server(text: str, name: str, entry: Mapping[str, object], *, where: str) -> str:
    """Return the ``mcp.json`` *text* with *entry* as the server *name*. Errors name *where*."""
    return with_member(text, (server_table(text, where=where)[0], name), dict(entry), where=where)


def server_names(path: Path) -> frozenset[str]:
    """Return the names of all servers in a file, also disabled and virtual ones; empty if missing.

    Raises:
        ConfigError: If the file cannot be read.
    """
    document = parse_object(read_text(path), where=str(path))
    keys = ("mcpServers", "servers", "virtualServers")
    return frozenset(name for key in keys for name in _table(document, key, str(path)))


def add_server(path: Path, name: str, entry: Mapping[str, object]) -> ConfigEdit:
    """Add a server to a file, which is created if missing. Return the edit for `undo_edit`.

    Raises:
        ConfigError: If the file cannot be read or written, or already has a server of this name.
    """
    before = read_text(path)
    existed = path.exists()
    key, table = server_table(before, where=str(path))
    if name in table:
        raise ConfigError(f"{str(path)!r} already has a server {name!r}: choose another name")
    after = set_server(before, name, entry, where=str(path))
    write_text(path, after, expected=before)
    return ConfigEdit(
        path=path, member=(key, name), before=before if existed else None, after=after
    )


def undo_edit(edit: ConfigEdit) -> None:
    """Undo *edit*, but keep later changes of the file.

    Raises:
        ConfigError: If the file cannot be read or written.
    """
    path, text = edit.path, read_text(edit.path)
    if not path.exists():
        return
    if text != edit.after:
        former = without_member(text, edit.member, where=str(path))
    elif edit.before is None:
        path.unlink(missing_ok=True)
        return
    else:
        former = edit.before
    write_text(path, former, expected=text)


def _table(document: Mapping[str, object], key: str, where: str) -> Mapping[str, object]:
    table = document.get(key, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{where!r}: {key!r} must be an object")
    return table


def backup_path(path: Path, at: datetime) -> Path:
    """Return an unused path next to *path* for a backup, with the time *at* in its name."""
    path = path.resolve()
    stem = f"{path.name}.{at:%Y%m%d-%H%M%S}"
    backup, count = path.with_name(f"{stem}.bak"), 2
    while backup.exists():
        backup, count = path.with_name(f"{stem}-{count}.bak"), count + 1
    return backup

"""Manifests on disk -> entries: agent cards, skills, an ``mcp.json``, bundles, folders of these.

* A file gives all of its entries or none.
* In a folder, a file that cannot be used is reported and the others are read. Nothing outside the
  folder is read, wherever links in it lead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gateway.catalog.entries import NAMESPACE, Entry
from gateway.errors import ConfigError
from gateway.manifests.agent_cards import is_card, read_card
from gateway.manifests.bundles import read_bundle
from gateway.manifests.jsonc import parse
from gateway.manifests.skills import read_skill
from gateway.types import Diagnostic, JsonObject

SKILL = "SKILL.md"
MAX_BYTES = 64 * 1024 * 1024
MAX_SKILL_BYTES = 256 * 1024
MAX_FILES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What was read."""

    entries: tuple[Entry, ...]
    """Ids are unique."""
    notes: tuple[Diagnostic, ...] = ()
    """One for each file that cannot be used: which, why, and what to do."""


def read_manifests(path: Path, *, namespace: str = NAMESPACE) -> Imported:
    """Read a file, or the files of a folder and the skills in the folders in it.

    Args:
        path: A ``SKILL.md``, a JSON file, or a folder.
        namespace: Of entries that name none.

    Raises:
        ConfigError: There is no such file or folder, or the one file cannot be used.
    """
    if not path.is_dir():
        return Imported(entries=read_file(path, namespace=namespace))
    imported: dict[str, tuple[Entry, Path]] = {}
    notes = []
    for count, file in enumerate(_files(path), start=1):
        if count > MAX_FILES:
            notes.append(_note(f"{str(path)!r} has more than {MAX_FILES} files: the rest is left"))
            break
        try:
            entries = read_file(_inside(file, path), namespace=namespace)
            _check_new(entries, file, imported)
        except ConfigError as error:
            notes.append(_note(str(error)))
        else:
            imported |= {entry.id: (entry, file) for entry in entries}
    return Imported(entries=tuple(entry for entry, _ in imported.values()), notes=tuple(notes))


def _files(folder: Path) -> Iterator[Path]:
    if (folder / SKILL).exists():
        yield folder / SKILL
        return
    for file in sorted(folder.iterdir()):
        if file.name.startswith("."):
            continue
        if file.is_dir() and (file / SKILL).exists():
            yield file / SKILL
        elif file.suffix == ".json" and not file.is_dir():
            yield file


def _inside(path: Path, folder: Path) -> Path:
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{str(path)!r} leads out of its folder: put the file itself there")
    return path


def _check_new(
    entries: tuple[Entry, ...], path: Path, imported: Mapping[str, tuple[Entry, Path]]
) -> None:
    for entry in entries:
        if entry.id in imported:
            raise ConfigError(
                f"{str(path)!r}: {entry.id!r} is also in {str(imported[entry.id][1])!r}: rename one"
            )


def read_file(path: Path, *, namespace: str = NAMESPACE) -> tuple[Entry, ...]:
    """Read one file: all of its entries.

    Raises:
        ConfigError: It is not there, is too large, or is no manifest; it says what to do.
    """
    where = str(path)
    markdown = path.suffix.casefold() == ".md"
    text = _text(path, MAX_SKILL_BYTES if markdown else MAX_BYTES)
    try:
        if markdown:
            return (read_skill(text, where=where, namespace=namespace),)
        return _entries(parse(text, where=where), where, namespace)
    except ConfigError as error:
        message = str(error)
        raise ConfigError(message if where in message else f"{where!r}: {message}") from error


def _entries(document: object, where: str, namespace: str) -> tuple[Entry, ...]:
    if isinstance(document, dict):
        if "entries" in document:
            return read_bundle(document, where=where)
        if isinstance(document.get("mcpServers", document.get("servers")), dict):
            return tuple(_server_entries(document, where, namespace))
        if is_card(document):
            return (read_card(document, where=where, namespace=namespace),)
    raise ConfigError(
        f"{where!r} is no manifest: give an agent card, an mcp.json, or a bundle "
        "{'version': 1, 'entries': [...]}"
    )


def _text(path: Path, limit: int) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except FileNotFoundError:
        raise ConfigError(f"there is no file or folder {str(path)!r}") from None
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error
    if len(content) > limit:
        raise ConfigError(f"{str(path)!r} is longer than {limit} bytes: split it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{str(path)!r} is no text: save it as UTF-8") from error


def _note(detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code="config_warning", detail=detail)


def _server_entries(document: Mapping[str, object], where: str, namespace: str) -> Iterator[Entry]:
    """Yield the servers of an ``mcp.json`` as entries: found, and not started.

    Nothing is taken over that may be a secret: no environment, no headers, no arguments, and of a
    URL neither its query nor its user. To have their tools, configure them instead.
    """
    for name, server in _server_table(document).items():
        place = f"{where!r}: server {name!r}"
        if not isinstance(server, Mapping):
            raise ConfigError(f"{place} must be an object")
        description = server.get("description", "")
        if not isinstance(description, str):
            raise ConfigError(f"{place}: 'description' must be a text")
        yield Entry(
            kind="server",
            name=str(name),
            description=description,
            namespace=namespace,
            metadata=_transport(server),
        )


def _server_table(document: Mapping[str, object]) -> Mapping[str, object]:
    tables = (document.get(key) for key in ("mcpServers", "servers"))
    return next((table for table in tables if isinstance(table, dict)), {})


def _transport(server: Mapping[str, object]) -> JsonObject:
    command, url = server.get("command"), server.get("url")
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

"""Reading and writing of manifest files: agent cards, skills, ``mcp.json``, bundles and folders.

* All entries of a file are imported, or none. In a folder, unusable files are reported and skipped.
  Links that lead out of the folder are not followed.
* A bundle is a JSON file that contains entries without loss: ``{"version": 1, "entries": [...]}``.
* Other files cannot store all fields, such as status and scopes, so a bundle stores such entries.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from gateway.catalog.entries import NAMESPACE, Entry, entry_from_json, entry_to_json
from gateway.config.config_file import read_text
from gateway.config.json_edit import parse
from gateway.errors import ConfigError
from gateway.plugins.manifests.agent_cards import is_card, read_card, write_card
from gateway.plugins.manifests.skills import read_skill, write_skill
from gateway.runtime.json_models import read_value
from gateway.types import Diagnostic, JsonObject

SKILL = "SKILL.md"
VERSION = 1
"""Version of the bundle format."""
MAX_ENTRIES = 100_000
MAX_BYTES = 64 * 1024 * 1024
MAX_SKILL_BYTES = 256 * 1024
MAX_FILES = 10_000
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_SLUG_CHARS = 64


class _Server(BaseModel):
    """Fields of a server's entry in an ``mcp.json`` that cannot contain secrets."""

    description: str = ""
    command: Any = None
    url: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Result of reading manifest files."""

    entries: tuple[Entry, ...]
    """Entries with unique ids."""
    notes: tuple[Diagnostic, ...] = ()
    """Reason and remedy for each unusable file."""


def read_manifests(path: Path, *, namespace: str = NAMESPACE) -> Imported:
    """Read a manifest file, or the manifest files of a folder and the skills in its subfolders.

    Args:
        path: ``SKILL.md``, JSON file or folder.
        namespace: Namespace for entries whose file does not name one.

    Raises:
        ConfigError: If *path* does not exist, or is an unusable file.
    """
    if not path.is_dir():
        return Imported(entries=read_file(path, namespace=namespace))
    imported: dict[str, tuple[Entry, Path]] = {}
    notes = []
    for count, file in enumerate(_files(path), start=1):
        if count > MAX_FILES:
            notes.append(
                _note(f"{str(path)!r} has more than {MAX_FILES} files: the rest was skipped")
            )
            break
        try:
            entries = _read_inside(file, path, namespace, imported)
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


def _read_inside(
    path: Path, folder: Path, namespace: str, imported: Mapping[str, tuple[Entry, Path]]
) -> tuple[Entry, ...]:
    """Read one file of a folder of manifests.

    Args:
        path: File.
        folder: Folder that contains the file.
        namespace: Namespace for entries whose file does not name one.
        imported: Earlier entries and their files, keyed by entry id.

    Raises:
        ConfigError: If a link leads out of the folder, or an entry is also in an earlier file.
    """
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{str(path)!r} leads out of its folder: copy the file into the folder")
    entries = read_file(path, namespace=namespace)
    for entry in entries:
        if entry.id in imported:
            raise ConfigError(
                f"{str(path)!r}: {entry.id!r} is also in {str(imported[entry.id][1])!r}: rename one"
            )
    return entries


def read_file(path: Path, *, namespace: str = NAMESPACE) -> tuple[Entry, ...]:
    """Read all entries of one file.

    Raises:
        ConfigError: If the file is missing, too large or not a manifest.
    """
    where = str(path)
    markdown = path.suffix.casefold() == ".md"
    text = read_text(
        path,
        missing=f"there is no file or folder {where!r}",
        max_bytes=MAX_SKILL_BYTES if markdown else MAX_BYTES,
    )
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
        f"{where!r} is not a manifest: use an agent card, an mcp.json, or a bundle "
        "{'version': 1, 'entries': [...]}"
    )


def _note(detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code="config_warning", detail=detail)


def _server_entries(document: Mapping[str, object], where: str, namespace: str) -> Iterator[Entry]:
    """Yield the servers of an ``mcp.json`` as entries, to which the gateway does not connect.

    Environment, headers, arguments, and the query and user of a URL are left out, because they may
    contain secrets.
    """
    table = document.get("mcpServers", document.get("servers"))
    servers: dict[str, _Server] = read_value(dict[str, _Server], table, where=repr(where))
    for name, server in servers.items():
        yield Entry(
            kind="server",
            name=name,
            description=server.description,
            namespace=namespace,
            metadata=_transport(server),
        )


def _transport(server: _Server) -> JsonObject:
    if isinstance(server.command, str):
        return {"transport": "stdio", "command": server.command}
    if not isinstance(server.url, str):
        return {}
    try:
        parts = urlsplit(server.url)
    except ValueError:
        return {"transport": "http"}
    host = parts.netloc.rpartition("@")[2]
    return {"transport": "http", "url": f"{parts.scheme}://{host}{parts.path}"}


def read_bundle(document: Mapping[str, object], *, where: str) -> tuple[Entry, ...]:
    """Return the entries of a bundle.

    Raises:
        ConfigError: If the version is not supported, or the entry in the message is not valid.
    """
    if document.get("version") != VERSION:
        raise ConfigError(
            f"{where!r} is a bundle of version {document.get('version')!r}; "
            f"only version {VERSION} is supported"
        )
    entries = document.get("entries")
    if not isinstance(entries, list) or len(entries) > MAX_ENTRIES:
        raise ConfigError(f"{where!r}: 'entries' must be a list, of at most {MAX_ENTRIES} entries")
    entries_by_id: dict[str, Entry] = {}
    for number, value in enumerate(entries, start=1):
        try:
            entry = entry_from_json(value)
        except ConfigError as error:
            raise ConfigError(f"{where!r}, entry {number}: {error}") from error
        if entry.id in entries_by_id:
            raise ConfigError(f"{where!r}, entry {number}: duplicate id {entry.id!r}")
        entries_by_id[entry.id] = entry
    return tuple(entries_by_id.values())


def bundle(entries: Iterable[Entry]) -> JsonObject:
    """Return *entries* as a bundle, sorted by id."""
    ordered = sorted(entries, key=lambda entry: entry.id)
    return {"version": VERSION, "entries": [entry_to_json(entry) for entry in ordered]}


def write_bundle(entries: Iterable[Entry]) -> str:
    """Return *entries* as the text of a bundle."""
    return _to_text(bundle(entries))


def _to_text(document: JsonObject) -> str:
    return f"{json.dumps(document, ensure_ascii=False, indent=2)}\n"


def files_of(entries: Sequence[Entry], folder: Path) -> Mapping[Path, str]:
    """Return the texts of manifest files that store *entries*, keyed by path in *folder*.

    `read_manifests` reads equal entries from them, if it gets their namespace.
    """
    files: dict[Path, str] = {}
    bundled = []
    for entry in entries:
        file = None
        with suppress(ConfigError):
            file = _as_file(entry)
        if file is None:
            bundled.append(entry)
        else:
            files[folder / file[0]] = file[1]
    if bundled:
        files[folder / "entries.json"] = write_bundle(bundled)
    return files


def _as_file(entry: Entry) -> tuple[str, str] | None:
    """Return name and text of a file for *entry*; None if only a bundle stores it without loss."""
    if entry.kind == "agent":
        card = write_card(entry)
        if entry == read_card(card, where="", namespace=entry.namespace):
            return f"{_slug(entry)}.agent.json", _to_text(card)
    if entry.kind == "skill":
        text = write_skill(entry)
        if entry == read_skill(text, where="", namespace=entry.namespace):
            return f"{_slug(entry)}/{SKILL}", text
    return None


def _slug(entry: Entry) -> str:
    plain = _SEPARATORS.sub("-", entry.name.casefold()).strip("-")[:_SLUG_CHARS]
    if plain == entry.name:
        return plain
    digest = hashlib.sha256(entry.id.encode()).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else digest

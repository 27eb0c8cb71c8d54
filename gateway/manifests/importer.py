"""Manifests on disk -> entries: agent cards, skills, an ``mcp.json``, bundles, folders of these.

* A file gives all of its entries or none.
* In a folder, a file that cannot be used is reported and the others are read. Nothing outside the
  folder is read, wherever links in it lead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.catalog.entries import NAMESPACE, Entry
from gateway.errors import ConfigError
from gateway.manifests.agent_cards import is_card, read_card
from gateway.manifests.bundles import read_bundle
from gateway.manifests.described import is_configuration, read_servers
from gateway.manifests.jsonc import parse
from gateway.manifests.skills import read_skill
from gateway.types import Diagnostic

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
    found: dict[str, tuple[Entry, Path]] = {}
    notes = []
    for count, each in enumerate(_files(path), start=1):
        if count > MAX_FILES:
            notes.append(_note(f"{str(path)!r} has more than {MAX_FILES} files: the rest is left"))
            break
        try:
            entries = read_file(_inside(each, path), namespace=namespace)
            _check_new(entries, each, found)
        except ConfigError as error:
            notes.append(_note(str(error)))
        else:
            found |= {entry.id: (entry, each) for entry in entries}
    return Imported(entries=tuple(entry for entry, _ in found.values()), notes=tuple(notes))


def _files(folder: Path) -> Iterator[Path]:
    if (folder / SKILL).exists():
        yield folder / SKILL
        return
    for each in sorted(folder.iterdir()):
        if each.name.startswith("."):
            continue
        if each.is_dir() and (each / SKILL).exists():
            yield each / SKILL
        elif each.suffix == ".json" and not each.is_dir():
            yield each


def _inside(path: Path, folder: Path) -> Path:
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{str(path)!r} leads out of its folder: put the file itself there")
    return path


def _check_new(
    entries: tuple[Entry, ...], path: Path, found: Mapping[str, tuple[Entry, Path]]
) -> None:
    for entry in entries:
        if entry.id in found:
            raise ConfigError(
                f"{str(path)!r}: {entry.id!r} is also in {str(found[entry.id][1])!r}: rename one"
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
        told = str(error)
        raise ConfigError(told if where in told else f"{where!r}: {told}") from error


def _entries(raw: object, where: str, namespace: str) -> tuple[Entry, ...]:
    if isinstance(raw, dict):
        if "entries" in raw:
            return read_bundle(raw, where=where)
        if is_configuration(raw):
            return read_servers(raw, where=where, namespace=namespace)
        if is_card(raw):
            return (read_card(raw, where=where, namespace=namespace),)
    raise ConfigError(
        f"{where!r} is no manifest: give an agent card, an mcp.json, or a bundle "
        "{'version': 1, 'entries': [...]}"
    )


def _text(path: Path, most: int) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except FileNotFoundError:
        raise ConfigError(f"there is no file or folder {str(path)!r}") from None
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error
    if len(content) > most:
        raise ConfigError(f"{str(path)!r} is longer than {most} bytes: split it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{str(path)!r} is no text: save it as UTF-8") from error


def _note(detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code="config_warning", detail=detail)

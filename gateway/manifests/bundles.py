"""Bundles: many entries in one JSON file, ``{"version": 1, "entries": [...]}``. Pure.

What is written is read again to the last field; one entry that cannot be used refuses the bundle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from gateway.catalog.entries import Entry, entry_from_json, entry_to_json
from gateway.errors import ConfigError
from gateway.types import JsonObject

VERSION = 1
MAX_ENTRIES = 100_000


def read_bundle(document: Mapping[str, object], *, where: str) -> tuple[Entry, ...]:
    """Return the entries of a bundle, from its parsed JSON.

    Raises:
        ConfigError: If it is of another version, or an entry of it cannot be used; it says which.
    """
    if document.get("version") != VERSION:
        raise ConfigError(
            f"{where!r} is a bundle of version {document.get('version')!r}; "
            f"version {VERSION} is read"
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
            raise ConfigError(f"{where!r}, entry {number}: {entry.id!r} is there already")
        entries_by_id[entry.id] = entry
    return tuple(entries_by_id.values())


def bundle(entries: Iterable[Entry]) -> JsonObject:
    """Return *entries* as a bundle, by id."""
    ordered = sorted(entries, key=lambda entry: entry.id)
    return {"version": VERSION, "entries": [entry_to_json(entry) for entry in ordered]}


def write_bundle(entries: Iterable[Entry]) -> str:
    """Return *entries* as the text of a bundle."""
    return f"{json.dumps(bundle(entries), ensure_ascii=False, indent=2)}\n"

"""Entries <-> JSON, as the store and bundles have them. Pure; reading checks every field."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from gateway.catalog.entries import Entry
from gateway.errors import ConfigError
from gateway.types import Hints, JsonObject

_LISTS = frozenset({"aliases", "keywords", "categories", "tags", "examples"})


def written(entry: Entry) -> str:
    """Write *entry* as JSON, what it leaves open left out; see `read`."""
    return json.dumps(jsonable(entry), ensure_ascii=False, sort_keys=True)


def jsonable(entry: Entry) -> JsonObject:
    """Give *entry* as JSON values, what it leaves open left out; see `parsed`."""
    plain = Entry(kind=entry.kind, name=entry.name)
    told: dict[str, object] = {"kind": entry.kind, "name": entry.name}
    for each in fields(Entry):
        value = getattr(entry, each.name)
        if value != getattr(plain, each.name):
            told[each.name] = _plain(value)
    return told


def _plain(value: object) -> object:
    if isinstance(value, Hints):
        none = Hints()
        held = {each.name: getattr(value, each.name) for each in fields(Hints)}
        return {
            name: list(each) if isinstance(each, tuple) else each
            for name, each in held.items()
            if each != getattr(none, name)
        }
    return sorted(value) if isinstance(value, frozenset) else value


def parsed(raw: object) -> Entry:
    """Read what `jsonable` gave.

    Raises:
        ConfigError: If it is no such thing; it says which field, and what to do.
    """
    known = {each.name for each in fields(Entry)}
    if not isinstance(raw, Mapping) or not {"kind", "name"} <= raw.keys():
        raise ConfigError("an entry is an object with at least 'kind' and 'name'")
    told: dict[str, Any] = dict(raw)
    if foreign := sorted(map(str, told.keys() - known)):
        raise ConfigError(
            f"entry {told['name']!r}: unknown field {foreign[0]!r}; put it into 'metadata'"
        )
    if "hints" in told:
        told["hints"] = _hints(told["name"], told["hints"])
    if "scopes" in told:
        told["scopes"] = frozenset(_strings(told["name"], "scopes", told["scopes"]))
    return Entry(**told)


def _hints(name: object, raw: object) -> Hints:
    known = {each.name for each in fields(Hints)}
    if not isinstance(raw, Mapping) or not raw.keys() <= known:
        raise ConfigError(f"entry {name!r}: 'hints' holds {', '.join(sorted(known))} and no more")
    told: dict[str, Any] = {
        key: _strings(name, key, value) if key in _LISTS else value for key, value in raw.items()
    }
    for key in known - _LISTS:
        if not isinstance(told.get(key, True), bool | None if key != "enabled" else bool):
            raise ConfigError(f"entry {name!r}: hint {key!r} must be true or false")
    return Hints(**told)


def _strings(name: object, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ConfigError(f"entry {name!r}: {key!r} must be a list of texts")
    return tuple(value)


def readable(rows: Mapping[str, str]) -> Sequence[Entry]:
    """Give the entries of *rows* that can be read, by id."""
    found = []
    for _, text in sorted(rows.items()):
        with contextlib.suppress(ConfigError, ValueError):
            found.append(parsed(json.loads(text)))
    return found

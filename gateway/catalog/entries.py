"""Entries: what a person or a manifest says of a thing that no server lists, such as an agent, a
skill, a server that is not connected, or a thing of a kind of the host's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_args

from gateway.catalog.identity import definition_digest
from gateway.catalog.metadata import flatten
from gateway.errors import ConfigError
from gateway.mcp.naming import check_server_name
from gateway.options.validation import hints_fault
from gateway.runtime.text import clean, visible
from gateway.types import Entity, Hints, JsonObject, Status, ToolDefinition

NAMESPACE = "catalog"
"""The namespace of an entry that names none."""
MAX_NAME_CHARS = 256
MAX_TEXT_CHARS = 8192
MAX_METADATA_CHARS = 65_536
"""How long the metadata of one entry may be, as JSON."""
LISTED = frozenset({"tool", "prompt", "resource"})
"""The kinds that only a server lists."""
WORDS = "words"
"""Under which name the details of an entity hold the words of its metadata."""
KIND = r"[a-z][a-z0-9_-]{0,63}"
"""What a kind is called."""
_APART = frozenset({"skills", "instructions"})
"""Keys of the metadata that are not among its words: skills are searched as a field of their own,
instructions are a whole text."""
_LISTS = ("aliases", "keywords", "categories", "tags", "examples")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing of the catalog that no server lists.

    Raises:
        ConfigError: If a field cannot be used; it says which, and what to do.
    """

    kind: str
    """Not ``tool``, ``prompt`` or ``resource``: servers list those."""
    name: str
    """At most 256 visible characters. With kind and namespace it makes the id."""
    title: str = ""
    description: str = ""
    namespace: str = NAMESPACE
    """Whose it is, in the form of a server's name; it becomes the `Entity.server`."""
    status: Status = "active"
    hints: Hints = field(default_factory=Hints)
    scopes: frozenset[str] = frozenset()
    """A caller needs all of these; empty lets anyone see it."""
    metadata: JsonObject = field(default_factory=dict)
    """Whatever else there is, as JSON of at most 65,536 characters."""
    parent: str = ""
    """The id of what it belongs to."""

    def __post_init__(self) -> None:
        """Check every field; scopes may be any set, or a list as JSON has it."""
        if isinstance(self.scopes, set | list | tuple) and all(map(_writable, self.scopes)):
            object.__setattr__(self, "scopes", frozenset(self.scopes))
        faults = [fault for fault in _faults(self) if fault]
        if faults:
            raise ConfigError(f"entry {self.name!r}: {'; '.join(faults)}")
        check_server_name(self.namespace)

    @property
    def id(self) -> str:
        """Its id in the catalog: ``kind:namespace/name``."""
        return entry_id(self.kind, self.namespace, self.name)


def entry_id(kind: str, namespace: str, name: str) -> str:
    """Return the id of an entry: ``kind:namespace/name``, also of a server's."""
    return f"{kind}:{namespace}/{name}"


def _faults(entry: Entry) -> list[str]:
    named = isinstance(entry.name, str) and entry.name.strip() and entry.name.isprintable()
    strings = (entry.title, entry.description)
    return [
        ""
        if isinstance(entry.kind, str) and re.fullmatch(KIND, entry.kind)
        else f"kind {entry.kind!r}: take small letters, digits, '_' or '-', at most 64",
        f"kind {entry.kind!r}: servers list these, add the server"
        if isinstance(entry.kind, str) and entry.kind in LISTED
        else "",
        ""
        if named and len(entry.name) <= MAX_NAME_CHARS
        else f"its name must be a text of 1 to {MAX_NAME_CHARS} characters that can be seen",
        ""
        if all(isinstance(item, str) for item in strings)
        else "title and description must be texts",
        "" if _writable(entry.parent) else "its parent must be a text that UTF-8 can write",
        ""
        if isinstance(entry.scopes, frozenset) and all(map(_writable, entry.scopes))
        else "scopes must be a set of texts that UTF-8 can write",
        hints_fault("hints", entry.hints),
        ""
        if entry.status in get_args(Status)
        else f"status {entry.status!r} is none of {', '.join(get_args(Status))}",
        _metadata_fault(entry.metadata),
    ]


def _writable(text: object) -> bool:
    return isinstance(text, str) and text == text.encode("utf-8", "replace").decode()


def _metadata_fault(metadata: object) -> str:
    fault = "metadata must be a JSON object"
    if not isinstance(metadata, Mapping):
        return fault
    try:
        text = json.dumps(metadata, allow_nan=False)
        same = json.loads(text) == metadata
        if "\\ud" in text:
            # A surrogate that stands alone in a key; in a value it is left out.
            json.dumps(_visible(metadata), ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return fault
    if not same:
        return f"{fault}: texts as keys, lists instead of tuples"
    return "" if len(text) <= MAX_METADATA_CHARS else f"{fault} of {MAX_METADATA_CHARS} characters"


def clean_entry(entry: Entry) -> Entry:
    """Return *entry* without invisible characters and with its texts cut; metadata are not cut."""
    hints = entry.hints
    lists: dict[str, Any] = {
        name: tuple(text for item in getattr(hints, name) if (text := _short(item)))
        for name in _LISTS
    }
    return replace(
        entry,
        title=_short(entry.title),
        description=clean(entry.description, limit=MAX_TEXT_CHARS),
        hints=replace(hints, **lists),
        metadata={key: _visible(value) for key, value in entry.metadata.items()},
    )


def _visible(value: object) -> object:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {key: _visible(item) for key, item in value.items()}
    return list(map(_visible, value)) if isinstance(value, list) else value


def _short(text: str) -> str:
    return clean(text, limit=MAX_NAME_CHARS)


def to_entity(entry: Entry, *, searchable: Sequence[str] | None = None) -> Entity:
    """Return the entity that *entry* is in the catalog.

    Args:
        entry: Of any kind.
        searchable: The parts of its metadata by which it is found, as dot paths; None is all of it.
    """
    metadata = {key: value for key, value in entry.metadata.items() if key not in _APART}
    words = flatten(metadata, searchable)
    definition = ToolDefinition(
        name=entry.name,
        title=entry.title,
        description=entry.description,
        details={WORDS: words} if words else {},
        hints=entry.hints,
        kind=entry.kind,
    )
    searched = [definition_digest(entry.namespace, definition), entry.metadata]
    digest = hashlib.sha256(json.dumps(searched, sort_keys=True).encode()).hexdigest()
    return Entity(
        id=entry.id,
        kind=entry.kind,
        exposed_name=entry.id,
        server=entry.namespace,
        definition=definition,
        status=entry.status,
        scopes=entry.scopes,
        digest=digest,
        parent=entry.parent,
        metadata=entry.metadata,
    )


def encode_entry(entry: Entry) -> str:
    """Return *entry* as the text of `entry_to_json`."""
    return json.dumps(entry_to_json(entry), ensure_ascii=False, sort_keys=True)


def entry_to_json(entry: Entry) -> JsonObject:
    """Return *entry* as JSON values without its defaults; `entry_from_json` reads them."""
    hints = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in _not_default(entry.hints, Hints()).items()
    }
    values = _not_default(entry, Entry(kind=entry.kind, name=entry.name))
    if hints:
        values["hints"] = hints
    if entry.scopes:
        values["scopes"] = sorted(entry.scopes)
    return {"kind": entry.kind, "name": entry.name, **values}


def _not_default(value: Entry | Hints, default: Entry | Hints) -> dict[str, object]:
    values = {item.name: getattr(value, item.name) for item in fields(value)}
    return {name: one for name, one in values.items() if one != getattr(default, name)}


def entry_from_json(raw: object) -> Entry:
    """Return the entry of *raw*, as `entry_to_json` makes it.

    Raises:
        ConfigError: It is no such thing; the message names the field and what to do.
    """
    if not isinstance(raw, Mapping) or not {"kind", "name"} <= raw.keys():
        raise ConfigError("an entry is an object with at least 'kind' and 'name'")
    values: dict[str, Any] = dict(raw)
    unknown = sorted(map(str, values.keys() - {item.name for item in fields(Entry)}))
    if unknown:
        raise ConfigError(
            f"entry {values['name']!r}: unknown field {unknown[0]!r}; put it into 'metadata'"
        )
    hints = values.get("hints", {})
    names = sorted(item.name for item in fields(Hints))
    if not isinstance(hints, Mapping) or not hints.keys() <= {*names}:
        raise ConfigError(f"entry {values['name']!r}: 'hints' holds {', '.join(names)} and no more")
    try:
        values["hints"] = Hints(**hints)
    except TypeError as error:
        raise ConfigError(f"entry {values['name']!r}: {error}") from None
    return Entry(**values)


def decode_entries(rows: Mapping[str, str]) -> Sequence[Entry]:
    """Return the entries of *rows* that can be read, by id."""
    entries = []
    for _, text in sorted(rows.items()):
        with contextlib.suppress(ConfigError, ValueError):
            entries.append(entry_from_json(json.loads(text)))
    return entries

"""Entries: catalog entities (such as agents) that a person or a manifest describes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any, Final

from gateway.catalog.identity import SERVER_KINDS, definition_digest
from gateway.errors import ConfigError, InvalidRequestError
from gateway.options.validation import field_faults, hints_fault
from gateway.runtime.naming import check_server_name
from gateway.runtime.text import clean, is_visible, visible_json
from gateway.types import Entity, Hints, JsonObject, Status, ToolDefinition
from gateway.types.entities import MAX_SEARCH_TEXT_CHARS

NAMESPACE = "catalog"
"""Default namespace of an entry."""
MAX_NAME_CHARS = 256
MAX_TEXT_CHARS = 8192
MAX_METADATA_CHARS = 65_536
"""Maximum length of an entry's metadata as JSON, in characters."""
LISTED = frozenset({"tool", "prompt", "resource"})
"""Kinds of entities that only servers can list, so that an entry cannot have them."""
WORDS = "words"
"""Key in `ToolDefinition.details` of the searchable words of an entry's metadata."""
KIND = r"[a-z][a-z0-9_-]{0,63}"
"""Pattern that the name of a kind must match."""
INSTRUCTIONS = "instructions"
"""Key in a skill's metadata of the skill's full text."""
TOOLS = "tools"
"""Key in a server entry's metadata of the server's tools."""
_NOT_WORDS = frozenset({"skills", INSTRUCTIONS})
"""Metadata keys that are not searched as words: ``skills`` is a field of its own, and instructions
are too long."""
HINTED = ("enabled", "tags", "search_text", "examples")
"""Fields of an entry's `Access` that become `Hints` of its definition."""
_LISTS = ("aliases", "keywords", "categories", "tags", "examples")
MAX_PATHS = 20
MAX_PATH_DEPTH = 5
MAX_SEGMENT = 64
MAX_DEPTH = 6
MAX_VALUES = 200
MAX_VALUE_CHARS = 300
MAX_CHARS = 4000
_SEGMENT = r"[\w-]+"
_URL_STARTS = ("http://", "https://", "data:")
_Tree = dict[str, "_Tree | None"]
_MISSING: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entity of the catalog that no server lists.

    Raises:
        ConfigError: If a field is invalid; the message names the field and the remedy.
    """

    kind: str
    """The kind, but not ``tool``, ``prompt`` or ``resource``, because servers list those."""
    name: str
    """1 to 256 visible characters."""
    title: str = ""
    description: str = ""
    namespace: str = NAMESPACE
    """Owner of the entry, in the characters of server names. It becomes `Entity.server`."""
    status: Status = "active"
    hints: Hints = field(default_factory=Hints)
    scopes: frozenset[str] = frozenset()
    """Scopes that a caller needs, all of them, to see the entry; if empty, everyone sees it."""
    metadata: JsonObject = field(default_factory=dict)
    """Any other data, as JSON of at most 65,536 characters."""
    parent: str = ""
    """Id of the entity that contains this one."""

    def __post_init__(self) -> None:
        if isinstance(self.scopes, set | list | tuple) and all(map(_is_writable, self.scopes)):
            object.__setattr__(self, "scopes", frozenset(self.scopes))
        if faults := field_faults(self) or _faults(self):
            raise ConfigError(f"entry {self.name!r}: {'; '.join(faults)}")
        check_server_name(self.namespace)

    @property
    def id(self) -> str:
        """Id in the catalog: ``kind:namespace/name``."""
        return entry_id(self.kind, self.namespace, self.name)


def entry_id(kind: str, namespace: str, name: str) -> str:
    """Return the id of an entry, also of a server."""
    return f"{kind}:{namespace}/{name}"


def _faults(entry: Entry) -> list[str]:
    is_name = entry.name.strip() and is_visible(entry.name) and len(entry.name) <= MAX_NAME_CHARS
    is_kind = re.fullmatch(KIND, entry.kind)
    are_texts = all(map(_is_writable, (entry.parent, *entry.scopes)))
    rules = {
        f"kind {entry.kind!r}: use at most 64 small letters, digits, '_' or '-'": is_kind,
        f"kind {entry.kind!r}: servers list these, add the server": entry.kind not in LISTED,
        f"its name must be a text of 1 to {MAX_NAME_CHARS} visible characters": is_name,
        "its parent and its scopes must be texts that UTF-8 can write": are_texts,
    }
    faults = [fault for fault, is_kept in rules.items() if not is_kept]
    faults += [hints_fault("hints", entry.hints), _metadata_fault(entry.metadata)]
    return list(filter(None, faults))


def _is_writable(text: object) -> bool:
    return isinstance(text, str) and text == text.encode("utf-8", "replace").decode()


def _metadata_fault(metadata: JsonObject) -> str:
    fault = "metadata must be a JSON object"
    try:
        text = json.dumps(metadata, allow_nan=False)
        same = json.loads(text) == metadata
    except (TypeError, ValueError, RecursionError):
        return fault
    if not same:
        return f"{fault}: texts as keys, lists instead of tuples"
    return "" if len(text) <= MAX_METADATA_CHARS else f"{fault} of {MAX_METADATA_CHARS} characters"


def clean_entry(entry: Entry) -> Entry:
    """Return *entry* with title, description, hints and metadata without invisible characters.

    All of these except the metadata are also cut to their maximum length.
    """
    hints = entry.hints
    lists: dict[str, Any] = {
        name: tuple(text for item in getattr(hints, name) if (text := _short(item)))
        for name in _LISTS
    }
    return replace(
        entry,
        title=_short(entry.title),
        description=clean(entry.description, limit=MAX_TEXT_CHARS),
        hints=replace(
            hints, search_text=clean(hints.search_text, limit=MAX_SEARCH_TEXT_CHARS), **lists
        ),
        metadata=visible_json(entry.metadata),
    )


def _short(text: str) -> str:
    return clean(text, limit=MAX_NAME_CHARS)


def with_use(entry: Entry, use: Mapping[str, Any]) -> Entry:
    """Return *entry* with the values of *use*, keyed by the field of `Access`."""
    hints = {name: value for name, value in use.items() if name in HINTED}
    entry_fields = {name: value for name, value in use.items() if name not in hints}
    return replace(entry, hints=replace(entry.hints, **hints), **entry_fields)


def to_entity(entry: Entry, *, searchable: Sequence[str] | None = None) -> Entity:
    """Convert *entry* to an entity of the catalog.

    *searchable* are the dot paths of the searched metadata; None searches all of it.
    """
    excluded = _NOT_WORDS | {TOOLS} if entry.kind in SERVER_KINDS else _NOT_WORDS
    metadata = {key: value for key, value in entry.metadata.items() if key not in excluded}
    words = flatten(metadata, searchable)
    definition = ToolDefinition(
        name=entry.name,
        title=entry.title,
        description=entry.description,
        details={WORDS: words} if words else {},
        hints=entry.hints,
        kind=entry.kind,
    )
    return Entity(
        id=entry.id,
        kind=entry.kind,
        exposed_name=entry.id,
        server=entry.namespace,
        definition=definition,
        status=entry.status,
        scopes=entry.scopes,
        digest=entry_digest(entry.namespace, definition, entry.metadata),
        parent=entry.parent,
        metadata=entry.metadata,
    )


def entry_digest(namespace: str, definition: ToolDefinition, metadata: JsonObject) -> str:
    """Return the SHA-256 (hex) of all parts of an entry that a search reads."""
    searched = [definition_digest(namespace, definition), metadata]
    return hashlib.sha256(json.dumps(searched, sort_keys=True).encode()).hexdigest()


def encode_entry(entry: Entry) -> str:
    """Return *entry* as JSON text."""
    return json.dumps(entry_to_json(entry), ensure_ascii=False)


def entry_to_json(entry: Entry) -> JsonObject:
    """Return *entry* as a JSON object without default values."""
    values = _not_default(entry, Entry(kind=entry.kind, name=entry.name))
    if hints := _not_default(entry.hints, Hints()):
        values["hints"] = hints
    if entry.scopes:
        values["scopes"] = sorted(entry.scopes)
    return {"kind": entry.kind, "name": entry.name, **values}


def _not_default(value: Entry | Hints, default: Entry | Hints) -> dict[str, object]:
    values = {item.name: getattr(value, item.name) for item in fields(value)}
    return {
        name: list(field_value) if isinstance(field_value, tuple) else field_value
        for name, field_value in values.items()
        if field_value != getattr(default, name)
    }


def entry_from_json(raw: object) -> Entry:
    """Read an entry from JSON, as written by `entry_to_json`.

    Raises:
        ConfigError: If *raw* is not an entry; the message names the field and the remedy.
    """
    values = _read_object(raw, Entry, "an entry")
    if not {"kind", "name"} <= values.keys():
        raise ConfigError("an entry has at least 'kind' and 'name'")
    hints = _read_object(values.get("hints", {}), Hints, f"entry {values['name']!r}: 'hints'")
    try:
        values["hints"] = Hints(**hints)
    except TypeError as error:
        raise ConfigError(f"entry {values['name']!r}: {error}") from None
    return Entry(**values)


def _read_object(raw: object, kind: type[Entry | Hints], owner: str) -> dict[str, Any]:
    names = [item.name for item in fields(kind)]
    if not isinstance(raw, Mapping) or not raw.keys() <= {*names}:
        raise ConfigError(
            f"{owner} is an object of {', '.join(names)}; put all else into 'metadata'"
        )
    return dict(raw)


def decode_entries(rows: Mapping[str, str]) -> Sequence[Entry]:
    """Return the readable entries of *rows* (JSON texts keyed by id), ordered by id."""
    entries = []
    for _, text in sorted(rows.items()):
        with contextlib.suppress(ConfigError, ValueError):
            entries.append(entry_from_json(json.loads(text)))
    return entries


def project(metadata: JsonObject, fields: Sequence[str] | None) -> JsonObject:
    """Return the parts of *metadata* that the paths in *fields* select, in their structure.

    A path through a list applies to each object in the list. Missing parts are omitted. If one path
    is the beginning of another, only the shorter one counts.

    Args:
        metadata: Any JSON object.
        fields: At most 20 dot paths such as ``provider.name``, each with at most 5 parts of at most
            64 letters, digits, '_' and '-'. None returns everything, an empty list nothing.

    Raises:
        InvalidRequestError: If a path is invalid.
    """
    if fields is None:
        return metadata
    part = _pick(metadata, parse_paths(fields))
    return part if isinstance(part, Mapping) else {}


def parse_paths(fields: Sequence[str]) -> _Tree:
    """Parse the dot paths of `project` to a tree of keys. None selects everything below a key.

    Raises:
        InvalidRequestError: If there are too many paths, or one is invalid.
    """
    if len(fields) > MAX_PATHS:
        raise InvalidRequestError(
            f"{len(fields)} metadata fields requested; the maximum is {MAX_PATHS}"
        )
    tree: _Tree = {}
    # Short paths first, because a path includes all longer paths below it.
    for path in sorted(map(_split, fields), key=len):
        branch: _Tree | None = tree
        for name in path[:-1]:
            branch = branch.setdefault(name, {}) if branch is not None else None
        if branch is not None:
            branch.setdefault(path[-1], None)
    return tree


def _split(path: str) -> list[str]:
    names = path.split(".") if isinstance(path, str) else []
    fits = all(len(name) <= MAX_SEGMENT and re.fullmatch(_SEGMENT, name) for name in names)
    if not names or not fits or len(names) > MAX_PATH_DEPTH:
        raise InvalidRequestError(
            f"field {path!r} of metadata: write up to {MAX_PATH_DEPTH} names with dots between "
            f"them, each of up to {MAX_SEGMENT} letters, digits, '_' or '-'"
        )
    return names


def _pick(value: object, tree: _Tree | None) -> object:
    if tree is None:
        return value
    if isinstance(value, list):
        parts = [_pick(item, tree) for item in value if isinstance(item, Mapping | list)]
        return [part for part in parts if part is not _MISSING] or _MISSING
    if not isinstance(value, Mapping):
        return _MISSING
    table = {key: _pick(value[key], below) for key, below in tree.items() if key in value}
    return {key: part for key, part in table.items() if part is not _MISSING} or _MISSING


def flatten(metadata: JsonObject, fields: Sequence[str] | None = None) -> str:
    """Return *metadata* as lines of text, each with the keys that lead to a value, and the value.

    Booleans, nulls and URLs are omitted, because they do not help a search. *fields* are the dot
    paths of the parts to include; None is all.

    Returns:
        At most 200 lines and 4,000 characters, with values at a depth of at most 6, or "".
    """
    lines = islice(_lines(project(metadata, fields), "", MAX_DEPTH), MAX_VALUES)
    return "\n".join(lines)[:MAX_CHARS]


def _lines(value: object, keys: str, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip() and not value.startswith(_URL_STARTS):
            yield f"{keys} {clean(value, limit=MAX_VALUE_CHARS)}".strip()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{keys} {value}".strip()
    elif isinstance(value, Mapping) and depth:
        for key, inner in value.items():
            path = f"{keys} {clean(key, limit=MAX_VALUE_CHARS)}".strip()
            yield from _lines(inner, path, depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from _lines(inner, keys, depth - 1)

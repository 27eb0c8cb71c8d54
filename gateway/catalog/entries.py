"""Entries: what a person or a manifest says of a thing that no server lists, such as an agent, a
skill, a server that is not connected, or a thing of a kind of the host's own. Parts of their
metadata are named by dot paths.
"""

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
INSTRUCTIONS = "instructions"
"""Under which key the metadata of a skill hold its body."""
TOOLS = "tools"
"""Under which key the metadata of a server list its tools."""
_NOT_WORDS = frozenset({"skills", INSTRUCTIONS})
"""Keys of the metadata that are not among its words: skills are searched as a field of their own,
instructions are a whole text. So are the tools of a server, which are entities."""
HINTED = ("enabled", "tags", "search_text", "examples")
"""What an `Access` says that an entry has among its hints."""
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
        if isinstance(self.scopes, set | list | tuple) and all(map(_is_writable, self.scopes)):
            object.__setattr__(self, "scopes", frozenset(self.scopes))
        if faults := field_faults(self) or _faults(self):
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
    """Return what is wrong with an entry whose fields are all of their type."""
    is_name = entry.name.strip() and is_visible(entry.name) and len(entry.name) <= MAX_NAME_CHARS
    is_kind = re.fullmatch(KIND, entry.kind)
    are_texts = all(map(_is_writable, (entry.parent, *entry.scopes)))
    rules = {
        f"kind {entry.kind!r}: take small letters, digits, '_' or '-', at most 64": is_kind,
        f"kind {entry.kind!r}: servers list these, add the server": entry.kind not in LISTED,
        f"its name must be a text of 1 to {MAX_NAME_CHARS} characters that can be seen": is_name,
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
        hints=replace(
            hints, search_text=clean(hints.search_text, limit=MAX_SEARCH_TEXT_CHARS), **lists
        ),
        metadata=visible_json(entry.metadata),
    )


def _short(text: str) -> str:
    return clean(text, limit=MAX_NAME_CHARS)


def with_use(entry: Entry, use: Mapping[str, Any]) -> Entry:
    """Return *entry* with what *use* says, by the names of `Access`; it replaces what was said."""
    hints = {name: value for name, value in use.items() if name in HINTED}
    own = {name: value for name, value in use.items() if name not in hints}
    return replace(entry, hints=replace(entry.hints, **hints), **own)


def to_entity(entry: Entry, *, searchable: Sequence[str] | None = None) -> Entity:
    """Return the entity that *entry* is in the catalog.

    Args:
        entry: Of any kind.
        searchable: The parts of its metadata by which it is found, as dot paths; None is all of it.
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
    """Return the SHA-256 (hex) of all that a search reads of an entry."""
    searched = [definition_digest(namespace, definition), metadata]
    return hashlib.sha256(json.dumps(searched, sort_keys=True).encode()).hexdigest()


def encode_entry(entry: Entry) -> str:
    """Return *entry* as the text of `entry_to_json`."""
    return json.dumps(entry_to_json(entry), ensure_ascii=False)


def entry_to_json(entry: Entry) -> JsonObject:
    """Return *entry* as JSON values without its defaults; `entry_from_json` reads them."""
    values = _not_default(entry, Entry(kind=entry.kind, name=entry.name))
    if hints := _not_default(entry.hints, Hints()):
        values["hints"] = hints
    if entry.scopes:
        values["scopes"] = sorted(entry.scopes)
    return {"kind": entry.kind, "name": entry.name, **values}


def _not_default(value: Entry | Hints, default: Entry | Hints) -> dict[str, object]:
    values = {item.name: getattr(value, item.name) for item in fields(value)}
    return {
        name: list(one) if isinstance(one, tuple) else one
        for name, one in values.items()
        if one != getattr(default, name)
    }


def entry_from_json(raw: object) -> Entry:
    """Return the entry of *raw*, as `entry_to_json` makes it.

    Raises:
        ConfigError: It is no such thing; the message names the field and what to do.
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
    """Return the entries of *rows* that can be read, by id."""
    entries = []
    for _, text in sorted(rows.items()):
        with contextlib.suppress(ConfigError, ValueError):
            entries.append(entry_from_json(json.loads(text)))
    return entries


def project(metadata: JsonObject, fields: Sequence[str] | None) -> JsonObject:
    """Return the parts of *metadata* that *fields* name, in the shape that it has.

    A path goes through a list to each of its objects. What is not there is left out; a path of
    which another is the beginning adds nothing.

    Args:
        metadata: Any JSON object.
        fields: Dot paths such as ``provider.name``: at most 20, each of at most 5 parts of at
            most 64 letters, digits, '_' and '-'. None returns everything, an empty list nothing.

    Raises:
        InvalidRequestError: A path cannot be used.
    """
    if fields is None:
        return metadata
    part = _pick(metadata, parse_paths(fields))
    return part if isinstance(part, Mapping) else {}


def parse_paths(fields: Sequence[str]) -> _Tree:
    """Return dot paths as a tree; see `project`. None stands for all below.

    Raises:
        InvalidRequestError: There are too many, or one cannot be used.
    """
    if len(fields) > MAX_PATHS:
        raise InvalidRequestError(
            f"{len(fields)} fields of metadata; at most {MAX_PATHS} are given"
        )
    tree: _Tree = {}
    # Short ones first: a path swallows those that go on from it.
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
    """Return *metadata* as lines of its keys and values, nested ones with all keys above them.

    Texts and numbers count; booleans, nulls and addresses hold nothing to search by.

    Args:
        metadata: Any JSON object.
        fields: Which parts of it, by dot paths; None is all.

    Returns:
        At most 200 lines, 4,000 characters and 6 levels; empty if nothing is left.
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

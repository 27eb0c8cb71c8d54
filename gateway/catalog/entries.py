"""Entries: what a person or a manifest says of a thing that no server lists, such as an agent, a
skill, a server that is not connected, or a thing of a kind of the host's own.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, get_args

import numpy as np

from gateway.catalog.identity import definition_digest
from gateway.catalog.metadata import flattened
from gateway.errors import ConfigError, InvalidRequestError
from gateway.mcp.naming import check_server_name
from gateway.options import CatalogOptions
from gateway.options.validation import hints_fault
from gateway.runtime.background_loop import in_thread
from gateway.runtime.text import clean, visible
from gateway.runtime.vectors import NDArray
from gateway.types import Entity, Filters, Hints, JsonObject, Status, ToolDefinition

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
    """Give the id of an entry: ``kind:namespace/name``, also of a server's."""
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
        if all(isinstance(each, str) for each in strings)
        else "title and description must be texts",
        "" if _writable(entry.parent) else "its parent must be a text that UTF-8 can write",
        ""
        if isinstance(entry.scopes, frozenset) and all(map(_writable, entry.scopes))
        else "scopes must be a set of texts that UTF-8 can write",
        hints_fault("hints", entry.hints),
        ""
        if entry.status in get_args(Status)
        else f"status {entry.status!r} is none of {', '.join(get_args(Status))}",
        _unfit(entry.metadata),
    ]


def _writable(text: object) -> bool:
    return isinstance(text, str) and text == text.encode("utf-8", "replace").decode()


def _unfit(metadata: object) -> str:
    told = "metadata must be a JSON object"
    if not isinstance(metadata, Mapping):
        return told
    try:
        text = json.dumps(metadata, allow_nan=False)
        same = json.loads(text) == metadata
        if "\\ud" in text:
            # A surrogate that stands alone in a key; in a value it is left out.
            json.dumps(_seen(metadata), ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return told
    if not same:
        return f"{told}: texts as keys, lists instead of tuples"
    return "" if len(text) <= MAX_METADATA_CHARS else f"{told} of {MAX_METADATA_CHARS} characters"


def cleaned(entry: Entry) -> Entry:
    """Give *entry* without invisible characters and with its texts cut; metadata are not cut."""
    hints = entry.hints
    lists: dict[str, Any] = {
        name: tuple(text for each in getattr(hints, name) if (text := _short(each)))
        for name in _LISTS
    }
    return replace(
        entry,
        title=_short(entry.title),
        description=clean(entry.description, limit=MAX_TEXT_CHARS),
        hints=replace(hints, **lists),
        metadata={key: _seen(value) for key, value in entry.metadata.items()},
    )


def _seen(value: object) -> object:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {key: _seen(each) for key, each in value.items()}
    return list(map(_seen, value)) if isinstance(value, list) else value


def _short(text: str) -> str:
    return clean(text, limit=MAX_NAME_CHARS)


def entity_of(entry: Entry, *, searchable: Sequence[str] | None = None) -> Entity:
    """Make the entity that *entry* is in the catalog.

    Args:
        entry: Of any kind.
        searchable: The parts of its metadata by which it is found, as dot paths; None is all of it.
    """
    told = {key: each for key, each in entry.metadata.items() if key not in _APART}
    words = flattened(told, searchable)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some of the catalog's entities."""

    entities: tuple[Entity, ...]
    """Ordered by id."""
    next: str = ""
    """What to give as *after* for the next page; empty on the last one."""


class View(Protocol):
    """The catalog at one moment."""

    @property
    def entities(self) -> Sequence[Entity]:
        """All of them."""

    def mask(self, filters: Filters) -> NDArray[np.bool_]:
        """Say of each whether it passes *filters*, shape (n,)."""

    def position(self, key: str) -> int:
        """Say where the entity with this id stands; KeyError if there is none."""


class Entries(Protocol):
    """Where entries are kept. Every method may raise `StoreError`."""

    def rows(self) -> Mapping[str, str]:
        """Give each entry as JSON, by id."""

    def ids(self) -> Collection[str]:
        """Give the ids of all entries."""

    def entries(self) -> Sequence[Entry]:
        """Give all entries that can be read, by id."""

    def put(self, entries: Sequence[Entry]) -> None:
        """Keep *entries*, all or none, instead of those with the same ids."""

    def remove(self, key: str) -> bool:
        """Forget the entry with this id; say whether it was there."""

    def close(self) -> None:
        """Let go of what is held; the next call takes it up again."""


class Catalog:
    """All entities of one gateway, to look at, and the entries among them, to change.

    Args:
        store: Where entries are kept.
        view: Gives the catalog as it is now.
        changed: Called after every change of the entries.
        options: How many there may be.
        check_open: Raises what a closed gateway answers; asked before the store is.
        held: Resolves ``healthy_only`` into the entities to leave out; see `Health.held`.
    """

    def __init__(
        self,
        store: Entries,
        view: Callable[[], Awaitable[View]],
        changed: Callable[[], None],
        options: CatalogOptions,
        check_open: Callable[[], None],
        held: Callable[[Filters], Filters] = lambda filters: filters,
    ) -> None:
        self._store = store
        self._options = options
        self._view = view
        self._changed = changed
        self._check_open = check_open
        self._held = held

    async def put(self, *entries: Entry) -> tuple[str, ...]:
        """Insert *entries*, all or none, replacing those with the same ids; give the ids.

        The next search finds them.

        Raises:
            InvalidRequestError: There would be too many of them, or one is no `Entry`.
            StoreError: They could not be kept.
            ClosedError: The gateway was closed.
        """
        self._check_open()
        for each in entries:
            if not isinstance(each, Entry):
                told = type(each).__name__
                raise InvalidRequestError(f"put takes entries one by one, as put(*entries): {told}")
        kept = tuple(map(cleaned, entries))
        await in_thread(self._put, kept)
        self._changed()
        return tuple(entry.id for entry in kept)

    def _put(self, entries: Sequence[Entry]) -> None:
        every = {*self._store.ids(), *(entry.id for entry in entries)}
        most = self._options.max_entries
        if len(every) > most:
            raise InvalidRequestError(
                f"the catalog takes {most} entries: remove some, or raise "
                "CatalogOptions.max_entries"
            )
        for kind in {entry.kind for entry in entries} & self._options.kinds.keys():
            most = self._options.kinds[kind].max_entries
            if sum(key.startswith(f"{kind}:") for key in every) > most:
                raise InvalidRequestError(
                    f"the catalog takes {most} entries of kind {kind!r}: remove some, or raise "
                    "CustomKind.max_entries"
                )
        self._store.put(entries)

    async def remove(self, key: str) -> bool:
        """Forget the entry with this id; say whether it was there.

        Raises:
            StoreError: It could not be forgotten.
            ClosedError: The gateway was closed.
        """
        self._check_open()
        gone = await in_thread(self._store.remove, key)
        if gone:
            self._changed()
        return gone

    async def entries(self) -> Sequence[Entry]:
        """Give all entries as they were put, by id.

        Raises:
            StoreError: They cannot be read.
            ClosedError: The gateway was closed.
        """
        self._check_open()
        return await in_thread(self._store.entries)

    async def get(self, key: str, filters: Filters | None = None) -> Entity | None:
        """Give the entity with this id, an entry or not; None if there is none.

        Args:
            key: Its id.
            filters: Who may be seen; None is everybody.
        """
        view = await self._view()
        try:
            at = view.position(key)
        except KeyError:
            return None
        seen = filters is None or view.mask(self._held(filters))[at]
        return view.entities[at] if seen else None

    async def list(
        self, filters: Filters | None = None, *, after: str = "", limit: int = 100
    ) -> Page:
        """Give the entities that follow the id *after*, at most *limit*, by id.

        Args:
            filters: Who may be seen; None is everybody, whatever the kind and the scopes.
            after: The `Page.next` of the page before.
            limit: At least 1.

        Raises:
            InvalidRequestError: If *limit* is below 1.
        """
        if limit < 1:
            raise InvalidRequestError(f"limit must be at least 1, got {limit!r}")
        later = (each for each in await self._seen(filters) if each.id > after)
        found = heapq.nsmallest(limit + 1, later, key=lambda each: each.id)
        more = found[limit - 1].id if len(found) > limit else ""
        return Page(entities=tuple(found[:limit]), next=more)

    async def tags(self, filters: Filters | None = None) -> Mapping[str, int]:
        """Count the entities of each tag, by tag; tags without case.

        Args:
            filters: Who is counted; None is everybody.
        """
        counts: Counter[str] = Counter()
        for entity in await self._seen(filters):
            counts.update({tag.casefold() for tag in entity.hints.tags})
        return {tag: counts[tag] for tag in sorted(counts)}

    async def _seen(self, filters: Filters | None) -> Sequence[Entity]:
        view = await self._view()
        if filters is None:
            return view.entities
        mask = view.mask(self._held(filters))
        return [view.entities[at] for at in np.flatnonzero(mask).tolist()]

"""The sources of one gateway, what they list, and the entities that this makes.

A dead server or a bad tool costs no other.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from gateway.catalog.identity import (
    SERVER_KINDS,
    definition_digest,
    entity_id,
    expose_names,
    to_gateway_uri,
)
from gateway.errors import ConfigError, Failed, attempt
from gateway.options.validation import check_hints
from gateway.runtime.telemetry import Telemetry
from gateway.sources.protocol import Source, load_failed
from gateway.types import Diagnostic, Entity, Hints, ToolDefinition
from gateway.types.listing import Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A source and what the host says of its tools.

    After each change of the source's tools this is another object: then it must be listed again.
    """

    source: Source
    hints: Mapping[str, Hints]
    """By the source's own tool name; they win over what the source says."""
    follows: frozenset[str] = frozenset()
    """The servers whose changes are changes of this one."""
    itself: ToolDefinition | None = None
    """The source as an entity, if it is a server."""


class Registry:
    """The sources of one gateway. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registrations: dict[str, Registration] = {}
        self.generation = 0
        """The number of changes: equal generations mean equal registrations."""
        self._watchers: dict[object, Callable[[], None]] = {}

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call *on_change* after every change, on any thread; return what ends that."""
        token = object()
        self._watchers[token] = on_change

        def end() -> None:
            self._watchers.pop(token, None)

        return end

    def _notify(self) -> None:
        for on_change in tuple(self._watchers.values()):
            on_change()

    def add(
        self,
        source: Source,
        hints: Mapping[str, Hints],
        *,
        follows: frozenset[str] = frozenset(),
        itself: ToolDefinition | None = None,
    ) -> None:
        """Register *source*.

        Args:
            source: Whatever lists and calls.
            hints: By its own tool name.
            follows: The servers whose changes are changes of this one.
            itself: The source as an entity, if it is a server.

        Raises:
            ConfigError: If its name is taken, or *hints* are of another type.
        """
        if not isinstance(hints, Mapping):
            raise ConfigError(
                f"hints of server {source.server!r} must be a Mapping by the names of its tools, "
                f"got {type(hints).__name__}"
            )
        for tool, hint in hints.items():
            check_hints(f"{source.server}/{tool}", hint)
        with self._lock:
            if source.server in self._registrations:
                raise ConfigError(
                    f"a server {source.server!r} is there already: remove it first, "
                    "or choose another name"
                )
            self._registrations[source.server] = Registration(
                source=source, hints=hints, follows=follows, itself=itself
            )
            self._note_change(source.server)
        self._notify()

    def _note_change(self, server: str) -> None:
        self.generation += 1
        for name, follower in self._registrations.items():
            if server in follower.follows:
                self._registrations[name] = replace(follower)

    def mark_dirty(self, server: str) -> None:
        """Record that the tools of *server* changed; an unknown one is ignored."""
        with self._lock:
            changed = self._registrations.get(server)
            if changed is None:
                return
            self._registrations[server] = replace(changed)
            self._note_change(server)
        self._notify()

    def mark_all_dirty(self) -> None:
        """Record that the tools of every server may have changed."""
        for server in self.all():
            self.mark_dirty(server)

    def remove(self, server: str) -> Source | None:
        """Remove *server*; return its source, which the caller closes, or None if unknown."""
        with self._lock:
            removed = self._registrations.pop(server, None)
            if removed is None:
                return None
            self._note_change(server)
        self._notify()
        return removed.source

    def all(self) -> Mapping[str, Registration]:
        """Return the registrations by server, as they are now."""
        with self._lock:
            return dict(self._registrations)

    def __contains__(self, server: object) -> bool:
        """Whether *server* is registered."""
        return server in self._registrations


@dataclass(frozen=True, kw_only=True)
class ListResult:
    """The listing of one source."""

    registration: Registration
    listing: Listing
    failed: bool = False
    """True if the source, or a part of it, could not be listed; what is missing is then as it was
    when last listed, or absent."""

    @cached_property
    def definitions(self) -> Mapping[str, ToolDefinition]:
        """What was listed, and the server itself, with the host's hints, by id."""
        server, hints = self.registration.source.server, self.registration.hints
        itself, listing = self.registration.itself, self.listing
        found = {entity_id(item.kind, server, item.name): item for item in listing.definitions}
        for name, hint in hints.items():
            key = entity_id("tool", server, name)
            if item := found.get(key):
                found[key] = replace(item, hints=merge_hints(hint, item.hints))
        if itself is not None:
            # A disabled tool must not be found, not by the words of its server either.
            enabled = [
                item.name for item in found.values() if item.kind == "tool" and item.hints.enabled
            ]
            found[entity_id(itself.kind, server, itself.name)] = replace(
                itself,
                description=itself.description or listing.instructions,
                details={"tools": enabled},
            )
        return found


async def list_sources(
    registrations: Mapping[str, Registration],
    before: Mapping[str, ListResult],
    *,
    telemetry: Telemetry,
) -> Mapping[str, ListResult]:
    """Return the listing of every source, by server.

    Sources that changed, or whose last listing failed, are listed, all at once.

    Args:
        registrations: The sources.
        before: What they listed last.
        telemetry: Counts failures and quarantined tools.
    """
    wanted = [
        server
        for server, registration in registrations.items()
        if server not in before
        or before[server].failed
        or before[server].registration is not registration
    ]
    results = await asyncio.gather(
        *(_list(registrations[server], before.get(server), telemetry) for server in wanted)
    )
    fresh = dict(zip(wanted, results, strict=True))
    return {server: fresh.get(server) or before[server] for server in registrations}


async def _list(
    registration: Registration, before: ListResult | None, telemetry: Telemetry
) -> ListResult:
    listing = await attempt(registration.source.list_tools())
    if isinstance(listing, Failed):
        error_type = type(listing.error).__name__
        telemetry.add("gateway.upstream.failures", attributes={"error.type": error_type})
        # An earlier listing may be of another source of that name.
        is_same = before is not None and before.registration.source is registration.source
        previous = before.listing if before is not None and is_same else None
        listing = load_failed(registration.source.server, listing, previous)
        return ListResult(registration=registration, listing=listing, failed=True)
    codes = [note.code for note in listing.diagnostics]
    if quarantined := codes.count("tool_quarantined"):
        telemetry.add("gateway.tools.quarantined", quarantined)
    # A source of several parts reports a part that failed; it is then listed again as a whole.
    failed = "source_load_failed" in codes
    return ListResult(registration=registration, listing=listing, failed=failed)


class EntityRegistry:
    """The entities of one gateway. Not for two threads at once.

    An entity whose definition and name stay the same stays the same object.

    Args:
        reserved: Names that no tool may have.
    """

    def __init__(self, *, reserved: frozenset[str]) -> None:
        self.entities: Mapping[str, Entity] = {}
        """By id."""
        self.notes: tuple[Diagnostic, ...] = ()
        """Which names had to be qualified, by name."""
        self._reserved = reserved

    def update(self, listed: Mapping[str, ListResult]) -> None:
        """Replace the catalog by what each source *listed*."""
        definitions = {server: result.definitions for server, result in listed.items()}
        own_names = {
            key: definition.name
            for items in definitions.values()
            for key, definition in items.items()
            if definition.kind == "tool"
        }
        names = expose_names(own_names, reserved=self._reserved)
        entities: dict[str, Entity] = {}
        for server, items in definitions.items():
            trusted = listed[server].registration.source.trusted
            entities |= self._update_server(server, items, names, trusted=trusted)
            for entry in listed[server].listing.entities:
                previous = self.entities.get(entry.id)
                entities[entry.id] = entry if previous is None or previous != entry else previous
        self.entities = entities
        self.notes = _qualified_names(entities)

    def _update_server(
        self,
        server: str,
        definitions: Mapping[str, ToolDefinition],
        names: Mapping[str, str],
        *,
        trusted: bool,
    ) -> dict[str, Entity]:
        """Return the entities of *server*, by id; those that stay the same are the same objects."""
        entities: dict[str, Entity] = {}
        ids = (entity_id(kind, server, server) for kind in sorted(SERVER_KINDS))
        itself = next((key for key in ids if key in definitions), "")
        for key, definition in definitions.items():
            parent = itself if itself != key else ""
            name = names.get(key) or to_gateway_uri(definition.kind, server, definition.name)
            old = self.entities.get(key)
            same = (definition, name, parent, trusted)
            if old and same == (old.definition, old.exposed_name, old.parent, old.trusted):
                entities[key] = old
                continue
            entities[key] = Entity(
                id=key,
                kind=definition.kind,
                exposed_name=name,
                server=server,
                definition=definition,
                trusted=trusted,
                digest=definition_digest(server, definition),
                parent=parent,
            )
        return entities


def _qualified_names(entities: Mapping[str, Entity]) -> tuple[Diagnostic, ...]:
    exposed: defaultdict[str, list[str]] = defaultdict(list)
    for entity in entities.values():
        if entity.kind == "tool" and entity.exposed_name != entity.definition.name:
            exposed[entity.name].append(entity.exposed_name)
    return tuple(
        Diagnostic(
            stage="catalog",
            code="name_qualified",
            detail=f"{name!r} became {', '.join(sorted(names))}",
        )
        for name, names in sorted(exposed.items())
        if len(names) > 1
    )


def merge_hints(first: Hints, second: Hints) -> Hints:
    """Return both sets of hints as one: lists are united, and *first* wins where both say."""

    def merge(one: object, other: object) -> object:
        if isinstance(one, tuple) and isinstance(other, tuple):
            return tuple(dict.fromkeys((*one, *other)))
        return other if one is None else one

    values: dict[str, Any] = {
        item.name: merge(getattr(first, item.name), getattr(second, item.name))
        for item in fields(Hints)
    }
    return Hints(**(values | {"enabled": first.enabled and second.enabled}))

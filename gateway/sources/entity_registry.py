"""What the sources listed -> the entities of the catalog, with their exposed names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.catalog.identity import canonical_id, definition_digest, expose_names
from gateway.catalog.resource_uris import entity_id, to_gateway_uri
from gateway.sources.protocol import Source
from gateway.sources.registry import ListResult, Registration
from gateway.types import Diagnostic, Entity, Hints, ToolDefinition
from gateway.types.listing import Listing

SERVER_KINDS = frozenset({"server", "virtual_server"})
"""The kinds of entities that have tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SourceEntities:
    """What one source puts into the catalog."""

    registration: Registration
    listing: Listing
    trusted: bool
    definitions: Mapping[str, ToolDefinition]
    """What it listed, with the host's hints, by canonical id."""
    parent: str
    """The id of the source itself; empty if it is no server."""
    entities: Mapping[str, Entity]
    """Entities that enter the catalog as they are, by id: they need no exposed name."""


class EntityRegistry:
    """The entities of one gateway. Not for two threads at once.

    An entity whose definition and name stay the same stays the same object.

    Args:
        reserved: Names that no tool may have.
    """

    def __init__(self, *, reserved: frozenset[str]) -> None:
        self.entities: Mapping[str, Entity] = {}
        """By canonical id."""
        self.notes: tuple[Diagnostic, ...] = ()
        """Which names had to be qualified, by name."""
        self._reserved = reserved
        self._sources: Mapping[str, _SourceEntities] = {}

    def update(
        self, registrations: Mapping[str, Registration], listed: Mapping[str, ListResult]
    ) -> None:
        """Replace the catalog by what was listed.

        Args:
            registrations: The sources.
            listed: What each of them listed.
        """
        self._sources = {
            server: self._collect(registrations[server], result.listing)
            for server, result in listed.items()
        }
        names = expose_names(
            (
                (server, definition.name)
                for server, source in self._sources.items()
                for definition in source.definitions.values()
                if definition.kind == "tool"
            ),
            reserved=self._reserved,
        )
        before = self.entities
        entities: dict[str, Entity] = {}
        for server, source in self._sources.items():
            for key, definition in source.definitions.items():
                name = names.get(key) or to_gateway_uri(definition.kind, server, definition.name)
                entities[key] = _entity(key, name, definition, source, before.get(key))
            for key, entity in source.entities.items():
                previous = before.get(key)
                entities[key] = previous if previous is not None and previous == entity else entity
        self.entities = entities
        self.notes = _qualified_names(entities)

    def _collect(self, registration: Registration, listing: Listing) -> _SourceEntities:
        """Gather what a source puts into the catalog; the same if nothing changed."""
        source = registration.source
        entities = self._sources.get(source.server)
        if (
            entities is not None
            and entities.listing is listing
            and entities.registration.hints is registration.hints
            and entities.registration.itself is registration.itself
            and entities.trusted == source.trusted
        ):
            return entities
        return _collect(registration, listing)


def _collect(registration: Registration, listing: Listing) -> _SourceEntities:
    source, hints, itself = registration.source, registration.hints, registration.itself
    server = source.server
    items = {id_of(server, item): item for item in (*listing.tools, *listing.things)}
    parent = next(
        (key for key, item in items.items() if item.kind in SERVER_KINDS and item.name == server),
        "",
    )
    definitions = {
        key: replace(item, hints=merge_hints(hints[item.name], item.hints))
        if item.kind == "tool" and item.name in hints
        else item
        for key, item in items.items()
    }
    entities = {entity.id: entity for entity in listing.entities}
    if itself is not None:
        parent = id_of(server, itself)
        entities[parent] = _server_entity(parent, source, itself, listing, definitions)
    return _SourceEntities(
        registration=registration,
        listing=listing,
        trusted=source.trusted,
        definitions=definitions,
        parent=parent,
        entities=entities,
    )


def _server_entity(
    key: str,
    source: Source,
    itself: ToolDefinition,
    listing: Listing,
    definitions: Mapping[str, ToolDefinition],
) -> Entity:
    # A disabled tool must not be found, not by the words of its server either.
    enabled = [
        item.name for item in definitions.values() if item.kind == "tool" and item.hints.enabled
    ]
    description = itself.description or listing.instructions
    definition = replace(itself, description=description, details={"tools": enabled})
    return Entity(
        id=key,
        kind=itself.kind,
        exposed_name=to_gateway_uri(itself.kind, source.server, itself.name),
        server=source.server,
        definition=definition,
        trusted=source.trusted,
        digest=definition_digest(source.server, definition),
    )


def _entity(
    key: str, name: str, definition: ToolDefinition, source: _SourceEntities, known: Entity | None
) -> Entity:
    """Return the entity of *definition*, which is *known* if that says the same."""
    parent = source.parent if source.parent != key else ""
    if (
        known is not None
        and (known.exposed_name, known.parent, known.trusted) == (name, parent, source.trusted)
        and (known.definition is definition or known.definition == definition)
    ):
        return known
    server = source.registration.source.server
    return Entity(
        id=key,
        kind=definition.kind,
        exposed_name=name,
        server=server,
        definition=definition,
        trusted=source.trusted,
        digest=definition_digest(server, definition),
        parent=parent,
    )


def _qualified_names(entities: Mapping[str, Entity]) -> tuple[Diagnostic, ...]:
    exposed: defaultdict[str, list[str]] = defaultdict(list)
    for entity in entities.values():
        if entity.kind == "tool":
            exposed[entity.name].append(entity.exposed_name)
    return tuple(
        Diagnostic(
            stage="catalog",
            code="name_qualified",
            detail=f"{name!r} became {', '.join(sorted(exposed[name]))}",
        )
        for name in sorted(exposed)
        if len(exposed[name]) > 1
    )


def id_of(server: str, definition: ToolDefinition) -> str:
    """Return the canonical id of what *server* lists."""
    if definition.kind == "tool":
        return canonical_id(server, definition.name)
    return entity_id(definition.kind, server, definition.name)


def merge_hints(first: Hints, second: Hints) -> Hints:
    """Return both sets of hints as one: lists are united, and *first* wins where both say."""

    def unite(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*getattr(first, name), *getattr(second, name))))

    def prefer_first(name: str) -> bool | None:
        value: bool | None = getattr(first, name)
        other: bool | None = getattr(second, name)
        return other if value is None else value

    return Hints(
        aliases=unite("aliases"),
        keywords=unite("keywords"),
        categories=unite("categories"),
        tags=unite("tags"),
        examples=unite("examples"),
        read_only=prefer_first("read_only"),
        destructive=prefer_first("destructive"),
        idempotent=prefer_first("idempotent"),
        enabled=first.enabled and second.enabled,
    )

"""What the sources listed -> the entities of the catalog, with their exposed names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from gateway.catalog.identity import (
    SERVER_KINDS,
    definition_digest,
    entity_id,
    expose_names,
    to_gateway_uri,
)
from gateway.sources.registry import ListResult, Registration
from gateway.types import Diagnostic, Entity, Hints, ToolDefinition
from gateway.types.listing import Listing


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

    def update(
        self, registrations: Mapping[str, Registration], listed: Mapping[str, ListResult]
    ) -> None:
        """Replace the catalog by what was listed.

        Args:
            registrations: The sources.
            listed: What each of them listed.
        """
        definitions = {
            server: _definitions(registrations[server], result.listing)
            for server, result in listed.items()
        }
        names = expose_names(
            (
                (server, definition.name)
                for server, items in definitions.items()
                for definition in items.values()
                if definition.kind == "tool"
            ),
            reserved=self._reserved,
        )
        before = self.entities
        entities: dict[str, Entity] = {}
        for server, items in definitions.items():
            trusted = registrations[server].source.trusted
            parent = _server_id(server, items)
            for key, definition in items.items():
                entity = before.get(key)
                name = names.get(key) or to_gateway_uri(definition.kind, server, definition.name)
                if entity is None or not _is_same(
                    entity, definition, name, parent, trusted=trusted
                ):
                    entity = Entity(
                        id=key,
                        kind=definition.kind,
                        exposed_name=name,
                        server=server,
                        definition=definition,
                        trusted=trusted,
                        digest=definition_digest(server, definition),
                        parent=parent if parent != key else "",
                    )
                entities[key] = entity
            for entry in listed[server].listing.entities:
                previous = before.get(entry.id)
                entities[entry.id] = entry if previous is None or previous != entry else previous
        self.entities = entities
        self.notes = _qualified_names(entities)


def _is_same(
    entity: Entity, definition: ToolDefinition, name: str, parent: str, *, trusted: bool
) -> bool:
    return (
        (entity.definition is definition or entity.definition == definition)
        and entity.exposed_name == name
        and entity.parent == (parent if parent != entity.id else "")
        and entity.trusted == trusted
    )


def _definitions(registration: Registration, listing: Listing) -> dict[str, ToolDefinition]:
    """Return what a source listed, and itself if it is a server, with the host's hints, by id."""
    server, hints, itself = registration.source.server, registration.hints, registration.itself
    definitions = {entity_id(item.kind, server, item.name): item for item in listing.definitions}
    for name, hint in hints.items():
        if item := definitions.get(entity_id("tool", server, name)):
            definitions[entity_id("tool", server, name)] = replace(
                item, hints=merge_hints(hint, item.hints)
            )
    if itself is not None:
        # A disabled tool must not be found, not by the words of its server either.
        enabled = [
            item.name for item in definitions.values() if item.kind == "tool" and item.hints.enabled
        ]
        definitions[entity_id(itself.kind, server, itself.name)] = replace(
            itself,
            description=itself.description or listing.instructions,
            details={"tools": enabled},
        )
    return definitions


def _server_id(server: str, definitions: Mapping[str, ToolDefinition]) -> str:
    """Return the id of the server that has *definitions*; empty if it is no entity."""
    ids = (entity_id(kind, server, server) for kind in sorted(SERVER_KINDS))
    return next((key for key in ids if key in definitions), "")


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

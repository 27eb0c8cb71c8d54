"""What one source puts into the catalog: the things that it listed, and itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.catalog.identity import canonical_id, definition_digest
from gateway.catalog.resource_uris import placed, thing_id
from gateway.sources.protocol import Source
from gateway.types import Entity, Hints, ToolDefinition
from gateway.types.listing import Listing

SERVERS = frozenset({"server", "virtual_server"})
"""The kinds of entities that have tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one source put into the catalog at its last listing."""

    listing: Listing
    hints: Mapping[str, Hints]
    itself: ToolDefinition | None
    trusted: bool
    tools: Mapping[str, ToolDefinition]
    """Definitions of tools and other things as the source gave them, by canonical id."""
    parent: str
    """The id of the source itself; empty if it is no server."""
    entities: Mapping[str, Entity]
    """Entities that enter the catalog unchanged, by id: they need no exposed name of their own."""

    def as_before(self, before: Given) -> set[str]:
        """Give the ids of the tools that did not change since *before*."""
        told = (self.trusted, self.hints, self.parent)
        if told != (before.trusted, before.hints, before.parent):
            return set()
        return {key for key, tool in self.tools.items() if before.tools.get(key) == tool}


def given(
    source: Source, listing: Listing, *, hints: Mapping[str, Hints], itself: ToolDefinition | None
) -> Given:
    """Gather what *source* puts into the catalog.

    Args:
        source: The one that was listed.
        listing: What it listed.
        hints: What the host says of its tools, by the source's own names.
        itself: The source as an entity, if it is a server and does not list itself.
    """
    server = source.server
    things = {id_of(server, each): each for each in (*listing.tools, *listing.things)}
    entities = {each.id: each for each in listing.entities}
    parent = next(
        (key for key, each in things.items() if each.kind in SERVERS and each.name == server), ""
    )
    if itself is not None:
        parent = id_of(server, itself)
        # A disabled tool must not be found, not by the words of its server either.
        open_ = [tool.name for tool in listing.tools if _enabled(tool, hints)]
        told = itself.description or listing.instructions
        whole = replace(itself, description=told, details={"tools": open_})
        entities[parent] = entity_of(parent, server, whole, trusted=source.trusted)
    return Given(
        listing=listing,
        hints=hints,
        itself=itself,
        trusted=source.trusted,
        tools=things,
        parent=parent,
        entities=entities,
    )


def _enabled(tool: ToolDefinition, hints: Mapping[str, Hints]) -> bool:
    told = hints.get(tool.name)
    return tool.hints.enabled and (told is None or told.enabled)


def entity_of(key: str, server: str, definition: ToolDefinition, *, trusted: bool) -> Entity:
    """Make the entity of a resource, a prompt or a server, which needs no name of a function."""
    return Entity(
        id=key,
        kind=definition.kind,
        exposed_name=placed(definition.kind, server, definition.name),
        server=server,
        definition=definition,
        trusted=trusted,
        digest=definition_digest(server, definition),
    )


def id_of(server: str, definition: ToolDefinition) -> str:
    """Give the canonical id of what *server* lists."""
    if definition.kind == "tool":
        return canonical_id(server, definition.name)
    return thing_id(definition.kind, server, definition.name)


def merge(first: Hints, second: Hints) -> Hints:
    """Join two sets of hints: lists are united, what *first* knows wins."""

    def united(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*getattr(first, name), *getattr(second, name))))

    def known(name: str) -> bool | None:
        own: bool | None = getattr(first, name)
        other: bool | None = getattr(second, name)
        return other if own is None else own

    return Hints(
        aliases=united("aliases"),
        keywords=united("keywords"),
        categories=united("categories"),
        tags=united("tags"),
        examples=united("examples"),
        read_only=known("read_only"),
        destructive=known("destructive"),
        idempotent=known("idempotent"),
        enabled=first.enabled and second.enabled,
    )


def turned(
    before: Mapping[str, Given], now: Mapping[str, Given]
) -> tuple[dict[str, None], dict[str, Entity]]:
    """Give the ids of the entities that are gone or changed, and the new and changed ones."""
    gone: dict[str, None] = {}
    new: dict[str, Entity] = {}
    for server in dict.fromkeys((*before, *now)):
        both = before.get(server), now.get(server)
        old, come = (each.entities if each else {} for each in both)
        gone |= dict.fromkeys(key for key, entity in old.items() if come.get(key) != entity)
        new |= {key: entity for key, entity in come.items() if old.get(key) != entity}
    return gone, new

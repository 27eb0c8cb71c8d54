from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from gateway.catalog.entries import TOOLS
from gateway.catalog.identity import (
    SERVER_KINDS,
    definition_digest,
    entity_id,
    expose_names,
    plain_name,
    to_gateway_uri,
)
from gateway.catalog.kinds import tool_details
from gateway.catalog.visibility import EVERYTHING_VISIBLE, NO_RULES, AccessRules, Visibility
from gateway.runtime.json_schema import as_objects, as_text
from gateway.sources.denied_tools import hide_denied, without_tools
from gateway.sources.entries import described_server
from gateway.sources.name_bindings import NameBindings, renamed, similar
from gateway.sources.registry import ListResult
from gateway.sources.transforms import TransformedSource
from gateway.types import Access, Diagnostic, Entity, Hints, Kind, ToolDefinition
from gateway.types.access import NO_ACCESS_RULE, combine, limit
from gateway.types.entities import DEFAULT_STATUSES, merge_hints
from gateway.types.listing import pin_key

_NO_HINTS = Hints()
_CHANGING_FIELDS = (
    *("definition", "exposed_name", "parent", "trusted", "vouched"),
    *("status", "scopes", "generation", "originals"),
)
"""Fields of an entity that may change while its id stays the same."""
_changing_of = attrgetter(*_CHANGING_FIELDS)


class EntityRegistry:
    """The entities of one gateway. Not thread-safe.

    An entity remains the same object until its fields change.

    Args:
        reserved: Names that tools may not have.
        bindings: Bindings of exposed names to tools.
    """

    def __init__(self, *, reserved: frozenset[str], bindings: NameBindings) -> None:
        self.entities: Mapping[str, Entity] = {}
        self.notes: tuple[Diagnostic, ...] = ()
        """Diagnostics about renamed tools, similar names and the store of name bindings."""
        self._reserved = reserved
        self._bindings = bindings

    def update(
        self,
        listed: Mapping[str, ListResult],
        rules: AccessRules = NO_RULES,
        visibility: Visibility = EVERYTHING_VISIBLE,
    ) -> None:
        """Replace the entities by the *listed* definitions, with the access *rules* applied.

        Descriptions of servers omit tools that *visibility* may deny to a caller.
        """
        definitions = {server: result.definitions for server, result in listed.items()}
        own_names = {
            key: definition.name
            for items in definitions.values()
            for key, definition in items.items()
            if definition.kind == "tool"
        }
        names = self._expose_names(own_names, listed)
        governance = _Governance(listed, rules)
        entities: dict[str, Entity] = {}
        for server, items in definitions.items():
            entities |= self._update_server(server, items, names, governance)
            for item in listed[server].listing.entities:
                if item.described and item.server in listed:
                    # A connected server lists its own tools.
                    continue
                entry = governance.entry(item, entities.get(item.parent))
                previous = self.entities.get(entry.id)
                entities[entry.id] = entry if previous is None or previous != entry else previous
        hide_denied(entities, visibility, self.entities)
        self.entities = entities

    def preview(self, result: ListResult, rules: AccessRules) -> Iterable[Entity]:
        """Return the entities of one server before the other servers are listed.

        Exposed names of tools are provisional. A virtual server's listing returns no entities,
        because its aliases need the other servers.
        """
        server = result.registration.source.server
        if result.listing.originals:
            return ()
        governance = _Governance({server: result}, rules)
        return self._update_server(server, result.definitions, {}, governance).values()

    @property
    def naming(self) -> tuple[object, ...]:
        """Reserved names and bindings, which together with the tools determine exposed names."""
        return sorted(self._reserved), self._bindings.digest

    def load_names(self, listed: Mapping[str, ListResult]) -> tuple[Diagnostic, ...]:
        """Load the name bindings, if needed; return diagnostics of a failing store."""
        return self._bindings.load() if _needs_storage(listed) else ()

    def recheck(self) -> bool:
        """If a name is withheld, load the name bindings again; return whether names may have
        changed.
        """
        is_withheld = any(note.code == "name_withheld" for note in self.notes)
        if is_withheld:
            self._bindings.load(again=True)
        return is_withheld

    def _expose_names(
        self, own_names: Mapping[str, str], listed: Mapping[str, ListResult]
    ) -> Mapping[str, str]:
        """Return the exposed name of each tool, keyed by id. Update bindings and diagnostics."""
        named_by_host = frozenset(
            key
            for result in listed.values()
            if _is_named_by_host(result)
            for key in result.definitions
        )
        holders = self._bindings.holders
        names = expose_names(
            own_names, reserved=self._reserved, holders=holders, first=named_by_host
        )
        plain_names = {
            key: plain_name(name, key) for key, name in own_names.items() if names[key] != name
        }
        lost = {key: name.casefold() for key, name in plain_names.items() if names[key] != name}
        claims = {
            name: key
            for key, name in sorted(lost.items(), reverse=True)
            if name in holders and holders[name].partition("/")[0] not in listed
        }
        unwritten = self._bindings.bind(names, claims, keep=_needs_storage(listed))
        self.notes = (
            *unwritten,
            *renamed(lost, claims, plain_names, names, self._bindings.holders),
            *similar(own_names),
        )
        return names

    def _update_server(
        self,
        server: str,
        listed: Mapping[str, ToolDefinition],
        names: Mapping[str, str],
        governance: _Governance,
    ) -> dict[str, Entity]:
        """Return the entities of *server*, keyed by id. Unchanged ones remain the same objects."""
        entities: dict[str, Entity] = {}
        result = governance.listed[server]
        trusted = result.registration.source.trusted
        access = {
            key: governance.access(server, item.kind, item.name) for key, item in listed.items()
        }
        vouched = governance.vouched(server, listed)
        definitions = governance.definitions(server, listed, access)
        generations = {} if result.listing.originals else self._bindings.generations
        ids = (entity_id(kind, server, server) for kind in sorted(SERVER_KINDS))
        itself = next((key for key in ids if key in definitions), "")
        for key, definition in definitions.items():
            parent = itself if itself != key else ""
            name = names.get(key) or to_gateway_uri(definition.kind, server, definition.name)
            status, scopes = access[key].status or "active", access[key].scopes
            is_vouched, generation = trusted or key in vouched, generations.get(key, -1)
            originals = governance.original_ids(server, definition)
            values = (
                *(definition, name, parent, trusted, is_vouched),
                *(status, scopes, generation, originals),
            )
            entity = self.entities.get(key)
            if entity is None or _changing_of(entity) != values:
                changing: dict[str, Any] = dict(zip(_CHANGING_FIELDS, values, strict=True))
                digest = definition_digest(server, definition)
                kind = definition.kind
                entity = Entity(id=key, kind=kind, server=server, digest=digest, **changing)
            entities[key] = entity
        return entities


@dataclass(frozen=True, slots=True)
class _Governance:
    listed: Mapping[str, ListResult]
    rules: AccessRules

    def access(self, server: str, kind: Kind, name: str) -> Access:
        """Return the access of one item, combined from the rules for its source, server and names.

        It is at most as wide as that of its server and, for an alias, of the original.
        """
        result = self.listed.get(server)
        whole = result.registration.access if result else NO_ACCESS_RULE
        if kind in SERVER_KINDS:
            return combine((whole, self.rules.access(server)))
        whole = combine((whole, self.rules.of_server(server, name)))
        # Enabling a server does not enable items that are disabled themselves.
        access = whole if whole.enabled is None else replace(whole, enabled=None)
        original = NO_ACCESS_RULE
        if result is not None:
            key = pin_key(kind, name)
            access = combine((access, result.listing.access.get(key, NO_ACCESS_RULE)))
            if owner := result.listing.originals.get(key):
                original = self._access_by_all_names(*owner, kind)
        access = combine((access, original, self.rules.access(server, name)))
        return limit(limit(access, whole), original)

    def _access_by_all_names(self, server: str, original: str, kind: Kind) -> Access:
        parts = []
        for name in self._names_of(server, original, kind):
            parts.append(self.access(server, kind, name))
            if kind == "tool" and not self._host_hints(server, name).enabled:
                parts.append(Access(enabled=False))
        return combine(parts)

    def _names_of(self, server: str, original: str, kind: Kind) -> Iterator[str]:
        yield original
        result = self.listed.get(server)
        source = result.registration.source if result else None
        if result is None or not isinstance(source, TransformedSource):
            return
        for item in result.listing.definitions:
            if (
                item.kind == kind
                and item.name != original
                and source.original_name(kind, item.name) == original
            ):
                yield item.name

    def _host_hints(self, server: str, name: str) -> Hints:
        result = self.listed.get(server)
        return result.registration.hints.get(name, _NO_HINTS) if result else _NO_HINTS

    def original_ids(self, server: str, item: ToolDefinition) -> tuple[str, ...]:
        """Return the ids of the original of the alias *item*, under all its names."""
        original = self.listed[server].listing.originals.get(pin_key(item.kind, item.name))
        if original is None:
            return ()
        names = dict.fromkeys(self._names_of(*original, item.kind))
        return tuple(entity_id(item.kind, original[0], name) for name in names)

    def vouched(self, server: str, items: Mapping[str, ToolDefinition]) -> AbstractSet[str]:
        """Return the ids of tools for which the host itself set a hint.

        The hint is ``read_only`` or ``destructive``, true or false. Hints of an alias's original
        count too.
        """
        result = self.listed[server]
        host_hints, originals = result.registration.hints, result.listing.originals
        vouched_ids = set()
        for key, item in items.items() if host_hints or originals else ():
            hints = [host_hints.get(item.name, _NO_HINTS)]
            if original := originals.get(item.name):
                names = self._names_of(*original, "tool")
                hints += (self._host_hints(original[0], name) for name in names)
            if item.kind == "tool" and any(
                hint.read_only is not None or hint.destructive is not None for hint in hints
            ):
                vouched_ids.add(key)
        return vouched_ids

    def _with_host_hints(self, server: str, item: ToolDefinition) -> ToolDefinition:
        """Return *item*; for an alias, add the hints that the host gave to the original."""
        listing, hints = self.listed[server].listing, item.hints
        if item.kind == "tool" and (original := listing.originals.get(item.name)):
            for name in self._names_of(*original, "tool"):
                hints = merge_hints(self._host_hints(original[0], name), hints)
        return item if hints is item.hints or hints == item.hints else replace(item, hints=hints)

    def definitions(
        self, server: str, items: Mapping[str, ToolDefinition], access: Mapping[str, Access]
    ) -> Mapping[str, ToolDefinition]:
        """Return *items* with the host's hints and the hints of *access*, keyed by id.

        The description of a server names only tools that every caller who sees the server may
        find.
        """
        originals = self.listed[server].listing.originals
        if originals:
            items = {key: self._with_host_hints(server, item) for key, item in items.items()}
        governed = {key: _with_hints(item, access[key]) for key, item in items.items()}
        tools = {item.name: item for item in governed.values() if item.kind == "tool"}
        for key, item in governed.items():
            if item.kind in SERVER_KINDS and isinstance(names := item.details.get("tools"), list):
                visible = {
                    pin_key(tool.kind, tool.name)
                    for other, tool in governed.items()
                    if (tool.hints.enabled or not item.hints.enabled)
                    and _is_open(access[other], access[key])
                }
                visible_tools = [
                    tool for name in names if name in visible and (tool := tools.get(name))
                ]
                details = {**item.details, **tool_details(visible_tools)}
                if "servers" in details:
                    details["servers"] = sorted(
                        {originals[pin][0] for pin in visible & originals.keys()}
                    )
                governed[key] = replace(item, details=details)
        return governed

    def entry(self, item: Entity, parent: Entity | None) -> Entity:
        """Return the catalog entry *item* with the host's access rules applied.

        *parent*, the entry of a tool's server, limits the access to the tool.
        """
        access = self.rules.access(item.server, item.name)
        if parent is not None and item.described:
            whole = Access(enabled=parent.hints.enabled, status=parent.status, scopes=parent.scopes)
            access = limit(self.access(item.server, item.kind, item.name), whole)
            item = _apply_access(item, whole)
        return self._without_hidden_tools(_apply_access(item, access))

    def _without_hidden_tools(self, entity: Entity) -> Entity:
        """Remove tools from a server's entry that a caller who finds the server may not find."""
        tools = as_objects(entity.metadata.get(TOOLS)) if entity.kind in SERVER_KINDS else []
        server, hidden = described_server(entity.name), set()
        for name in {as_text(tool.get("name")) for tool in tools} - {""}:
            access = self._access_by_all_names(server, name, "tool")
            if access.enabled is False or not _is_open(access, entity):
                hidden.add(name)
        return without_tools(entity, tools, hidden) if hidden else entity


def _is_open(access: Access, server: Access | Entity) -> bool:
    """Return whether every caller who sees *server* also sees items with *access*."""
    statuses = {None, *DEFAULT_STATUSES, server.status}
    return access.status in statuses and access.scopes <= server.scopes


def _with_hints(definition: ToolDefinition, access: Access) -> ToolDefinition:
    if access is NO_ACCESS_RULE:
        return definition
    hints = definition.hints
    changed = replace(
        hints,
        enabled=hints.enabled if access.enabled is None else access.enabled,
        tags=tuple(dict.fromkeys((*hints.tags, *access.tags))),
        search_text=access.search_text or hints.search_text,
        examples=tuple(dict.fromkeys((*hints.examples, *access.examples))),
    )
    return definition if changed == hints else replace(definition, hints=changed)


def _apply_access(entity: Entity, access: Access) -> Entity:
    if access is NO_ACCESS_RULE:
        return entity
    return replace(
        entity,
        definition=_with_hints(entity.definition, access),
        status=access.status or entity.status,
        scopes=entity.scopes | access.scopes,
    )


def _is_named_by_host(result: ListResult) -> bool:
    # The host also wrote the names of aliases.
    return result.registration.source.trusted or bool(result.listing.originals)


def _needs_storage(listed: Mapping[str, ListResult]) -> bool:
    return any(
        len(result.listing.definitions) > 0 and not _is_named_by_host(result)
        for result in listed.values()
    )

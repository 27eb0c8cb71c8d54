"""The entities of a catalog that changes: what came, what went, and what each is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gateway.catalog.identity import Naming, definition_digest
from gateway.sources.registry import Listed, Registration
from gateway.sources.source_entities import Given, entity_of, given, merge, turned
from gateway.types import Diagnostic, Entity, ToolDefinition
from gateway.types.listing import Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnover:
    """How a catalog changed."""

    gone: tuple[Entity, ...]
    """A tool that is another one now is gone and new."""
    new: tuple[Entity, ...]


class KnownEntities:
    """The entities of one gateway. Not for two threads at once.

    A change costs the servers, and the tools of those that were listed again.

    Args:
        reserved: Names that no tool may have.
    """

    def __init__(self, *, reserved: frozenset[str]) -> None:
        self.entities: dict[str, Entity] = {}
        self._naming = Naming(reserved=reserved)
        self._servers: dict[str, Given] = {}
        self._own: dict[str, tuple[str, ...]] = {}
        """Who has each name of a source's own."""
        self._notes: dict[str, Diagnostic] = {}

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """Say which names had to be qualified, by name."""
        return tuple(self._notes[name] for name in sorted(self._notes))

    def change(
        self, registrations: Mapping[str, Registration], listed: Mapping[str, Listed]
    ) -> Turnover:
        """Take what was *listed* for the catalog instead of what was until now.

        Args:
            registrations: The sources.
            listed: What each of them listed.
        """
        seen = {
            server: self._seen(registrations[server], each.listing)
            for server, each in listed.items()
        }
        names = dict.fromkeys((*self._servers, *seen))
        other = [name for name in names if self._servers.get(name) is not seen.get(name)]
        before = {name: self._servers[name] for name in other if name in self._servers}
        now = {name: seen[name] for name in other if name in seen}
        old, new = _tools_turned(before, now)
        left, made = turned(before, now)
        self._servers = seen
        moved = self._naming.change(
            [key for key in old if key not in new and key in self._naming.names],
            [
                (server, tool.name)
                for key, (server, tool) in new.items()
                if key not in old and tool.kind == "tool"
            ],
        )
        gone = [self.entities.pop(key) for key in (*old, *left)]
        came = [*(self._entity(key, *told) for key, told in new.items()), *made.values()]
        for key in sorted(moved - new.keys()):
            known = self.entities[key]
            gone.append(known)
            came.append(replace(known, exposed_name=self._naming.names[key]))
        self.entities.update((entity.id, entity) for entity in came)
        self._qualify(gone, came)
        return Turnover(gone=tuple(gone), new=tuple(came))

    def _seen(self, registration: Registration, listing: Listing) -> Given:
        source = registration.source
        known = self._servers.get(source.server)
        if (
            known is not None
            and known.listing is listing
            and known.hints is registration.hints
            and known.itself is registration.itself
            and known.trusted == source.trusted
        ):
            return known
        return given(source, listing, hints=registration.hints, itself=registration.itself)

    def _entity(self, key: str, server: str, definition: ToolDefinition) -> Entity:
        told = self._servers[server]
        parent = told.parent if told.parent != key else ""
        if definition.kind != "tool":
            made = entity_of(key, server, definition, trusted=told.trusted)
            return replace(made, parent=parent)
        hints = told.hints.get(definition.name)
        if hints is not None:
            definition = replace(definition, hints=merge(hints, definition.hints))
        return Entity(
            id=key,
            exposed_name=self._naming.names[key],
            server=server,
            definition=definition,
            trusted=told.trusted,
            digest=definition_digest(server, definition),
            parent=parent,
        )

    def _qualify(self, gone: Iterable[Entity], new: Iterable[Entity]) -> None:
        changed: dict[str, None] = {}
        for entity in _tools(gone):
            changed[entity.name] = None
            left = tuple(key for key in self._own[entity.name] if key != entity.id)
            self._own[entity.name] = left
        for entity in _tools(new):
            changed[entity.name] = None
            self._own[entity.name] = (*self._own.get(entity.name, ()), entity.id)
        for name in changed:
            holders = self._own[name] or self._own.pop(name)
            self._notes.pop(name, None)
            if len(holders) > 1:
                exposed = ", ".join(sorted(self.entities[key].exposed_name for key in holders))
                self._notes[name] = Diagnostic(
                    stage="catalog", code="name_qualified", detail=f"{name!r} became {exposed}"
                )


def _tools_turned(
    before: Mapping[str, Given], now: Mapping[str, Given]
) -> tuple[dict[str, None], dict[str, tuple[str, ToolDefinition]]]:
    """Give the ids that are gone or changed, and the new and changed tools by id."""
    old: dict[str, None] = {}
    new: dict[str, tuple[str, ToolDefinition]] = {}
    for server in before.keys() - now.keys():
        old.update(dict.fromkeys(before[server].tools))
    for server, each in now.items():
        was = before.get(server)
        known = was.tools if was else {}
        stay = each.as_before(was) if was else set()
        old.update((key, None) for key in known if key not in stay)
        new.update((key, (server, tool)) for key, tool in each.tools.items() if key not in stay)
    return old, new


def _tools(entities: Iterable[Entity]) -> Iterable[Entity]:
    return (entity for entity in entities if entity.kind == "tool")

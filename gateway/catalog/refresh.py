"""Sources -> entities. Listed in parallel; one dead server or one bad tool never loses the rest."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.catalog.identity import canonical_id, definition_digest, exposed_names
from gateway.errors import ConfigError, Failed, attempt
from gateway.telemetry import Telemetry
from gateway.types import Diagnostic, Entity, Hints, ToolDefinition
from gateway.upstream.source import Listing, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A source and what the host says of its tools."""

    source: Source
    hints: Mapping[str, Hints]
    """By the source's own tool name; they win over what the source says."""
    revision: int = 0
    """Counts changes of the source's tools: another revision must be listed again."""


class Registry:
    """The sources of one gateway. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registrations: dict[str, Registration] = {}
        self._generation = 0

    @property
    def generation(self) -> int:
        """Counts changes: equal generations mean equal registrations."""
        return self._generation

    def add(self, source: Source, hints: Mapping[str, Hints]) -> None:
        """Register *source*.

        Raises:
            ConfigError: If its name is taken.
        """
        with self._lock:
            if source.server in self._registrations:
                raise ConfigError(
                    f"a server {source.server!r} is there already: remove it first, "
                    "or choose another name"
                )
            self._generation += 1
            # Not 0: a server of a name that was removed before is another one.
            self._registrations[source.server] = Registration(
                source=source, hints=hints, revision=self._generation
            )

    def touch(self, server: str) -> None:
        """Say that the tools of *server* changed; nothing if it is unknown by now."""
        with self._lock:
            known = self._registrations.get(server)
            if known is None:
                return
            self._registrations[server] = replace(known, revision=known.revision + 1)
            self._generation += 1

    def touch_all(self) -> None:
        """Say that the tools of every server may have changed."""
        for server in self.all():
            self.touch(server)

    def remove(self, server: str) -> Source | None:
        """Forget *server* and give its source, which the caller closes; None if unknown."""
        with self._lock:
            known = self._registrations.pop(server, None)
            if known is None:
                return None
            self._generation += 1
            return known.source

    def all(self) -> Mapping[str, Registration]:
        """Give the registrations by server, as they are now."""
        with self._lock:
            return dict(self._registrations)

    def __contains__(self, server: object) -> bool:
        """Whether *server* is registered."""
        return server in self._registrations


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The listing of one source at one revision."""

    revision: int
    listing: Listing
    failed: bool = False
    """True if the source could not be listed; the listing is then the last good one, or empty."""


async def list_sources(
    registrations: Mapping[str, Registration],
    known: Mapping[str, Listed],
    *,
    telemetry: Telemetry,
) -> Mapping[str, Listed]:
    """List, in parallel, every source whose last listing failed or is of another revision."""
    wanted = [
        server
        for server, registration in registrations.items()
        if server not in known
        or known[server].failed
        or known[server].revision != registration.revision
    ]
    found = await asyncio.gather(
        *(_list(registrations[server], known.get(server), telemetry) for server in wanted)
    )
    fresh = dict(zip(wanted, found, strict=True))
    return {server: fresh.get(server) or known[server] for server in registrations}


async def _list(registration: Registration, known: Listed | None, telemetry: Telemetry) -> Listed:
    listing = await attempt(registration.source.list_tools())
    if isinstance(listing, Failed):
        error_type = type(listing.error).__name__
        telemetry.add("gateway.upstream.failures", attributes={"error.type": error_type})
        note = Diagnostic(
            stage="catalog",
            code="source_load_failed",
            detail=listing.reason
            if registration.source.server in listing.reason
            else f"{registration.source.server!r}: {listing.reason}",
        )
        tools = known.listing.tools if known else ()
        return Listed(
            revision=registration.revision,
            listing=Listing(tools=tools, diagnostics=(note,)),
            failed=True,
        )
    quarantined = sum(note.code == "tool_quarantined" for note in listing.diagnostics)
    if quarantined:
        telemetry.add("gateway.tools.quarantined", quarantined)
    return Listed(revision=registration.revision, listing=listing)


def entities_of(
    registrations: Mapping[str, Registration],
    listed: Mapping[str, Listed],
    *,
    reserved: frozenset[str],
    known: Iterable[Entity] = (),
) -> tuple[tuple[Entity, ...], tuple[Diagnostic, ...]]:
    """Name what was listed, and say which names had to be qualified.

    Args:
        registrations: The sources.
        listed: What each of them listed.
        reserved: Names that no tool may have.
        known: The entities of before; one that is as it was stays the same object.
    """
    before = {entity.id: entity for entity in known}
    tools = [
        (registrations[server], definition)
        for server, each in listed.items()
        for definition in each.listing.tools
    ]
    names = exposed_names(
        ((registration.source.server, tool.name) for registration, tool in tools),
        reserved=reserved,
    )
    entities = tuple(_entity(registration, tool, names, before) for registration, tool in tools)
    return entities, tuple(_qualified(entities))


def _entity(
    registration: Registration,
    definition: ToolDefinition,
    names: Mapping[str, str],
    before: Mapping[str, Entity],
) -> Entity:
    server = registration.source.server
    key = canonical_id(server, definition.name)
    known = before.get(key)
    if (
        known is not None
        and known.definition is definition
        and known.exposed_name == names[key]
        and known.trusted == registration.source.trusted
    ):
        return known
    told = registration.hints.get(definition.name)
    if told is not None:
        definition = replace(definition, hints=merge(told, definition.hints))
    return Entity(
        id=key,
        exposed_name=names[key],
        server=server,
        definition=definition,
        trusted=registration.source.trusted,
        digest=definition_digest(server, definition),
    )


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


def _qualified(entities: Sequence[Entity]) -> Iterable[Diagnostic]:
    own: dict[str, list[Entity]] = {}
    for entity in entities:
        own.setdefault(entity.name, []).append(entity)
    for name, holders in own.items():
        if len(holders) > 1:
            exposed = ", ".join(sorted(entity.exposed_name for entity in holders))
            yield Diagnostic(
                stage="catalog", code="name_qualified", detail=f"{name!r} became {exposed}"
            )

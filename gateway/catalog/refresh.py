"""Sources -> entities. All are listed at once; a dead server or a bad tool costs no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from gateway.catalog.given import Given, entity_of, given, merge, turned
from gateway.catalog.identity import Naming, definition_digest
from gateway.catalog.lasting import LastingSource
from gateway.checks import check_hints
from gateway.errors import ConfigError, Failed, attempt
from gateway.telemetry import Telemetry
from gateway.types import Diagnostic, Entity, Hints, ToolDefinition
from gateway.upstream.source import Listing, Source, readable
from gateway.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A source and what the host says of its tools."""

    source: Source
    hints: Mapping[str, Hints]
    """By the source's own tool name; they win over what the source says."""
    revision: int = 0
    """Counts changes of the source's tools: after each it must be listed again."""
    since: int = 0
    """Its first revision: listings of earlier ones are of another source of that name."""
    follows: frozenset[str] = frozenset()
    """The servers whose changes are changes of this one."""
    itself: ToolDefinition | None = None
    """The source as an entity, if it is a server."""


class Registry:
    """The sources of one gateway. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registrations: dict[str, Registration] = {}
        self._generation = 0
        self._following = False
        """Whether any source ever followed others: if not, a change need not look for followers."""
        self._watchers: dict[object, Callable[[], None]] = {}

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call *changed* after every change, on any thread; give what ends that."""
        token = object()
        self._watchers[token] = changed

        def end() -> None:
            self._watchers.pop(token, None)

        return end

    def _tell(self) -> None:
        for changed in tuple(self._watchers.values()):
            changed()

    @property
    def generation(self) -> int:
        """Counts changes: equal generations mean equal registrations."""
        return self._generation

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
            told = f"by the names of its tools, got {type(hints).__name__}"
            raise ConfigError(f"hints of server {source.server!r} must be a Mapping {told}")
        for tool, each in hints.items():
            check_hints(f"{source.server}/{tool}", each)
        with self._lock:
            if source.server in self._registrations:
                raise ConfigError(
                    f"a server {source.server!r} is there already: remove it first, "
                    "or choose another name"
                )
            self._generation += 1
            self._following |= bool(follows)
            # Not 0: a server whose name was used and removed before is another server.
            self._registrations[source.server] = Registration(
                source=source,
                hints=hints,
                revision=self._generation,
                since=self._generation,
                follows=follows,
                itself=itself,
            )
            self._follow(source.server)
        self._tell()

    def _follow(self, server: str) -> None:
        if not self._following:
            return
        for name, known in self._registrations.items():
            if server in known.follows:
                self._registrations[name] = replace(known, revision=known.revision + 1)

    def touch(self, server: str) -> None:
        """Note that the tools of *server* changed; an unknown one is ignored."""
        with self._lock:
            known = self._registrations.get(server)
            if known is None:
                return
            self._registrations[server] = replace(known, revision=known.revision + 1)
            self._follow(server)
            self._generation += 1
        self._tell()

    def touch_all(self) -> None:
        """Note that the tools of every server may have changed."""
        for server in self.all():
            self.touch(server)

    def remove(self, server: str) -> Source | None:
        """Forget *server* and give its source, which the caller closes; None if unknown."""
        with self._lock:
            known = self._registrations.pop(server, None)
            if known is None:
                return None
            self._follow(server)
            self._generation += 1
        self._tell()
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
    """True if the source, or a part of it, could not be listed; what is missing is then as it was
    when last listed, or absent."""


async def list_sources(
    registrations: Mapping[str, Registration],
    known: Mapping[str, Listed],
    *,
    telemetry: Telemetry,
) -> Mapping[str, Listed]:
    """List every source whose last listing failed or is of another revision.

    Lists that are remembered are taken as they are; the other sources are asked all at once.
    """
    wanted = [
        server
        for server, registration in registrations.items()
        if server not in known
        or known[server].failed
        or known[server].revision != registration.revision
    ]
    fresh: dict[str, Listed] = {}
    for server in wanted:
        registration = registrations[server]
        # Awaited here, without a task for each.
        listing = await attempt(_remembered(registration.source))
        # What failed here fails again, with its diagnostic, when the source is asked.
        if isinstance(listing, Listing):
            fresh[server] = _told(registration, listing, telemetry)
    asked = [server for server in wanted if server not in fresh]
    found = await asyncio.gather(
        *(_list(registrations[server], known.get(server), telemetry) for server in asked)
    )
    fresh |= zip(asked, found, strict=True)
    return {server: fresh.get(server) or known[server] for server in registrations}


async def read_late(
    registrations: Mapping[str, Registration], listed: Mapping[str, Listed], *, telemetry: Telemetry
) -> Mapping[str, Listed]:
    """Read the tools of *listed* that are late; what another process changed is listed again."""
    asked = [server for server, each in listed.items() if not readable(each.listing)]
    found = await asyncio.gather(
        *(_list(registrations[server], None, telemetry) for server in asked)
    )
    return {**listed, **dict(zip(asked, found, strict=True))}


async def _remembered(source: Source) -> Listing | None:
    """Give a list that needs no waiting, so no task either: a start has hundreds of sources."""
    return source.at_hand() if isinstance(source, LastingSource) else None


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
        before = known.listing if known and known.revision >= registration.since else Listing()
        return Listed(
            revision=registration.revision,
            listing=replace(before, diagnostics=(note,)),
            failed=True,
        )
    return _told(registration, listing, telemetry)


def _told(registration: Registration, listing: Listing, telemetry: Telemetry) -> Listed:
    codes = [note.code for note in listing.diagnostics]
    quarantined = codes.count("tool_quarantined")
    if quarantined:
        telemetry.add("gateway.tools.quarantined", quarantined)
    # A source of several parts tells of a part that failed; it is then tried again as a whole.
    failed = "source_load_failed" in codes
    return Listed(revision=registration.revision, listing=listing, failed=failed)


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

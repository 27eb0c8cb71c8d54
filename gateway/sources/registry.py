"""Sources -> entities. All are listed at once; a dead server or a bad tool costs no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from gateway.checks import check_hints
from gateway.errors import ConfigError, Failed, attempt
from gateway.runtime.telemetry import Telemetry
from gateway.sources.cached import LastingSource
from gateway.sources.protocol import Source, readable
from gateway.types import Diagnostic, Hints, ToolDefinition
from gateway.types.listing import Listing


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

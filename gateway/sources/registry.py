"""The sources of one gateway, and what they list. A dead server or a bad tool costs no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from gateway.errors import ConfigError, Failed, attempt
from gateway.options.validation import check_hints
from gateway.runtime.telemetry import Telemetry
from gateway.sources.protocol import Source, load_failed
from gateway.types import Hints, ToolDefinition
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
            self.generation += 1
            self._registrations[source.server] = Registration(
                source=source, hints=hints, follows=follows, itself=itself
            )
            self._mark_followers(source.server)
        self._notify()

    def _mark_followers(self, server: str) -> None:
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
            self._mark_followers(server)
            self.generation += 1
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
            self._mark_followers(server)
            self.generation += 1
        self._notify()
        return removed.source

    def all(self) -> Mapping[str, Registration]:
        """Return the registrations by server, as they are now."""
        with self._lock:
            return dict(self._registrations)

    def __contains__(self, server: object) -> bool:
        """Whether *server* is registered."""
        return server in self._registrations


@dataclass(frozen=True, slots=True, kw_only=True)
class ListResult:
    """The listing of one source."""

    registration: Registration
    listing: Listing
    failed: bool = False
    """True if the source, or a part of it, could not be listed; what is missing is then as it was
    when last listed, or absent."""


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

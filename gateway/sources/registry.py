from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property

from gateway.catalog.approvals import apply_policies
from gateway.catalog.identity import entity_id
from gateway.catalog.visibility import AccessRules, MakeVisibility, without_policies
from gateway.errors import ConfigError, Failed, attempt
from gateway.options import AccessPolicy, UpstreamOptions
from gateway.options.validation import check_hints
from gateway.runtime.telemetry import Telemetry
from gateway.sources.cached import CachedSource, preload
from gateway.sources.protocol import Source, load_failed
from gateway.types import Access, Caller, Hints, ToolDefinition
from gateway.types.access import NO_ACCESS_RULE
from gateway.types.entities import merge_hints
from gateway.types.listing import Listing


@dataclass(frozen=True, slots=True)
class Registration:
    """A source, with the host's hints and access rule for it.

    Each change of its tools creates a new object, so that it is listed again.
    """

    source: Source
    hints: Mapping[str, Hints] = field(default_factory=dict)
    """Hints, keyed by the source's own tool name, with priority over the source's hints."""
    _: KW_ONLY
    follows: frozenset[str] = frozenset()
    """Names of servers. A change of one of them also counts as a change of this source."""
    itself: ToolDefinition | None = None
    """Definition of the source as an entity, if it is a server; else None."""
    limits: UpstreamOptions | None = None
    """Limits for checking the source's listing; None if the source checks its listing itself."""
    access: Access = NO_ACCESS_RULE
    """Access rule of the host for the whole source."""


class Registry:
    """The sources of one gateway, and its access rules. Thread-safe.

    Args:
        rules: See `CatalogOptions.rules`.
        visibility: Returns the visibility that access policies produce.
    """

    def __init__(
        self,
        rules: Mapping[str, Access] | None = None,
        visibility: MakeVisibility = without_policies,
    ) -> None:
        self._rules: dict[str, tuple[Mapping[str, Access], ...]] = {"": (dict(rules or {}),)}
        """Tables of access rules, keyed by origin ("" for the options)."""
        self._policies: dict[str, tuple[AccessPolicy, ...]] = {"": (), "files": ()}
        """Access policies, keyed by origin ("" for the host)."""
        self.make_visibility = visibility
        self.visibility = visibility(())
        self._visibility_changes = 0
        self._lock = threading.Lock()
        self._registrations: dict[str, Registration] = {}
        self._followers: defaultdict[str, set[str]] = defaultdict(set)
        """Servers to list again after a change of another server, keyed by that other server."""
        self.generation = 0
        """Number of changes so far, of registrations, rules, policies and documents."""
        self._watchers: dict[object, Callable[[], None]] = {}

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call *on_change* after changes (except of documents), on the thread that made them.

        Returns:
            Function that ends these calls.
        """
        token = object()
        self._watchers[token] = on_change

        def end() -> None:
            self._watchers.pop(token, None)

        return end

    def _notify(self) -> None:
        for on_change in tuple(self._watchers.values()):
            on_change()

    def add(self, registration: Registration) -> None:
        """Register a source.

        Raises:
            ConfigError: If the name is taken, or the hints have the wrong type.
        """
        source, hints = registration.source, registration.hints
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
            self._registrations[source.server] = registration
            for server in registration.follows:
                self._followers[server].add(source.server)
            self._note_change(source.server)
        self._notify()

    def _note_change(self, server: str) -> None:
        self.generation += 1
        for name in self._followers.get(server, ()):
            self._registrations[name] = replace(self._registrations[name])

    @property
    def rules(self) -> AccessRules:
        """Current access rules, those of the options first."""
        with self._lock:
            return AccessRules(*(table for tables in self._rules.values() for table in tables))

    def set_rules(self, origin: str, *tables: Mapping[str, Access]) -> None:
        """Replace the access rules of *origin* (such as ``files``)."""
        rules = tuple(table for table in map(dict, tables) if table)
        with self._lock:
            if self._rules.get(origin, ()) == rules:
                return
            self._rules[origin] = rules
            self.generation += 1
        self._notify()

    def set_policies(self, origin: str, policies: tuple[AccessPolicy, ...]) -> None:
        """Replace the access policies of *origin*: "" for the host, or ``files``.

        Raises:
            ConfigError: If no plugin enforces *policies*. No policy is then changed.
        """
        with self._lock:
            if self._policies[origin] == policies:
                return
            changed = {**self._policies, origin: policies}
            visibility = self.make_visibility((*changed[""], *changed["files"]))
            self._visibility_changes += visibility.hiding != self.visibility.hiding
            self._policies, self.visibility = changed, visibility
            self.generation += 1
        self._notify()

    def audience(self, caller: Caller) -> Hashable:
        """Return a key. Callers with equal keys can see the same entities.

        The key also changes with the policies that hide entities.
        """
        with self._lock:
            visibility, changes = self.visibility, self._visibility_changes
        return caller.scopes, changes, visibility.audience(caller)

    def mark_dirty(self, server: str) -> None:
        """Record that the tools of *server*, if known, changed."""
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

    def mark_changed(self) -> None:
        """Record a change outside of the sources, for example of the host's documents."""
        with self._lock:
            self.generation += 1

    def remove(self, server: str) -> Source | None:
        """Remove *server*. Return its source, which the caller has to close, or None if unknown."""
        with self._lock:
            removed = self._registrations.pop(server, None)
            if removed is None:
                return None
            for followed in removed.follows:
                self._followers[followed].discard(server)
            self._note_change(server)
        self._notify()
        return removed.source

    def all(self) -> Mapping[str, Registration]:
        """Return the current registrations, keyed by server."""
        with self._lock:
            return dict(self._registrations)

    def __contains__(self, server: object) -> bool:
        return server in self._registrations


@dataclass(frozen=True, kw_only=True)
class ListResult:
    """Listing of one source."""

    registration: Registration
    listing: Listing
    failed: bool = False
    """True if the source, or a part of a combined source, could not be listed. Its definitions are
    then missing or from the last listing."""

    def makes_same_index(self, other: ListResult) -> bool:
        """Return whether *other* would produce the same index."""
        is_same = self.registration is other.registration and self.failed == other.failed
        return is_same and self.listing.content == other.listing.content

    @cached_property
    def definitions(self) -> Mapping[str, ToolDefinition]:
        """Definitions of all items and of the server itself, with the host's hints, keyed by id."""
        server, hints = self.registration.source.server, self.registration.hints
        itself, listing = self.registration.itself, self.listing
        items = {entity_id(item.kind, server, item.name): item for item in listing.definitions}
        for name, hint in hints.items():
            key = entity_id("tool", server, name)
            if item := items.get(key):
                items[key] = replace(item, hints=merge_hints(hint, item.hints))
        if itself is not None:
            # A disabled tool must not be found through its server's description.
            enabled = [
                item.name for item in items.values() if item.kind == "tool" and item.hints.enabled
            ]
            items[entity_id(itself.kind, server, itself.name)] = replace(
                itself,
                description=itself.description or listing.instructions,
                details={"tools": enabled},
            )
        return items


async def list_sources(
    registrations: Mapping[str, Registration],
    before: Mapping[str, ListResult],
    *,
    telemetry: Telemetry,
    progress: Callable[[int, int], None] = lambda *_: None,
    on_listed: Callable[[ListResult], None] = lambda _: None,
) -> Mapping[str, ListResult]:
    """Return the listing of every source, keyed by server.

    Sources that changed, or whose last listing failed, are listed in parallel.

    Args:
        registrations: Registered sources, keyed by server.
        before: Last results, keyed by server.
        telemetry: Counts failures of sources and of the store, and quarantined tools.
        progress: Called before and after servers are listed, with the number of finished servers
            and the total number. Not called if stored listings suffice.
        on_listed: Called with the listing of each server that had to be asked, while other sources
            are still being listed.
    """
    outdated = [
        server
        for server, registration in registrations.items()
        if server not in before
        or before[server].failed
        or before[server].registration is not registration
    ]
    # Including the sources inside transforms.
    sources = [
        getattr(outer := registrations[server].source, "inner", outer) for server in outdated
    ]
    preload(sources)
    asked = {
        server
        for server, source in zip(outdated, sources, strict=True)
        if isinstance(source, CachedSource) and source.asks_server
    }
    remaining, count = {*outdated}, len(asked)
    if count:
        progress(0, count)

    async def list_one(server: str) -> ListResult:
        result = await _list_source(registrations[server], before.get(server), telemetry)
        remaining.discard(server)
        if remaining and server in asked and not result.failed:
            on_listed(result)
        return result

    results = await asyncio.gather(*map(list_one, outdated))
    if count:
        progress(count, count)
    fresh = dict(zip(outdated, results, strict=True))
    return {server: fresh.get(server) or before[server] for server in registrations}


async def _list_source(
    registration: Registration, before: ListResult | None, telemetry: Telemetry
) -> ListResult:
    listing = await attempt(_read_listing(registration))
    if isinstance(listing, Failed):
        error_type = type(listing.error).__name__
        telemetry.add("gateway.upstream.failures", attributes={"error.type": error_type})
        # The earlier result may belong to another source with the same name.
        is_same = before is not None and before.registration.source is registration.source
        previous = before.listing if before is not None and is_same else None
        listing = load_failed(registration.source.server, listing, previous)
        result = ListResult(registration=registration, listing=listing, failed=True)
        # If only a diagnostic text differs, the index is unchanged.
        return before if before and before.makes_same_index(result) else result
    codes = [note.code for note in listing.diagnostics]
    if quarantined := codes.count("tool_quarantined"):
        telemetry.add("gateway.tools.quarantined", quarantined)
    store_codes = {"catalog_unavailable", "store_rebuilt"}
    telemetry.store_failed("catalog", [code for code in codes if code in store_codes])
    # A combined source reports a failed part by this diagnostic.
    failed = "source_load_failed" in codes
    return ListResult(registration=registration, listing=listing, failed=failed)


async def _read_listing(registration: Registration) -> Listing:
    source, limits = registration.source, registration.limits
    listing = await source.list_tools()
    if limits is None:
        return listing
    from gateway.mcp.collector import check_listing  # noqa: PLC0415  (the scanner is heavy: only a host with sources of its own pays for it)

    # Scanning megabytes of text takes seconds, so other sources continue meanwhile.
    checked = await asyncio.to_thread(
        check_listing, listing, source.server, limits, trusted=source.trusted
    )
    return apply_policies(checked, {}, server=source.server, options=limits)

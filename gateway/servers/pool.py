"""Creation of sources from configured servers and virtual servers. Servers are not started here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

from gateway.errors import InvalidRequestError, attempt
from gateway.mcp.servers import ApiOpener, HttpServer, StdioServer
from gateway.options import Options
from gateway.runtime.background_loop import Bridge, in_thread
from gateway.runtime.cache import Clock, SingleFlight
from gateway.servers.config_files import Configured
from gateway.sources.cached import CachedSource, CacheKey
from gateway.sources.listing_store import ListingStore
from gateway.sources.mcp import ClientCapabilities, McpSource
from gateway.sources.protocol import Source
from gateway.sources.registry import Registration, Registry
from gateway.sources.transforms import TransformedSource
from gateway.sources.virtual import VirtualServer, VirtualSource
from gateway.storage.host_key import approval_key
from gateway.storage.oauth_tokens import OpenTokens, with_token_store
from gateway.types import Diagnostic, Filters, Hints, SearchResult, ToolDefinition
from gateway.types.listing import Listing

_ANYBODY = Filters()
_CHECK_STEP_S = 1.0
"""Interval in seconds between checks for old listings, because each check visits every server."""


@dataclass(eq=False, repr=False)
class ServerPool:
    """The configured servers and virtual servers of one gateway, as sources of *registry*.

    Args:
        tokens: Opens the token store of a sign-in.
        openers: Functions that open HTTP APIs, keyed by their configuration key.
    """

    registry: Registry
    bridge: Bridge
    store: ListingStore
    options: Options
    _: KW_ONLY
    tokens: OpenTokens
    openers: Mapping[str, ApiOpener]
    clock: Clock

    def __post_init__(self) -> None:
        self._upstream = self.options.upstream
        self._are_entities = self.options.catalog.servers
        self.cached: dict[str, CachedSource] = {}
        """Sources with a stored listing, keyed by server."""
        self.capabilities = ClientCapabilities()
        self._next_check = -math.inf
        self._retry_at: dict[str, float] = {}
        """Time of the next attempt to reach each unhealthy server, keyed by server."""
        self._swept = self.clock()
        self._sweeps = SingleFlight[None](self.bridge.submit)
        self._listings = SingleFlight[Listing](self.bridge.submit)

    def add(self, name: str, entry: Configured, hints: Mapping[str, Hints] | None = None) -> None:
        """See `Servers.add`.

        Raises:
            ConfigError: If the name is taken or illegal.
        """
        target = entry.target
        if isinstance(target, VirtualServer):
            virtual = VirtualSource(
                target,
                sources=self._real_sources,
                store=self.store,
                owner=entry.owner,
                options=self._upstream,
            )
            self.registry.add(Registration(virtual, follows=target.servers, access=entry.access))
            return
        if isinstance(target, HttpServer):
            target = with_token_store(name, self._with_opener(target), self.tokens)

        def invalidate() -> None:
            source.invalidate()

        live = McpSource(
            name,
            target,
            bridge=self.bridge,
            options=self._upstream,
            trusted=entry.trusted,
            clock=self.clock,
            on_change=invalidate,
            capabilities=self.capabilities,
            public_url=self.options.public_url,
        )
        source = CachedSource(
            live,
            store=self.store,
            key=self._cache_key(target, entry.owner),
            flights=self._listings,
            options=self._upstream,
            on_change=lambda: self.registry.mark_dirty(name),
            clock=self.clock,
        )
        self._register(name, source, entry, {} if hints is None else hints)
        self.cached[name] = source

    def _with_opener(self, target: HttpServer) -> HttpServer:
        return replace(target, opener=self.openers.get("openapi")) if target.openapi else target

    def refresh_stale(self) -> None:
        """In the background, list servers with an old listing, and delete unused stored
        listings.
        """
        now = self.clock()
        if now < self._next_check:
            return
        if now >= self._swept + self._upstream.cleanup_s:
            self._swept = now
            self._sweeps.start("sweep", self._sweep)
        dues = [source.refresh_if_stale() for source in tuple(self.cached.values())]
        # At the next call if a server is being listed now.
        self._next_check = min((now + _CHECK_STEP_S, *dues))

    def change(self, name: str, entry: Configured, *, restart: bool) -> None:
        """Change the settings of *name*. Unless *restart*, it keeps its listing and session."""
        source = self.cached.get(name)
        self.registry.remove(name)
        if source is None or restart:
            self.cached.pop(name, None)
            self.add(name, entry)
        else:
            self._register(name, source, entry, {})

    def recheck(self, names: Iterable[str], *, relisted: bool = False) -> None:
        """Make newly approved definitions of the servers *names* available.

        If *relisted*, also read the listings that other processes stored.
        """
        self._next_check = -math.inf
        registered = self.registry.all()
        for name in names:
            source = self.cached.get(name) or registered[name].source
            if isinstance(source, CachedSource):
                is_due = source.recheck(relisted=relisted)
            else:
                is_due = isinstance(source, VirtualSource) and source.recheck()
            if is_due:
                self.registry.mark_dirty(name)

    def remove(self, name: str) -> Source | None:
        """Remove the source *name* and its stored listing. Return it unclosed; None if missing."""
        source = self.registry.remove(name)
        cached = self.cached.pop(name, None)
        if cached is not None:
            cached.forget()
        return source

    def expire(self) -> None:
        """Make the next index build list every server again."""
        for source in tuple(self.cached.values()):
            source.expire()

    def pin_owners(self) -> dict[str, str]:
        """Return the owners of the pins of servers with pins, keyed by server."""
        owners = {}
        for name, registration in self.registry.all().items():
            source = self.cached.get(name) or registration.source
            if isinstance(source, VirtualSource):
                owners[name] = source.pin_owner
            elif isinstance(source, CachedSource) and source.key.fingerprint:
                owners[name] = source.key.pin_owner
        return owners

    def resolve_filters(self, filters: Filters | None) -> Filters:
        """Return *filters*, or the default if None. ``healthy_only`` excludes unhealthy servers.

        Raises:
            InvalidRequestError: If *filters* has the wrong type.
        """
        if filters is None:
            return _ANYBODY
        if not isinstance(filters, Filters):
            raise InvalidRequestError(f"filters must be a Filters(…), got {type(filters).__name__}")
        if not filters.healthy_only:
            return filters
        return replace(filters, without=filters.without | self._find_unhealthy())

    def gauges(self) -> Mapping[str, Mapping[str, float]]:
        """Return the numbers of servers known to be up and down."""
        states = [source.live.healthy for source in tuple(self.cached.values())]
        return {"gateway.servers": {"up": states.count(True), "down": states.count(False)}}

    def note_stale(self, result: SearchResult) -> SearchResult:
        """Add a diagnostic to *result* for each unhealthy server in it, and try to reach them
        again.

        Unhealthy servers are unreachable, or could not be listed again.
        """
        registered, stale = self.registry.all(), set[str]()
        for match in result.shown:
            owner = registered.get(match.server)
            virtual = owner.source if owner and isinstance(owner.source, VirtualSource) else None
            name = virtual.behind.get(match.id, "") if virtual else match.server
            source = self.cached.get(name)
            if source is not None and (source.is_stale or not source.live.healthy):
                stale.add(match.server)
        if not stale:
            return result
        self._find_unhealthy()
        detail = "{!r}: cannot be reached or listed now; its tools are from the last listing"
        notes = (
            Diagnostic(stage="catalog", code="source_stale", detail=detail.format(server))
            for server in sorted(stale)
        )
        return replace(result, diagnostics=(*result.diagnostics, *notes))

    def _find_unhealthy(self) -> frozenset[str]:
        """Return the names of the unhealthy servers, and the ids of virtual items that use them.

        Searches may exclude them, so that no call would notice their recovery. Therefore they are
        tried again in the background, as often as their circuit breaker allows.
        """
        now, retry_s = self.clock(), self._upstream.retry_after_s
        sources = dict(self.cached)
        down = {name: source for name, source in sources.items() if not source.live.healthy}
        # The failure is recent, so wait before the first retry.
        retry_at = {name: self._retry_at.get(name, now + retry_s) for name in down}
        for name, source in down.items():
            if now >= retry_at[name]:
                retry_at[name] = now + retry_s
                source.invalidate()
        self._retry_at = retry_at
        virtual = (
            registration.source
            for registration in self.registry.all().values()
            if isinstance(registration.source, VirtualSource)
        )
        behind = (key for source in virtual for key, name in source.behind.items() if name in down)
        return frozenset({*down, *behind})

    async def _sweep(self) -> None:
        # The next caller that uses the store reports its errors.
        await attempt(in_thread(self.store.sweep))

    def _register(
        self, name: str, source: Source, entry: Configured, hints: Mapping[str, Hints]
    ) -> None:
        if entry.transforms:
            source = TransformedSource(source, *entry.transforms)
        itself = ToolDefinition(name=name, kind="server") if self._are_entities else None
        self.registry.add(Registration(source, hints, itself=itself, access=entry.access))
        self._next_check = -math.inf

    def _real_sources(self) -> dict[str, Source]:
        return {
            name: self.cached.get(name, registration.source)
            for name, registration in self.registry.all().items()
            if not isinstance(registration.source, VirtualSource)
        }

    def _cache_key(self, target: object, owner: str) -> CacheKey:
        if not isinstance(target, StdioServer | HttpServer):
            return CacheKey(fingerprint="")
        return CacheKey(
            fingerprint=target.fingerprint,
            owner=owner,
            # Command lines from code need no approval. A file may have been changed by someone.
            command_line=target.approval_digest(self._key) if owner else "",
        )

    @cached_property
    def _key(self) -> bytes:
        return approval_key(self.options)

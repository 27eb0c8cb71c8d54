"""From what a host names to the source that stands for it: servers and virtual servers.

* A server is listed once and its listing is stored; transforms are applied to what is stored.
* Nothing is started here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from gateway.errors import attempt
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options import Options
from gateway.options.environment import tokens_path
from gateway.registration.config_reload import Configured
from gateway.runtime.background_loop import Bridge, in_thread
from gateway.runtime.cache import Clock, SingleFlight
from gateway.sources.cached import CachedSource, CacheKey
from gateway.sources.listing_store import ListingStore
from gateway.sources.mcp import ClientCapabilities, McpSource
from gateway.sources.protocol import Source, Transform
from gateway.sources.registry import Registry
from gateway.sources.transforms import TransformedSource
from gateway.sources.virtual import VirtualServer, VirtualSource
from gateway.storage.oauth_tokens import with_token_store
from gateway.types import Hints, ToolDefinition
from gateway.types.listing import Listing

_CHECK_STEP_S = 1.0
"""How long not to look again for old listings: else every search would look at every server."""


class Servers:
    """The configured servers of one gateway, virtual ones too, as sources of *registry*.

    Args:
        registry: Where they are registered.
        bridge: Owns the loop of their sessions.
        store: Where their listings and pins are kept.
        options: Limits.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        registry: Registry,
        bridge: Bridge,
        store: ListingStore,
        options: Options,
        *,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._bridge = bridge
        self._store = store
        self._options = options.upstream
        self._clock = clock
        self._are_entities = options.catalog.servers
        self._tokens = tokens_path(options)
        self.cached: dict[str, CachedSource] = {}
        """Those that have a listing of their own, by name."""
        self.capabilities = ClientCapabilities()
        """Whom servers may ask for something."""
        self._next_check = -math.inf
        self._swept = clock()
        self._sweeps = SingleFlight[None](bridge.submit)
        self._listings = SingleFlight[Listing](bridge.submit)

    def add_configured(self, name: str, entry: Configured) -> None:
        """Register what a configuration says of *name*.

        Raises:
            ConfigError: If the name is taken or illegal.
        """
        if not isinstance(entry.target, VirtualServer):
            self.add(
                name,
                entry.target,
                {},
                trusted=False,
                owner=entry.owner,
                transforms=entry.transforms,
            )
            return
        source = VirtualSource(
            entry.target,
            sources=self._real_sources,
            store=self._store,
            owner=entry.owner,
            options=self._options,
        )
        self._registry.add(source, {}, follows=entry.target.servers)

    def add(
        self,
        name: str,
        target: object,
        hints: Mapping[str, Hints],
        *,
        trusted: bool,
        owner: str = "",
        transforms: Sequence[Transform] = (),
    ) -> None:
        """Register a server, of a file if it has an *owner*; see `Gateway.add_server`."""
        if isinstance(target, HttpServer):
            target = with_token_store(name, target, self._tokens)

        def invalidate() -> None:
            source.invalidate()

        live = McpSource(
            name,
            target,
            bridge=self._bridge,
            options=self._options,
            trusted=trusted,
            clock=self._clock,
            on_change=invalidate,
            capabilities=self.capabilities,
        )
        source = CachedSource(
            live,
            store=self._store,
            key=_cache_key(target, owner),
            flights=self._listings,
            options=self._options,
            on_change=lambda: self._registry.mark_dirty(name),
            clock=self._clock,
        )
        self._registry.add(_transformed(source, transforms), hints, itself=self._entity(name))
        self.cached[name] = source
        self._next_check = -math.inf

    def refresh_stale(self) -> None:
        """Read old listings anew and delete listings that nothing uses, in the background."""
        now = self._clock()
        if now < self._next_check:
            return
        if now >= self._swept + self._options.cleanup_s:
            self._swept = now
            self._sweeps.start("sweep", self._sweep)
        dues = [source.refresh_if_stale() for source in tuple(self.cached.values())]
        # At latest when the next listing is old; soon while any is being read.
        self._next_check = min((now + _CHECK_STEP_S, *dues))

    def change(self, name: str, entry: Configured, *, restart: bool) -> None:
        """Change *name* to what *entry* says; without *restart* its listing and session stay."""
        self._next_check = -math.inf
        source = self.cached.get(name)
        self._registry.remove(name)
        if source is None or restart:
            self.cached.pop(name, None)
            self.add_configured(name, entry)
        else:
            self._registry.add(
                _transformed(source, entry.transforms), {}, itself=self._entity(name)
            )

    def recheck(self, names: Iterable[str]) -> None:
        """Let in again what was approved meanwhile."""
        self._next_check = -math.inf
        registered = self._registry.all()
        for name in names:
            source = self.cached.get(name) or registered[name].source
            if isinstance(source, CachedSource | VirtualSource) and source.recheck():
                self._registry.mark_dirty(name)

    def forget(self, name: str) -> None:
        """Delete what is stored of a server."""
        source = self.cached.pop(name, None)
        if source is not None:
            source.forget()

    async def _sweep(self) -> None:
        # A fault of the store is reported where a caller waits for it.
        await attempt(in_thread(self._store.sweep))

    def _entity(self, name: str) -> ToolDefinition | None:
        """Return a server as an entity, if servers are entities."""
        return ToolDefinition(name=name, kind="server") if self._are_entities else None

    def _real_sources(self) -> dict[str, Source]:
        """Return the sources without their transforms, and without the virtual ones."""
        return {
            name: self.cached.get(name, registration.source)
            for name, registration in self._registry.all().items()
            if not isinstance(registration.source, VirtualSource)
        }


def _transformed(source: Source, transforms: Sequence[Transform]) -> Source:
    return TransformedSource(source, *transforms) if transforms else source


def _cache_key(target: object, owner: str) -> CacheKey:
    if not isinstance(target, StdioServer | HttpServer):
        return CacheKey(fingerprint="")
    return CacheKey(
        fingerprint=target.fingerprint,
        owner=owner,
        # Code that names another program means to; a file may have been tampered with.
        command_line=target.launch if owner else "",
    )

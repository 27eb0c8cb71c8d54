"""From what a host names to the source that stands for it: servers and virtual servers.

* A server is listed once and remembered; shapes are applied to what is remembered.
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
from gateway.sources.mcp import Audience, McpSource
from gateway.sources.protocol import Shape, Source
from gateway.sources.registry import Registry
from gateway.sources.virtual_servers import VirtualServer
from gateway.storage.oauth_tokens import signed
from gateway.types import Hints, ToolDefinition
from gateway.types.listing import Listing

_REST_S = 1.0
"""How long not to look again for old lists: else every search would look at every server."""


class Servers:
    """The configured servers of one gateway, virtual ones too, as sources of *registry*.

    Args:
        registry: Where they are registered.
        bridge: Owns the loop of their sessions.
        records: Where their lists and pins are kept.
        options: Limits.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        registry: Registry,
        bridge: Bridge,
        records: ListingStore,
        options: Options,
        *,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._bridge = bridge
        self._records = records
        self._options = options.upstream
        self._clock = clock
        self._shown = options.catalog.servers
        self._tokens = tokens_path(options)
        self.lasting: dict[str, CachedSource] = {}
        """Those that have a list of their own, by name."""
        self.audience = Audience()
        """Whom servers may ask for something."""
        self._rested = -math.inf
        self._swept = clock()
        self._flights = SingleFlight[None](bridge.submit)
        self._listings = SingleFlight[Listing](bridge.submit)

    def place(self, name: str, entry: Configured) -> None:
        """Register what a configuration says of *name*.

        Raises:
            ConfigError: If the name is taken or illegal.
        """
        if not isinstance(entry.target, VirtualServer):
            shapes, owner = entry.shapes, entry.owner
            self.add(name, entry.target, {}, trusted=False, owner=owner, shapes=shapes)
            return
        from gateway.sources.virtual import VirtualSource  # noqa: PLC0415  (only who has a virtual server pays for it)

        source = VirtualSource(
            entry.target,
            sources=self._below,
            records=self._records,
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
        shapes: Sequence[Shape] = (),
    ) -> None:
        """Register a server, of a file if it has an *owner*; see `Gateway.add_server`."""
        if isinstance(target, HttpServer):
            target = signed(name, target, self._tokens)

        def outdated() -> None:
            source.invalidate()

        source = CachedSource(
            McpSource(
                name,
                target,
                bridge=self._bridge,
                options=self._options,
                trusted=trusted,
                clock=self._clock,
                changed=outdated,
                audience=self.audience,
            ),
            store=self._records,
            key=_cache_key(target, owner),
            flights=self._listings,
            options=self._options,
            on_change=lambda: self._registry.mark_dirty(name),
            clock=self._clock,
        )
        self._registry.add(_shaped(source, shapes), hints, itself=self._itself(name))
        self.lasting[name] = source
        self._rested = -math.inf

    def tend(self) -> None:
        """Read old lists anew, and forget lists that nobody uses, in the background."""
        now = self._clock()
        if now < self._rested:
            return
        if now >= self._swept + self._options.cleanup_s:
            self._swept = now
            self._flights.start("sweep", self._sweep)
        dues = [source.refresh_if_stale() for source in tuple(self.lasting.values())]
        # Look again at latest when the next list is old; at once while any is being read.
        self._rested = min((now + _REST_S, *dues))

    def become(self, name: str, entry: Configured, *, anew: bool) -> None:
        """Change *name* to what *entry* says; unless *anew*, its list and session stay."""
        self._rested = -math.inf
        lasting = self.lasting.get(name)
        self._registry.remove(name)
        if lasting is None or anew:
            self.lasting.pop(name, None)
            self.place(name, entry)
        else:
            shown = _shaped(lasting, entry.shapes)
            self._registry.add(shown, {}, itself=self._itself(name))

    def recheck(self, names: Iterable[str]) -> None:
        """Let in again what was approved meanwhile."""
        from gateway.sources.virtual import VirtualSource  # noqa: PLC0415  (only who has a virtual server pays for it)

        self._rested = -math.inf
        every = self._registry.all()
        for name in names:
            source = self.lasting.get(name) or every[name].source
            if isinstance(source, CachedSource | VirtualSource) and source.recheck():
                self._registry.mark_dirty(name)

    def drop(self, name: str) -> None:
        """Forget what is remembered of a server."""
        lasting = self.lasting.pop(name, None)
        if lasting is not None:
            lasting.forget()

    async def _sweep(self) -> None:
        # What is wrong with the store is reported where somebody waits for it.
        await attempt(in_thread(self._records.sweep))

    def _itself(self, name: str) -> ToolDefinition | None:
        """Give a server as an entity, if that is wanted."""
        return ToolDefinition(name=name, kind="server") if self._shown else None

    def _below(self) -> dict[str, Source]:
        """Give the sources without their shapes, and without the virtual ones."""
        from gateway.sources.virtual import VirtualSource  # noqa: PLC0415  (only who has a virtual server pays for it)

        return {
            name: self.lasting.get(name, each.source)
            for name, each in self._registry.all().items()
            if not isinstance(each.source, VirtualSource)
        }


def _shaped(source: Source, shapes: Sequence[Shape]) -> Source:
    if not shapes:
        return source
    from gateway.sources.transforms import Shaped  # noqa: PLC0415  (only who shapes a server pays for it)

    return Shaped(source, *shapes)


def _cache_key(target: object, owner: str) -> CacheKey:
    if not isinstance(target, StdioServer | HttpServer):
        return CacheKey(fingerprint="")
    return CacheKey(
        fingerprint=target.fingerprint,
        owner=owner,
        # Code that names another program means to; a file may have been tampered with.
        command_line=target.launch if owner else "",
    )

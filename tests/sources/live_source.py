"""A place where sources are remembered, and a source to remember."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gateway.mcp.naming import pin_key
from gateway.mcp.supervisor import ConnectionState
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import SingleFlight
from gateway.sources.cached import CachedSource, CacheKey
from gateway.sources.listing_store import ListingStore
from gateway.storage.listing_store import SqliteListingStore
from gateway.testing import ManualClock
from gateway.types import JsonObject, ToolDefinition
from gateway.types.listing import Listing, WatchCallbacks
from tests.fakes import ListSource

OPTIONS = UpstreamOptions(listing_ttl_s=100, retry_after_s=10)


class LiveSource(ListSource):
    """A source whose listing waits for a door, and which learns what it listed."""

    state: ConnectionState = "idle"
    healthy = True
    watched = ""

    def __init__(self, *tools: ToolDefinition) -> None:
        super().__init__("srv", tools)
        self.door = threading.Event()
        self.door.set()
        self.asked = threading.Event()
        self.learnt: list[Listing] = []
        self.things: tuple[ToolDefinition, ...] = ()
        self.instructions = ""
        self.when_listed: Callable[[], None] = lambda: None

    async def list_tools(self) -> Listing:
        self.asked.set()
        self.when_listed()
        await asyncio.to_thread(self.door.wait, 30)
        listing = await super().list_tools()
        digests = {each.name: repr(each) for each in listing.tools}
        digests |= {pin_key(each.kind, each.name): repr(each) for each in self.things}
        digests |= {"server:srv": self.instructions}
        return replace(listing, things=self.things, instructions=self.instructions, digests=digests)

    def note_repeatable(self, listing: Listing) -> None:
        self.learnt.append(listing)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        return {"asked": method, **params}

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        callbacks.on_start()
        self.watched = uri


class Room:
    """A place where sources are remembered, and a clock."""

    def __init__(self, bridge: Bridge, folder: Path) -> None:
        self.bridge = bridge
        self.clock = ManualClock()
        self.wall = ManualClock(1_000_000.0)
        self.path = folder / "catalog.sqlite3"
        self.records: ListingStore = SqliteListingStore(self.path, wall=self.wall)
        self.changes = 0
        self.options = OPTIONS

    def source(self, live: LiveSource, *, fingerprint: str = "f", launch: str = "") -> CachedSource:
        owner = "mcp.json#srv" if launch else ""
        return CachedSource(
            live,
            store=self.records,
            key=CacheKey(fingerprint=fingerprint, owner=owner, command_line=launch),
            flights=SingleFlight(self.bridge.submit),
            options=self.options,
            on_change=self._change,
            clock=self.clock,
            wall=self.wall,
        )

    def tick(self, seconds: float) -> None:
        self.clock.tick(seconds)
        self.wall.tick(seconds)

    def _change(self) -> None:
        self.changes += 1


def names(listing: Listing) -> list[str]:
    return [each.name for each in listing.tools]

"""Sources for tests, and an environment for cached sources."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, cast

from gateway.errors import StoreError
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import SingleFlight
from gateway.sources import CachedSource, CacheKey, ListingStore, McpSource
from gateway.storage import SqlCatalog
from gateway.testing import ManualClock
from gateway.types import (
    Content,
    InvokeResult,
    JsonObject,
    Listing,
    ToolDefinition,
    WatchCallbacks,
    pin_key,
)
from tests.fakes import ListSource, tool

OPTIONS = UpstreamOptions(listing_ttl_s=100, retry_after_s=10)


class LiveSource(ListSource):
    """A source whose listing waits for an event, and which records stored listings it was given."""

    healthy = True
    watched = ""

    def __init__(self, *tools: ToolDefinition) -> None:
        super().__init__("srv", tools)
        self.door = threading.Event()
        self.door.set()
        self.reached = threading.Event()
        self.learnt: list[Listing] = []
        self.instructions = ""
        self.when_listed: Callable[[], None] = lambda: None

    async def list_tools(self) -> Listing:
        self.reached.set()
        self.when_listed()
        await asyncio.to_thread(self.door.wait, 30)
        listing = await super().list_tools()
        digests = {pin_key(item.kind, item.name): repr(item) for item in listing.definitions}
        digests |= {"server:srv": self.instructions}
        return replace(listing, instructions=self.instructions, digests=digests)

    def note_repeatable(self, listing: Listing) -> None:
        self.learnt.append(listing)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        return {"method": method, **params}

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        callbacks.on_start()
        self.watched = uri


class Room:
    """A store of listings, an event loop and two clocks."""

    def __init__(self, bridge: Bridge, folder: Path) -> None:
        self.bridge = bridge
        self.clock = ManualClock()
        self.wall = ManualClock(1_000_000.0)
        self.path = folder / "catalog.sqlite3"
        self.store: ListingStore = SqlCatalog.in_files(self.path, wall=self.wall)
        self.changes = 0
        self.options = OPTIONS

    def source(self, live: LiveSource, *, fingerprint: str = "f", launch: str = "") -> CachedSource:
        owner = "mcp.json#srv" if launch else ""
        return CachedSource(
            cast(McpSource, live),
            store=self.store,
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


class Shop(ListSource):
    """A source with tools, resources and prompts, which repeat the request."""

    def __init__(self, server: str, *others: ToolDefinition) -> None:
        super().__init__(server, [tool("x"), tool(f"of_{server}"), *others])
        self.watched: list[str] = []

    async def list_tools(self) -> Listing:
        listing = await super().list_tools()
        keys = [f"{item.kind}:{item.name}" for item in self.tools if item.kind != "tool"]
        return replace(
            listing,
            digests={key: key.partition(":")[2] for key in keys},
            suspicions=dict.fromkeys(keys[:1], ("talks",)),
        )

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        link = {"type": "resource_link", "uri": "file:///new", "name": "new"}
        result = await super().call(tool, arguments, tool_id=tool_id)
        block = Content(type="resource_link", text="", data=link)
        return replace(result, content=(*result.content, block))

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        answer = {"method": method, "of": self.server, **params}
        if method == "resources/read":
            return {**answer, "contents": [{"uri": params["uri"]}, {"uri": "http://web"}, "odd"]}
        if method == "prompts/get":
            block = {"type": "resource", "resource": {"uri": "file:///a"}}
            return {**answer, "messages": [{"role": "user", "content": block}, {"content": "odd"}]}
        return answer

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        callbacks.on_start()
        self.watched.append(uri)


class BrokenStore:
    """A listing store on a full disk."""

    def _fail(self, *_args: object, **_options: object) -> NoReturn:
        raise StoreError("full")

    listing = read = keep = forget = sweep = record_seen = changed = approve = _fail
    pins = bind = first_seen = note_failure = definition = _fail

    def close(self) -> None:
        return


SILENT = WatchCallbacks(on_start=lambda: None, on_change=lambda: None)


def prompt(name: str, description: str = "") -> ToolDefinition:
    return ToolDefinition(kind="prompt", name=name, description=description)


def resource(uri: str, description: str = "") -> ToolDefinition:
    details = {"template": True} if "{" in uri else {}
    return ToolDefinition(kind="resource", name=uri, description=description, details=details)


def names(listing: Listing) -> list[str]:
    return [item.name for item in listing.definitions]


def codes(listing: Listing) -> list[str]:
    return [note.code for note in listing.diagnostics]


def details(listing: Listing) -> list[str]:
    return [note.detail for note in listing.diagnostics]

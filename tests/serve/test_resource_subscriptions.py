"""Clients are told when a resource that they watch is another one."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, MCPError, types
from mcp.client.subscriptions import ResourceUpdated
from mcp.server.subscriptions import InMemorySubscriptionBus

from gateway.errors import InvalidRequestError, UpstreamError
from gateway.gateway import Gateway
from gateway.serve.http import HttpOptions
from gateway.serve.mcp_server import mcp_server
from gateway.serve.subscriptions import ResourceSubscriptions
from gateway.types.listing import WatchCallbacks
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool
from tests.serve.test_http import served
from tests.serve.test_pending_calls import target
from tests.serve.upstream import WATCHED

PLACED = f"gateway:/fixture/{WATCHED}"
Make = Callable[[str], Gateway]


@pytest.fixture
def fixture(open_gateway: OpenGateway) -> Make:
    """Make a gateway before the fixture."""

    def make(over: str) -> Gateway:
        gateway = open_gateway()
        gateway.add_server("fixture", server=target(over))
        return gateway

    return make


class Ear:
    """Hears which resources changed."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.said.put_nowait(message.params.uri)


@asynccontextmanager
async def before(gateway: Gateway, ear: Ear) -> AsyncIterator[Client]:
    """A client with a session."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = mcp_server(gateway, expose="all")
        async with Client(server, mode="legacy", message_handler=ear, cache=None) as client:
            yield client


async def text_of(call: Awaitable[types.CallToolResult]) -> str:
    """The text of an answer."""
    (block,) = (await call).content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("over", ["object", "modern", "legacy"])
@pytest.mark.parametrize("address", [PLACED, WATCHED])
def test_a_client_of_today_hears_it_on_its_stream(fixture: Make, over: str, address: str) -> None:
    """Under the address that it gave; what is not there is not promised."""

    async def talk() -> tuple[object, ...]:
        async with (
            Client(mcp_server(fixture(over), expose="all"), cache=None) as client,
            client.listen(resource_subscriptions=[address, "test://no-such"]) as events,
        ):
            await client.call_tool("test_touch", {"uri": "test://static-text"})
            await client.call_tool("test_touch", {})
            return events.honored.resource_subscriptions, await anext(events)

    assert ([address], ResourceUpdated(uri=address)) == asyncio.run(asyncio.wait_for(talk(), 60))


@pytest.mark.parametrize(
    ("over", "part"), [("object", ""), ("modern", ""), ("legacy", ""), ("legacy", "/part")]
)
def test_a_client_of_before_hears_it_in_its_session(fixture: Make, over: str, part: str) -> None:
    """Only of what it watches itself, and of its parts."""
    ear, other = Ear(), Ear()

    async def talk() -> tuple[bool | None, str, str, bool]:
        gateway = fixture(over)
        async with before(gateway, ear) as client, before(gateway, other) as bystander:
            await bystander.subscribe_resource("test://static-text")
            for _ in range(2):
                await client.subscribe_resource(PLACED)
            await client.call_tool("test_touch", {"uri": f"{WATCHED}{part}"})
            heard = await ear.said.get()
            await client.call_tool("test_touch", {"uri": "test://static-text"})
            elsewhere = await other.said.get()
            can = client.server_capabilities.resources
            return can is not None and can.subscribe, heard, elsewhere, ear.said.empty()

    found = asyncio.run(asyncio.wait_for(talk(), 60))

    assert (True, PLACED, "test://static-text", True) == found


def test_both_hear_it_over_http(fixture: Make) -> None:
    """On the stream of the session, and on the one that was opened for it."""
    ear = Ear()

    async def talk() -> tuple[str, object]:
        async with served(fixture("modern"), HttpOptions(port=0)) as url:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                async with Client(url, mode="legacy", message_handler=ear, cache=None) as client:
                    await client.subscribe_resource(PLACED)
                    touch = {"name": "fixture/test_touch", "arguments": {}}
                    await client.call_tool("call_tool", touch)
                    heard = await ear.said.get()
            async with (
                Client(url, cache=None) as client,
                client.listen(resource_subscriptions=[PLACED]) as events,
            ):
                await client.call_tool("call_tool", touch)
                return heard, await anext(events)

    assert (PLACED, ResourceUpdated(uri=PLACED)) == asyncio.run(asyncio.wait_for(talk(), 60))


def test_what_nobody_watches_any_more_is_let_go(fixture: Make) -> None:
    """By unsubscribing, and by going away; another who watches it keeps it."""

    async def talk() -> list[str]:
        gateway = fixture("legacy")
        seen: list[str] = []

        async def who_watches(client: Client, until: str) -> None:
            told = ""
            for _ in range(10_000):
                told = await text_of(client.call_tool("test_who_watches", {}))
                if told == until:
                    break
            seen.append(told)

        async with before(gateway, Ear()) as one:
            async with before(gateway, Ear()) as other:
                await one.subscribe_resource(PLACED)
                await other.subscribe_resource(PLACED)
                await one.unsubscribe_resource(PLACED)
                await one.unsubscribe_resource(PLACED)
                await who_watches(one, WATCHED)
            await who_watches(one, "")
        return seen

    assert [WATCHED, ""] == asyncio.run(asyncio.wait_for(talk(), 60))


@pytest.mark.parametrize("uri", ["test://static-binary", "test://no-such", "gateway:/no/x:y"])
def test_what_cannot_be_watched_is_refused(fixture: Make, uri: str) -> None:
    """The client hears why; nothing stays behind."""

    async def talk() -> int:
        async with before(fixture("legacy"), Ear()) as client:
            with pytest.raises(MCPError) as refused:
                await client.subscribe_resource(uri)
            return refused.value.error.code

    assert types.INVALID_PARAMS == asyncio.run(asyncio.wait_for(talk(), 60))


class Telling(ListSource):
    """Tells of changes until nobody wants to know."""

    def __init__(self) -> None:
        super().__init__("telling", [tool("one")])
        self.heard: asyncio.Queue[WatchCallbacks] = asyncio.Queue()
        self.ended = asyncio.Event()

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """Note who wants to know, and wait."""
        self.heard.put_nowait(callbacks)
        if uri == "a:never":
            raise UpstreamError(self.server, "is not there")
        callbacks.on_start()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


def test_a_server_is_asked_once_for_all_who_watch(open_gateway: OpenGateway) -> None:
    """And hears when the last one is gone."""
    source = Telling()
    gateway = open_gateway()
    gateway.add_source(source)

    async def talk() -> tuple[object, bool, bool]:
        server = mcp_server(gateway)
        address = "gateway:/telling/a:b"
        async with Client(server, cache=None) as one:
            async with one.listen(resource_subscriptions=[address]) as events:
                heard = await source.heard.get()
                async with one.listen(resource_subscriptions=[address]):
                    pass
                early = source.ended.is_set()
                heard.on_change()
                event = await anext(events)
            await source.ended.wait()
        return event, early, source.heard.empty()

    found = asyncio.run(asyncio.wait_for(talk(), 60))

    assert (ResourceUpdated(uri="gateway:/telling/a:b"), False, True) == found


def test_no_more_than_so_many_are_watched(open_gateway: OpenGateway) -> None:
    """And what failed takes no place."""
    gateway = open_gateway()
    gateway.add_source(Telling())
    gateway.add_source(ListSource("silent", [tool("two")]))

    async def talk() -> list[str]:
        watching = ResourceSubscriptions(gateway.library, InMemorySubscriptionBus(), max_watched=1)
        said: list[str] = []
        for uri in ("telling/a:never", "silent/a:b", "telling/a:b", "telling/c:d"):
            try:
                await watching.watch(f"gateway:/{uri}")
            except (InvalidRequestError, UpstreamError) as error:
                said.append(str(error))
        return said

    never, silent, many = asyncio.run(asyncio.wait_for(talk(), 60))

    assert "is not there" in never
    assert "reports no changes" in silent
    assert "1 resources are watched" in many

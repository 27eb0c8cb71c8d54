"""Notifications about changed lists and resources."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from mcp import Client, MCPError, types
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

from gateway.errors import InvalidRequestError, UpstreamError
from gateway.gateway import Gateway
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import Expose, mcp_server
from gateway.serve.subscriptions import Subscriptions
from gateway.types import Access, WatchCallbacks
from tests.apps.serve.conftest import Make
from tests.apps.serve.test_http import served
from tests.apps.serve.test_mcp_server import text_of
from tests.apps.serve.upstream import UPSTREAMS, WATCHED
from tests.conftest import OpenGateway
from tests.core.call.test_resources import Shop, thing
from tests.fakes import ListSource, suspicious, tool

PLACED = f"gateway:/fixture/{WATCHED}"
CHANGES: dict[str, tuple[str, object]] = {
    "tool": ("notifications/tools/list_changed", ToolsListChanged()),
    "prompt": ("notifications/prompts/list_changed", PromptsListChanged()),
    "resource": ("notifications/resources/list_changed", ResourcesListChanged()),
}


class Listener:
    """Records the notifications that a client gets about lists and resources."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.heard.put_nowait(message.params.uri)
        elif isinstance(message, types.ServerNotification):
            self.heard.put_nowait(message.method)


@asynccontextmanager
async def session(gateway: Gateway | str, listener: Listener) -> AsyncIterator[Client]:
    """Yield an MCP client with a session, whose notifications go to *listener*."""
    server = gateway if isinstance(gateway, str) else mcp_server(gateway, expose="all")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        async with Client(server, mode="legacy", message_handler=listener, cache=None) as client:
            yield client


def stream_client(gateway: Gateway, expose: Expose = "all") -> Client:
    """Return a client that opens streams for its notifications, without a session."""
    return Client(mcp_server(gateway, expose=expose), cache=None)


async def list_all(client: Client) -> dict[str, list[str]]:
    """Return the names in all lists of the server, keyed by kind."""
    return {
        "tool": [tool.name for tool in (await client.list_tools()).tools],
        "prompt": [prompt.name for prompt in (await client.list_prompts()).prompts],
        "resource": [resource.uri for resource in (await client.list_resources()).resources],
    }


@pytest.mark.parametrize("over", UPSTREAMS)
@pytest.mark.parametrize("kind", list(CHANGES))
async def test_stateless_client_is_notified_of_a_changed_list_on_its_stream(
    open_fixture_gateway: Make, over: str, kind: str
) -> None:
    async with stream_client(open_fixture_gateway(over)) as client:
        before = await list_all(client)
        async with client.listen(
            tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
        ) as events:
            await client.call_tool(f"test_trigger_{kind}_change")
            event = await anext(events)
        after = await list_all(client)

    assert CHANGES[kind][1] == event
    assert [kind] == [name for name in before if before[name] != after[name]]
    assert any(f"newer_{kind}_0" in name for name in after[kind])


@pytest.mark.parametrize("over", UPSTREAMS)
@pytest.mark.parametrize("kind", list(CHANGES))
async def test_session_client_is_notified_of_a_changed_list(
    open_fixture_gateway: Make, over: str, kind: str
) -> None:
    listener = Listener()
    async with session(open_fixture_gateway(over), listener) as client:
        await list_all(client)
        await client.call_tool(f"test_trigger_{kind}_change")
        heard, can = await listener.heard.get(), client.server_capabilities.tools

    assert CHANGES[kind][0] == heard
    assert can is not None
    assert can.list_changed


async def test_change_of_an_unlisted_tool_causes_no_notification(open_gateway: OpenGateway) -> None:
    """A suspicious tool is not listed. When it is no longer suspicious, the list changes."""
    gateway = open_gateway((tool("a"),))
    shop = ListSource("shop", [suspicious(tool("b"))])
    gateway.add_source(shop)
    async with stream_client(gateway) as client:
        await list_all(client)
        async with client.listen(tools_list_changed=True, prompts_list_changed=True) as events:
            shop.tools = [suspicious(tool("b", "Anew."))]
            gateway.add_source(Shop("more", thing("prompt", "p")))
            await gateway.refresh()
            heard: list[object] = [await anext(events)]
            shop.tools = [tool("b")]
            await gateway.refresh()
            heard.append(await anext(events))
        tools = (await list_all(client))["tool"]

    assert [PromptsListChanged(), ToolsListChanged()] == heard
    assert ["a", "b"] == tools


async def test_adding_a_tool_of_the_host_causes_a_notification(open_gateway: OpenGateway) -> None:
    gateway = open_gateway((tool("a"),))
    async with stream_client(gateway) as client, stream_client(gateway, "meta") as other:
        await list_all(client)
        await list_all(other)
        async with (
            client.listen(tools_list_changed=True) as events,
            other.listen(tools_list_changed=True, prompts_list_changed=True) as others,
        ):
            gateway.add_source(ListSource("new", [tool("c")]))

            assert ToolsListChanged() == await anext(events) == await anext(others)
            gateway.add_source(Shop("more", thing("prompt", "p")))
            assert PromptsListChanged() == await anext(others)


async def test_change_of_a_list_that_was_not_sent_causes_no_notification(
    open_gateway: OpenGateway,
) -> None:
    """A client that never requested a list has no cached list to invalidate."""
    gateway = open_gateway((tool("a"),))
    async with stream_client(gateway) as client, client.listen(tools_list_changed=True) as events:
        gateway.add_source(ListSource("one", [tool("b")]))
        await client.list_tools()
        gateway.add_source(ListSource("empty", []))
        gateway.add_source(ListSource("two", [tool("c")]))

        assert ToolsListChanged() == await anext(events)


async def test_unreadable_catalog_causes_no_notification(open_gateway: OpenGateway) -> None:
    gateway = open_gateway((tool("a"),))
    async with stream_client(gateway) as client, client.listen(tools_list_changed=True) as events:
        await client.list_tools()
        gateway.add_source(ListSource("late", [tool("b")]))
        # The gateway is closed in the same turn of the event loop, so that the watcher finds it
        # closed.
        gateway.close()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0.2)


@pytest.mark.parametrize("over", UPSTREAMS)
@pytest.mark.parametrize("address", [PLACED, WATCHED])
async def test_stateless_client_is_notified_of_a_changed_resource_on_its_stream(
    open_fixture_gateway: Make, over: str, address: str
) -> None:
    async with (
        stream_client(open_fixture_gateway(over)) as client,
        client.listen(resource_subscriptions=[address, "test://no-such"]) as events,
    ):
        await client.call_tool("test_touch", {"uri": "test://static-text"})
        await client.call_tool("test_touch", {})

        assert [address] == events.honored.resource_subscriptions
        assert ResourceUpdated(uri=address) == await anext(events)


@pytest.mark.parametrize(
    ("over", "part"), [("object", ""), ("modern", ""), ("legacy", ""), ("legacy", "/part")]
)
async def test_session_client_is_notified_of_its_watched_resources(
    open_fixture_gateway: Make, over: str, part: str
) -> None:
    listener, other, gateway = Listener(), Listener(), open_fixture_gateway(over)
    async with session(gateway, listener) as client, session(gateway, other) as bystander:
        await bystander.subscribe_resource("test://static-text")
        for _ in range(2):
            await client.subscribe_resource(PLACED)
        await client.call_tool("test_touch", {"uri": f"{WATCHED}{part}"})
        heard = await listener.heard.get()
        await client.call_tool("test_touch", {"uri": "test://static-text"})
        elsewhere = await other.heard.get()
        can = client.server_capabilities.resources

    assert (PLACED, "test://static-text") == (heard, elsewhere)
    assert listener.heard.empty()
    assert can is not None
    assert can.subscribe


async def test_clients_of_both_eras_are_notified_over_http(open_fixture_gateway: Make) -> None:
    listener, touch = Listener(), {"name": "fixture/test_touch", "arguments": {}}
    async with served(open_fixture_gateway("modern"), HttpOptions(port=0)) as url:
        async with session(url, listener) as client:
            await client.subscribe_resource(PLACED)
            await client.call_tool("call_tool", touch)
            heard = await listener.heard.get()
        async with (
            Client(url, cache=None) as client,
            client.listen(resource_subscriptions=[PLACED]) as events,
        ):
            await client.call_tool("call_tool", touch)
            event = await anext(events)

    assert (PLACED, ResourceUpdated(uri=PLACED)) == (heard, event)


async def wait_until_watched(client: Client, watched: str) -> None:
    """Poll the fixture server until its resources with subscriptions are exactly *watched*."""
    for _ in range(10_000):
        if text_of(await client.call_tool("test_who_watches", {})) == watched:
            return
    raise AssertionError(watched)


async def test_gateway_unsubscribes_upstream_from_unwatched_resources(
    open_fixture_gateway: Make,
) -> None:
    gateway = open_fixture_gateway("legacy")
    async with session(gateway, Listener()) as first_client:
        async with session(gateway, Listener()) as other:
            await first_client.subscribe_resource(PLACED)
            await other.subscribe_resource(PLACED)
            await first_client.unsubscribe_resource(PLACED)
            await first_client.unsubscribe_resource(PLACED)
            await wait_until_watched(first_client, WATCHED)
        await wait_until_watched(first_client, "")


@pytest.mark.parametrize("uri", ["test://static-binary", "test://no-such", "gateway:/no/x:y"])
async def test_watching_an_unwatchable_resource_is_refused(
    open_fixture_gateway: Make, uri: str
) -> None:
    async with session(open_fixture_gateway("legacy"), Listener()) as client:
        with pytest.raises(MCPError) as refused:
            await client.subscribe_resource(uri)

    assert types.INVALID_PARAMS == refused.value.error.code


class Reporting(ListSource):
    """Source that reports changes of a resource until nobody watches it."""

    def __init__(self) -> None:
        super().__init__("reporting", [tool("one")])
        self.watched: asyncio.Queue[WatchCallbacks] = asyncio.Queue()
        self.ended = asyncio.Event()

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """Store the callbacks of a watcher, and wait."""
        self.watched.put_nowait(callbacks)
        if uri == "a:never":
            raise UpstreamError(self.server, "is not there")
        callbacks.on_start()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


async def test_upstream_is_subscribed_once_for_all_watchers(open_gateway: OpenGateway) -> None:
    source, address = Reporting(), "gateway:/reporting/a:b"
    gateway = open_gateway()
    gateway.add_source(source)
    async with stream_client(gateway) as client:
        async with client.listen(resource_subscriptions=[address]) as events:
            callbacks = await source.watched.get()
            async with client.listen(resource_subscriptions=[address]):
                pass
            ended_early = source.ended.is_set()
            callbacks.on_change()
            event = await anext(events)
        await source.ended.wait()

    assert ResourceUpdated(uri=address) == event
    assert not ended_early
    assert source.watched.empty()


async def test_number_of_watched_resources_is_limited(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_source(Reporting())
    gateway.add_source(ListSource("silent", [tool("two")]))
    watching = Subscriptions(gateway.library, max_watched=1)
    with pytest.raises(UpstreamError, match="is not there"):
        await watching.watch("gateway:/reporting/a:never")
    with pytest.raises(InvalidRequestError, match="does not report changes"):
        await watching.watch("gateway:/silent/a:b")
    end = await watching.watch("gateway:/reporting/a:b")
    with pytest.raises(InvalidRequestError, match="1 resources are watched"):
        await watching.watch("gateway:/reporting/c:d")
    end()


async def test_change_of_a_hidden_resource_causes_no_notification(
    open_gateway: OpenGateway,
) -> None:
    """A rule may hide a resource from clients that already watch it."""
    source, paths = Reporting(), ("a:b", "c:d")
    source.tools += [thing("resource", path) for path in paths]
    gateway = open_gateway()
    gateway.add_source(source)
    addresses = [f"gateway:/reporting/{path}" for path in paths]
    async with (
        stream_client(gateway) as client,
        client.listen(resource_subscriptions=addresses) as events,
    ):
        by_start = [await source.watched.get() for _ in paths]
        gateway.set_rules({"reporting/a:b": Access(enabled=False)})
        for callbacks in by_start:
            callbacks.on_change()
        event = await anext(events)

    assert addresses == events.honored.resource_subscriptions
    assert ResourceUpdated(uri=addresses[1]) == event


class SlowSession:
    """MCP session that accepts notifications only while its door is open."""

    def __init__(self) -> None:
        self.door = asyncio.Event()
        self.taken: list[object] = []

    async def send_notification(self, notification: object) -> None:
        """Wait until the door is open, and record the notification."""
        self.taken.append(notification)
        await self.door.wait()


async def test_slow_client_gets_one_notification_for_many_equal_changes(
    open_gateway: OpenGateway,
) -> None:
    """Pending notifications must not use more memory with each change."""
    source, slow = Reporting(), SlowSession()
    gateway = open_gateway()
    gateway.add_source(source)
    watching = Subscriptions(gateway.library)
    context: Any = SimpleNamespace(
        method="notifications/initialized",
        protocol_version="2025-11-25",
        request=None,
        lifespan_context=None,
        session=slow,
    )
    params = types.SubscribeRequestParams(uri="gateway:/reporting/a:b")
    await watching.subscribe(context, params)
    callbacks = await source.watched.get()

    async def call_next(_context: object) -> None:
        return

    notifying = asyncio.create_task(watching.notify_session(context, call_next))
    for _ in range(100):
        callbacks.on_change()
        await asyncio.sleep(0)
        await asyncio.gather(*(task for task in asyncio.all_tasks() if "publish" in str(task)))
    slow.door.set()
    for _ in range(1000):
        await asyncio.sleep(0)
    notifying.cancel()
    await asyncio.wait({notifying})

    assert 2 == len(slow.taken)

"""Clients are told when a list that they were shown is another one now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client, types
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

from gateway.gateway import Gateway
from gateway.serve.mcp_server import Expose, mcp_server
from tests.conftest import OpenGateway
from tests.fakes import ListSource, suspicious, tool
from tests.search.test_resources import Shop, thing
from tests.serve.test_pending_calls import target

CHANGES: dict[str, tuple[str, object]] = {
    "tool": ("notifications/tools/list_changed", ToolsListChanged()),
    "prompt": ("notifications/prompts/list_changed", PromptsListChanged()),
    "resource": ("notifications/resources/list_changed", ResourcesListChanged()),
}


@pytest.fixture
def fixture(open_gateway: OpenGateway) -> Callable[[str], Gateway]:
    """Make a gateway before the fixture."""

    def make(over: str) -> Gateway:
        gateway = open_gateway()
        gateway.add_server("fixture", server=target(over))
        return gateway

    return make


async def listed(client: Client) -> dict[str, list[str]]:
    """Every list, by kind."""
    return {
        "tool": [each.name for each in (await client.list_tools()).tools],
        "prompt": [each.name for each in (await client.list_prompts()).prompts],
        "resource": [each.uri for each in (await client.list_resources()).resources],
    }


@pytest.mark.parametrize("over", ["object", "modern", "legacy"])
@pytest.mark.parametrize("kind", list(CHANGES))
def test_a_client_of_today_hears_it_on_its_stream(
    fixture: Callable[[str], Gateway], over: str, kind: str
) -> None:
    """And reads the new list."""

    async def talk() -> tuple[object, dict[str, list[str]], dict[str, list[str]]]:
        async with Client(mcp_server(fixture(over), expose="all"), cache=None) as client:
            before = await listed(client)
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as events:
                await client.call_tool(f"test_trigger_{kind}_change")
                event = await anext(events)
            return event, before, await listed(client)

    event, before, after = asyncio.run(asyncio.wait_for(talk(), 60))

    assert CHANGES[kind][1] == event
    assert [kind] == [each for each in before if before[each] != after[each]]
    assert any(f"newer_{kind}_0" in name for name in after[kind])


class Ear:
    """Hears what a server says unasked."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, types.ServerNotification):
            self.said.put_nowait(message.method)


@pytest.mark.parametrize("over", ["object", "modern", "legacy"])
@pytest.mark.parametrize("kind", list(CHANGES))
def test_a_client_of_before_hears_it_in_its_session(
    fixture: Callable[[str], Gateway], over: str, kind: str
) -> None:
    """It was told that it would."""
    ear = Ear()

    async def talk() -> tuple[str, types.ServerCapabilities]:
        server = mcp_server(fixture(over), expose="all")
        async with Client(server, mode="legacy", message_handler=ear) as client:
            await listed(client)
            await client.call_tool(f"test_trigger_{kind}_change")
            return await ear.said.get(), client.server_capabilities

    said, can = asyncio.run(asyncio.wait_for(talk(), 60))

    assert CHANGES[kind][0] == said
    assert can.tools is not None
    assert can.tools.list_changed


def test_a_tool_that_is_in_no_list_changes_none(open_gateway: OpenGateway) -> None:
    """The list is another one when what was suspicious is so no longer."""
    gateway = open_gateway((tool("a"),))
    shop = ListSource("shop", [suspicious(tool("b"))])
    gateway.add_source(shop)

    async def talk() -> tuple[list[object], list[str]]:
        async with Client(mcp_server(gateway, expose="all"), cache=None) as client:
            await listed(client)
            async with client.listen(tools_list_changed=True, prompts_list_changed=True) as events:
                shop.tools = [suspicious(tool("b", "Anew."))]
                gateway.add_source(Shop("more", thing("prompt", "p")))
                await gateway.refresh()
                heard: list[object] = [await anext(events)]
                shop.tools = [tool("b")]
                await gateway.refresh()
                heard.append(await anext(events))
            return heard, (await listed(client))["tool"]

    heard, tools = asyncio.run(asyncio.wait_for(talk(), 60))

    assert [PromptsListChanged(), ToolsListChanged()] == heard
    assert ["a", "b"] == tools


def test_a_prompt_that_is_in_no_list_changes_none(open_gateway: OpenGateway) -> None:
    """As with tools: only the resource that came with it is news."""
    gateway = open_gateway()
    shop = Shop("shop", suspicious(thing("prompt", "p")))
    gateway.add_source(shop)

    async def talk() -> object:
        async with Client(mcp_server(gateway), cache=None) as client:
            await listed(client)
            async with client.listen(
                prompts_list_changed=True, resources_list_changed=True
            ) as events:
                odd = suspicious(thing("prompt", "p", "Anew."))
                shop.things = (odd, thing("resource", "a://b"))
                await gateway.refresh()
                return await anext(events)

    assert ResourcesListChanged() == asyncio.run(asyncio.wait_for(talk(), 60))


@pytest.mark.parametrize(("expose", "heard"), [("all", True), ("meta", False)])
def test_a_tool_of_the_host_is_a_change_too(
    open_gateway: OpenGateway, expose: Expose, heard: bool
) -> None:
    """Of the whole catalog; the two meta-tools stay what they are."""
    gateway = open_gateway((tool("a"),))
    gateway.add_source(ListSource("other", [tool("b")]))

    async def talk() -> object:
        async with Client(mcp_server(gateway, expose=expose), cache=None) as client:
            await listed(client)
            async with client.listen(tools_list_changed=True, prompts_list_changed=True) as events:
                gateway.add_source(ListSource("new", [tool("c")]))
                if heard:
                    return await anext(events)
                await gateway.report()
                await client.list_tools()
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(events), 0.2)
                return None

    assert (ToolsListChanged() if heard else None) == asyncio.run(asyncio.wait_for(talk(), 60))


def test_what_nobody_was_shown_is_not_announced(open_gateway: OpenGateway) -> None:
    """A client that never listed has nothing to throw away; a change that is none is none."""
    gateway = open_gateway((tool("a"),))

    async def talk() -> bool:
        async with (
            Client(mcp_server(gateway, expose="all"), cache=None) as client,
            client.listen(tools_list_changed=True) as events,
        ):
            gateway.add_source(ListSource("one", [tool("b")]))
            await client.list_tools()
            gateway.add_source(ListSource("empty", []))
            gateway.add_source(ListSource("two", [tool("c")]))
            return await anext(events) == ToolsListChanged()

    assert asyncio.run(asyncio.wait_for(talk(), 60))


def test_a_catalog_that_cannot_be_read_announces_nothing(open_gateway: OpenGateway) -> None:
    """The server lives on."""
    gateway = open_gateway((tool("a"),))

    async def talk() -> None:
        async with (
            Client(mcp_server(gateway, expose="all"), cache=None) as client,
            client.listen(tools_list_changed=True) as events,
        ):
            await client.list_tools()
            gateway.add_source(ListSource("late", [tool("b")]))
            # Without a turn of the loop between: whoever hears of it finds it closed.
            gateway.close()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(events), 0.2)

    asyncio.run(asyncio.wait_for(talk(), 60))

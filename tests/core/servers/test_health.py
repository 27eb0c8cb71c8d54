"""Servers that cannot be reached, as searches leave them out, and how they come back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.errors import UpstreamError
from gateway.gateway import Gateway
from gateway.options import Options, UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.servers.pool import ServerPool
from gateway.sources import Registry
from gateway.storage import open_tokens
from gateway.testing import ManualClock
from gateway.types import Filters, SearchResult
from graphs import Document, Link
from tests.conftest import OpenGateway
from tests.core.mcp.conftest import PATIENCE_S, served, until
from tests.core.mcp.servers.plain import plain
from tests.core.sources.live_source import LiveSource, Room
from tests.fakes import ListSource, names, tool

HEALTHY = Filters(healthy_only=True)
RETRY_S = 10.0
STEPS = Document(
    id="host:1",
    title="srv/echo",
    next_steps=tuple(Link(target=name) for name in ("srv/add", "shelf/say_nothing", "mine/hush")),
)


async def test_a_server_that_nobody_finds_is_tried_again_now_and_then(
    bridge: Bridge, tmp_path: Path
) -> None:
    """It would be left out for ever: nobody uses what is not found."""
    room, options = Room(bridge, tmp_path), Options(upstream=UpstreamOptions(retry_after_s=RETRY_S))
    servers = ServerPool(
        Registry(),
        bridge,
        room.store,
        options,
        tokens=open_tokens(options, None),
        openers={},
        clock=room.clock,
    )
    well, ill = LiveSource(tool("a")), LiveSource(tool("b"))
    servers.cached = {
        "well": room.source(well, fingerprint=""),
        "ill": room.source(ill, fingerprint=""),
    }
    for source in servers.cached.values():
        await source.list_tools()
    ill.healthy = False
    wanted = replace(HEALTHY, without=frozenset({"x"}))

    assert Filters() == servers.resolve_filters(Filters()) == servers.resolve_filters(None)
    for _ in range(3):
        assert frozenset({"x", "ill"}) == servers.resolve_filters(wanted).without
    at_once = ill.listings
    room.clock.tick(RETRY_S)
    for _ in range(3):
        servers.resolve_filters(HEALTHY)
    await until(lambda: ill.listings == at_once + 1)
    ill.healthy = True

    assert (1, 1) == (at_once, well.listings)
    assert frozenset() == servers.resolve_filters(HEALTHY).without


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    """The loop of a server beside the gateway."""
    made = Bridge("upstream")
    yield made
    made.close()


def patient(clock: ManualClock, folder: Path) -> dict[str, object]:
    """Options for a server on a busy machine, which is tried once at a time."""
    upstream = UpstreamOptions(
        connect_attempts=1, connect_timeout_s=PATIENCE_S, first_listing_s=PATIENCE_S
    )
    options = Options(upstream=upstream, catalog_store_path=folder / "catalog.sqlite3")
    return {"clock": clock, "options": options}


async def found(gateway: Gateway, filters: Filters | None = None) -> set[str]:
    return set(names(await gateway.search("echo: say it again", limit=9, filters=filters)))


def stale(result: SearchResult) -> list[str]:
    """The servers that a result says are down."""
    notes = (note for note in result.diagnostics if note.code == "source_stale")
    return [note.detail.split()[0] for note in notes]


async def test_a_server_that_dies_is_not_found_until_it_is_back(
    open_gateway: OpenGateway, bridge: Bridge, tmp_path: Path
) -> None:
    """Without an index build, and never from the cache; its virtual tools go and come with it.

    Whoever finds its tools nevertheless is told that it is down.
    """
    clock, tools = ManualClock(), [tool("say_nothing", "Say it never.")]
    gateway = open_gateway(tools, graph=[STEPS], **patient(clock, tmp_path))
    async with AsyncExitStack() as stack:
        app = plain(tmp_path / "record").streamable_http_app()
        port = await stack.enter_async_context(served(bridge, app))
        gateway.add_server("srv", url=f"http://127.0.0.1:{port}/mcp")
        gateway.add_virtual_server("mine", {"repeat": "srv/echo", "hush": "shelf/say_nothing"})
        before = await found(gateway, HEALTHY)
        builds = gateway.index_builds
    with pytest.raises(UpstreamError):
        await gateway.invoke("srv/echo", {"text": "x"})

    during = await found(gateway, HEALTHY)
    steps = await gateway.next_steps(["srv/echo"], filters=HEALTHY)
    listed = {each.name for each in await gateway.list_tools(HEALTHY)}
    anyway = await gateway.search("echo: say it again", limit=9)
    without = await gateway.search("say it never", limit=1)
    same = gateway.index_builds
    async with served(bridge, plain(tmp_path / "record").streamable_http_app(), port):
        clock.tick(UpstreamOptions().retry_after_s)
        await found(gateway, HEALTHY)
        await until(lambda: "active" == gateway.server_states()["srv"])
        after = await found(gateway, HEALTHY)
        again = await gateway.search("echo: say it again", limit=9)

    assert {"echo", "repeat"} < before == after == set(names(anyway))
    assert (["'mine':", "'srv':"], [], []) == (stale(anyway), stale(without), stale(again))
    assert {"say_nothing", "hush"} == during == listed
    assert {"shelf/say_nothing", "mine/hush"} == {each.id for each in steps}
    assert builds == same


async def test_a_source_without_a_session_is_healthy(open_gateway: OpenGateway) -> None:
    """Nothing is known of it."""
    gateway = open_gateway()
    gateway.add_source(ListSource("plain", [tool("echo", "Say it again.")]))

    assert {"echo"} == await found(gateway, HEALTHY)

"""Unreachable servers: their exclusion from searches, and their recovery."""

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


async def test_excluded_servers_are_retried_periodically(bridge: Bridge, tmp_path: Path) -> None:
    """Otherwise they would stay excluded, because nobody calls the tools of servers that searches
    exclude.
    """
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
    healthy_named = replace(HEALTHY, without=frozenset({"x"}))

    assert Filters() == servers.resolve_filters(Filters()) == servers.resolve_filters(None)
    for _ in range(3):
        assert frozenset({"x", "ill"}) == servers.resolve_filters(healthy_named).without
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
    """Return a bridge whose event loop runs the servers of a test, outside the gateway."""
    upstream_bridge = Bridge("upstream")
    yield upstream_bridge
    upstream_bridge.close()


def slow_machine_options(clock: ManualClock, folder: Path) -> dict[str, object]:
    """Return options with long time limits, for a slow machine, and one attempt at a time per
    server.
    """
    upstream = UpstreamOptions(
        connect_attempts=1, connect_timeout_s=PATIENCE_S, first_listing_s=PATIENCE_S
    )
    options = Options(upstream=upstream, catalog_store_path=folder / "catalog.sqlite3")
    return {"clock": clock, "options": options}


async def find_names(gateway: Gateway, filters: Filters | None = None) -> set[str]:
    return set(names(await gateway.search("echo: say it again", limit=9, filters=filters)))


def stale_servers(result: SearchResult) -> list[str]:
    """Return the names of the servers that *result* reports as stale."""
    notes = (note for note in result.diagnostics if note.code == "source_stale")
    return [note.detail.split()[0] for note in notes]


async def test_dead_server_is_excluded_until_it_recovers(
    open_gateway: OpenGateway, bridge: Bridge, tmp_path: Path
) -> None:
    """No index build is needed, and the result is never from the cache. Virtual tools of the server
    are excluded and found with it. Searches without ``healthy_only`` find its tools, with a
    diagnostic.
    """
    clock, tools = ManualClock(), [tool("say_nothing", "Say it never.")]
    gateway = open_gateway(tools, graph=[STEPS], **slow_machine_options(clock, tmp_path))
    async with AsyncExitStack() as stack:
        app = plain(tmp_path / "record").streamable_http_app()
        port = await stack.enter_async_context(served(bridge, app))
        gateway.add_server("srv", url=f"http://127.0.0.1:{port}/mcp")
        gateway.add_virtual_server("mine", {"repeat": "srv/echo", "hush": "shelf/say_nothing"})
        before = await find_names(gateway, HEALTHY)
        builds = gateway.index_builds
    with pytest.raises(UpstreamError):
        await gateway.invoke("srv/echo", {"text": "x"})

    during = await find_names(gateway, HEALTHY)
    steps = await gateway.next_steps(["srv/echo"], filters=HEALTHY)
    listed = {match.name for match in await gateway.list_tools(HEALTHY)}
    anyway = await gateway.search("echo: say it again", limit=9)
    without = await gateway.search("say it never", limit=1)
    same = gateway.index_builds
    async with served(bridge, plain(tmp_path / "record").streamable_http_app(), port):
        clock.tick(UpstreamOptions().retry_after_s)
        await find_names(gateway, HEALTHY)
        await until(lambda: "active" == gateway.server_states()["srv"])
        after = await find_names(gateway, HEALTHY)
        again = await gateway.search("echo: say it again", limit=9)

    assert {"echo", "repeat"} < before == after == set(names(anyway))
    assert (["'mine':", "'srv':"], [], []) == (
        stale_servers(anyway),
        stale_servers(without),
        stale_servers(again),
    )
    assert {"say_nothing", "hush"} == during == listed
    assert {"shelf/say_nothing", "mine/hush"} == {match.id for match in steps}
    assert builds == same


async def test_source_of_the_host_without_a_session_counts_as_healthy(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway()
    gateway.add_source(ListSource("plain", [tool("echo", "Say it again.")]))

    assert {"echo"} == await find_names(gateway, HEALTHY)

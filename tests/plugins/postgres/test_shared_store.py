"""Gateways that share a store and follow each other's changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.catalog import Entry
from gateway.gateway import Gateway
from gateway.index import Snapshot
from gateway.plugins.postgres import PostgresStore
from gateway.runtime.background_loop import Bridge
from tests.conftest import OpenGateway
from tests.core.servers.live_servers import live_server, patient
from tests.fakes import tool
from tests.postgres_server import PostgresServer

WAIT_S = 60


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    """Background loop for the servers."""
    bridge = Bridge("upstream")
    yield bridge
    bridge.close()


@pytest.fixture
def open_replica(
    open_gateway: OpenGateway, postgres: PostgresServer, tmp_path: Path
) -> OpenGateway:
    """Return a function that opens gateways on one store."""

    def opened(**upstream: object) -> Gateway:
        store = PostgresStore(postgres.url, schema=tmp_path.name)
        options = patient(tmp_path, **upstream)
        return open_gateway(store=store, vector_store=None, options=options)

    return opened


async def wait_until(gateway: Gateway, condition: Callable[[Snapshot], bool]) -> None:
    """Poll until the snapshot satisfies *condition*. There is no event to wait for."""
    async with asyncio.timeout(WAIT_S):
        while not condition(await gateway.snapshot()):  # noqa: ASYNC110  (no event says it)
            await asyncio.sleep(0)


def has(key: str, description: str = "") -> Callable[[Snapshot], bool]:
    return lambda snapshot: any(
        entity.id == key and description in entity.description for entity in snapshot.entities
    )


async def test_listing_and_approval_by_one_gateway_take_effect_in_another(
    open_replica: OpenGateway, bridge: Bridge
) -> None:
    """The gateways share a store, and only one of them lists the server."""
    first, second = open_replica(on_change="block"), open_replica(on_change="block")
    async with live_server(bridge, [tool("add", "Add numbers.")]) as server:
        for gateway in (first, second):
            gateway.add_server("srv", url=server.url)
            await wait_until(gateway, has("srv/add"))
        listings = server.shelf.listings
        server.shelf.tools += [tool("new", "Is new.")]
        await first.refresh()
        await wait_until(second, has("srv/new"))
        server.shelf.tools[0] = tool("add", "Add many numbers.")
        await first.refresh()
        await wait_until(second, lambda snapshot: not has("srv/add")(snapshot))
        await first.approve("srv/add")
        await wait_until(second, has("srv/add", "many"))

        assert listings + 2 == server.shelf.listings


async def test_gateway_finds_changes_made_while_its_database_connection_was_lost(
    open_replica: OpenGateway, postgres: PostgresServer
) -> None:
    first, second = open_replica(), open_replica()
    await wait_until(second, lambda snapshot: not snapshot.entities)
    postgres.stop()
    postgres.start()
    await first.catalog.put(Entry(kind="agent", name="planner"))

    await wait_until(second, has("agent:catalog/planner"))

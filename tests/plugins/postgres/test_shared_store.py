"""Gateways that share a store: what one changes, the others find."""

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
    """The loop of the servers beside the gateways."""
    made = Bridge("upstream")
    yield made
    made.close()


@pytest.fixture
def replica(open_gateway: OpenGateway, postgres: PostgresServer, tmp_path: Path) -> OpenGateway:
    """Open gateways over one store."""

    def opened(**upstream: object) -> Gateway:
        store = PostgresStore(postgres.url, schema=tmp_path.name)
        options = patient(tmp_path, **upstream)
        return open_gateway(store=store, vector_store=None, options=options)

    return opened


async def found(gateway: Gateway, wanted: Callable[[Snapshot], bool]) -> None:
    """Ask until the index is as *wanted*: nothing but the index says what arrived."""
    async with asyncio.timeout(WAIT_S):
        while not wanted(await gateway.snapshot()):  # noqa: ASYNC110  (no event says it)
            await asyncio.sleep(0)


def has(key: str, description: str = "") -> Callable[[Snapshot], bool]:
    return lambda snapshot: any(
        entity.id == key and description in entity.description for entity in snapshot.entities
    )


async def test_a_tool_list_and_an_approval_of_another_gateway_take_effect(
    replica: OpenGateway, bridge: Bridge
) -> None:
    """The second one asks its server for no list: one of them asked."""
    one, two = replica(on_change="block"), replica(on_change="block")
    async with live_server(bridge, [tool("add", "Add numbers.")]) as server:
        for gateway in (one, two):
            gateway.add_server("srv", url=server.url)
            await found(gateway, has("srv/add"))
        listings = server.shelf.listings
        server.shelf.tools += [tool("new", "Is new.")]
        await one.refresh()
        await found(two, has("srv/new"))
        server.shelf.tools[0] = tool("add", "Add many numbers.")
        await one.refresh()
        await found(two, lambda snapshot: not has("srv/add")(snapshot))
        await one.approve("srv/add")
        await found(two, has("srv/add", "many"))

        assert listings + 2 == server.shelf.listings


async def test_what_changed_while_the_connection_was_lost_is_found(
    replica: OpenGateway, postgres: PostgresServer
) -> None:
    """When it is there again, everything is looked at."""
    one, two = replica(), replica()
    await found(two, lambda snapshot: not snapshot.entities)
    postgres.stop()
    postgres.start()
    await one.catalog.put(Entry(kind="agent", name="planner"))

    await found(two, has("agent:catalog/planner"))

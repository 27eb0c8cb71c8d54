from __future__ import annotations

import pytest

from gateway import discover
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.options import Options, SearchOptions
from gateway.plugins.provision import LIMIT
from tests.conftest import CatalogOf, OpenGateway
from tests.fakes import Gated, ListSource, Shelf, tool


def weigh(parcel: str) -> str:
    """Weigh a parcel."""
    return parcel


@pytest.fixture
def gateway(open_gateway: OpenGateway) -> Gateway:
    new_gateway = open_gateway()
    new_gateway.add_tool(weigh)
    shelf = Shelf([tool("play_song", "Play a song."), tool("stop_song", "Stop the song.")])
    new_gateway.add_server("music", server=shelf.server)
    new_gateway.add_source(ListSource("post", [tool("send_parcel", "Send a parcel to somebody.")]))
    return new_gateway


async def test_overview_for_an_intent_has_tools_with_schemas_and_their_servers(
    gateway: Gateway,
) -> None:
    overview = await discover(gateway, "weigh a parcel")

    first = overview.tools[0]
    assert ("local/weigh", "local", ["parcel"]) == (first.id, first.state, first.schema["required"])
    assert first.confidence is not None
    assert first.score is not None
    best = overview.servers[0]
    assert ("local", 1, first.confidence) == (best.name, best.tools, best.confidence)
    assert {item.server for item in overview.tools} == {item.name for item in overview.servers}


async def test_overview_without_an_intent_lists_everything_by_name(gateway: Gateway) -> None:
    overview = await discover(gateway)

    assert [("local", "local", 1), ("music", "active", 2), ("post", "local", 1)] == [
        (item.name, item.state, item.tools) for item in overview.servers
    ]
    assert ["play_song", "send_parcel", "stop_song", "weigh"] == [
        item.name for item in overview.tools
    ]
    assert {None} == {item.confidence for item in overview.tools}
    assert "browse" == overview.mode


async def test_overview_has_twenty_tools_by_default(open_gateway: OpenGateway) -> None:
    large_gateway = open_gateway(
        [tool(f"list_{number}", "List the invoices.") for number in range(60)]
    )

    assert LIMIT == 20 == len((await discover(large_gateway)).tools)
    assert LIMIT == len((await discover(large_gateway, "list the invoices")).tools)
    assert 30 == len((await discover(large_gateway, "list the invoices", limit=30)).tools)
    with pytest.raises(InvalidRequestError):
        await discover(large_gateway, limit=0)


async def test_overview_reports_a_server_that_cannot_be_listed_with_its_state(
    open_gateway: OpenGateway,
) -> None:
    created = open_gateway()
    created.add_server("gone", command="/no/such/program")

    overview = await discover(created)

    assert [("gone", "failed", 0)] == [
        (item.name, item.state, item.tools) for item in overview.servers
    ]
    assert "source_load_failed" in [item.code for item in overview.diagnostics]


async def test_overview_does_not_wait_for_vectors(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    embedder = Gated()
    created = open_gateway(
        catalog_of(80),
        strategy="auto",
        embedder=embedder,
        options=Options(search=SearchOptions(first_search="words")),
    )
    broken = ListSource("broken")
    broken.fail_with = OSError()
    created.add_source(broken)

    overview = await discover(created, "approve one yearly invoice")

    data = [item.code for item in overview.diagnostics]
    assert not embedder.asked
    assert (LIMIT, "graph") == (len(overview.tools), overview.mode)
    assert (1, 1) == (data.count("index_building"), data.count("source_load_failed"))

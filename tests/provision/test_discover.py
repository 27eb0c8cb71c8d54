"""What the catalog tells of itself, and how entries outside of it are ranked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from gateway.embed.cache import MemoryVectorStore
from gateway.embed.protocol import Embedded, Role
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.options import Options, SearchOptions
from gateway.provision.candidates import bundled_servers, rank_servers
from gateway.provision.discover import LIMIT, discover
from gateway.provision.registry_schema import RegistryEntry
from gateway.testing import HashingEmbedder
from gateway.types import Filters
from tests.conftest import CatalogOf, OpenGateway
from tests.fakes import Gated, ListSource, Shelf, tool


def weigh(parcel: str) -> str:
    """Weigh a parcel."""
    return parcel


@pytest.fixture
def gateway(open_gateway: OpenGateway) -> Gateway:
    made = open_gateway()
    made.add_tool(weigh)
    shelf = Shelf([tool("play_song", "Play a song."), tool("stop_song", "Stop the song.")])
    made.add_server("music", server=shelf.server)
    made.add_source(ListSource("post", [tool("send_parcel", "Send a parcel to somebody.")]))
    return made


async def test_an_intent_finds_tools_with_schemas_and_their_servers(gateway: Gateway) -> None:
    """All that a model needs to call one, and what its server does at the moment."""
    found = await discover(gateway, "weigh a parcel")

    first = found.tools[0]
    assert ("local/weigh", "local", ["parcel"]) == (first.id, first.state, first.schema["required"])
    assert first.confidence is not None
    assert first.score is not None
    best = found.servers[0]
    assert ("local", 1, first.confidence) == (best.name, best.tools, best.confidence)
    assert {each.server for each in found.tools} == {each.name for each in found.servers}


async def test_nothing_asked_tells_of_everything_by_name(gateway: Gateway) -> None:
    found = await discover(gateway)

    assert [("local", "local", 1), ("music", "active", 2), ("post", "local", 1)] == [
        (each.name, each.state, each.tools) for each in found.servers
    ]
    assert ["play_song", "send_parcel", "stop_song", "weigh"] == [each.name for each in found.tools]
    assert {None} == {each.confidence for each in found.tools}
    assert "browse" == found.mode


async def test_twenty_tools_are_told_unless_more_are_wanted(open_gateway: OpenGateway) -> None:
    made = open_gateway([tool(f"list_{number}", "List the invoices.") for number in range(60)])

    assert LIMIT == 20 == len((await discover(made)).tools)
    assert LIMIT == len((await discover(made, "list the invoices")).tools)
    assert 30 == len((await discover(made, "list the invoices", limit=30)).tools)
    with pytest.raises(InvalidRequestError):
        await discover(made, limit=0)


async def test_a_server_that_cannot_be_listed_is_told_with_its_state(
    open_gateway: OpenGateway,
) -> None:
    """It is configured: that it offers nothing is news."""
    made = open_gateway()
    made.add_server("gone", command="/no/such/program")

    found = await discover(made)

    assert [("gone", "failed", 0)] == [
        (each.name, each.state, each.tools) for each in found.servers
    ]
    assert "source_load_failed" in [each.code for each in found.diagnostics]


async def test_filters_hold(gateway: Gateway) -> None:
    found = await discover(gateway, filters=Filters(servers=frozenset({"music"})))

    assert {"music"} == {each.server for each in found.tools}


async def test_nobody_waits_for_vectors_that_are_being_made(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """Where searches do not, and it is told once."""
    embedder = Gated()
    made = open_gateway(
        catalog_of(80),
        strategy="auto",
        embedder=embedder,
        options=Options(search=SearchOptions(first_search="words")),
    )
    broken = ListSource("broken")
    broken.fail_with = OSError()
    made.add_source(broken)

    found = await discover(made, "approve one yearly invoice")

    told = [each.code for each in found.diagnostics]
    assert not embedder.asked
    assert (LIMIT, "graph") == (len(found.tools), found.mode)
    assert (1, 1) == (told.count("index_building"), told.count("source_load_failed"))


CASES = (
    ("what time is it in Kyiv", "modelcontextprotocol/time"),
    ("crawl a whole website", "firecrawl/firecrawl"),
    ("make a pivot table in an Excel workbook", "haris-musa/excel"),
    ("get the transcript of this YouTube video", "kimtaeyoon83/youtube-transcript"),
    ("refund a customer in Stripe", "stripe/stripe"),
)


@pytest.mark.parametrize(("intent", "expected"), CASES)
async def test_well_known_servers_are_found_by_what_they_are_for(
    open_gateway: OpenGateway, intent: str, expected: str
) -> None:
    """By the search that ranks tools, words alone."""
    ranked = await rank_servers(open_gateway(), bundled_servers(), intent, limit=3, max_ranked=500)

    assert expected == ranked[0].entry.name
    assert ranked[0].confidence > 0.9


class Watched(HashingEmbedder):
    """Notes what it embeds and on which loop."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []
        self.loops: set[int] = set()

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        self.given += texts
        self.loops.add(id(asyncio.get_running_loop()))
        return await super().embed(texts, role=role)


async def test_vectors_rank_too_on_the_gateways_own_loop(open_gateway: OpenGateway) -> None:
    """An embedder's connections belong to one loop."""
    embedder = Watched()
    made = open_gateway(strategy="auto", embedder=embedder)
    entries = [
        RegistryEntry(name="a/parcels", description="Weighs."),
        RegistryEntry(name="a/songs"),
    ]

    ranked = await rank_servers(made, entries, "parcels", limit=1, max_ranked=500)

    async def loop() -> int:
        return id(asyncio.get_running_loop())

    assert ["a/parcels"] == [each.entry.name for each in ranked]
    assert {await made.bridge.run(loop)} == embedder.loops


async def test_of_a_large_registry_words_choose_what_is_embedded() -> None:
    """Embedding ten thousand entries for one question would take minutes."""
    embedder = Watched()
    entries = [
        RegistryEntry(name=f"a/s{number}", description=f"Number {number}.") for number in range(300)
    ]
    entries.append(RegistryEntry(name="b/parcels", description="Weighs a parcel."))
    async with Gateway(
        strategy="auto", embedder=embedder, vector_store=MemoryVectorStore()
    ) as made:
        ranked = await rank_servers(made, entries, "weigh a parcel", limit=3, max_ranked=100)

    assert "b/parcels" == ranked[0].entry.name
    assert not any("Number" in text for text in embedder.given)


async def test_equal_names_of_two_publishers_are_both_found(open_gateway: OpenGateway) -> None:
    entries = [
        RegistryEntry(name="b/parcels", description="Weighs a parcel."),
        RegistryEntry(name="a/parcels", description="Weighs a parcel."),
    ]

    ranked = await rank_servers(open_gateway(), entries, "weigh a parcel", limit=5, max_ranked=500)

    assert {"a/parcels", "b/parcels"} == {each.entry.name for each in ranked}


async def test_no_entries_are_no_candidates(open_gateway: OpenGateway) -> None:
    assert () == await rank_servers(open_gateway(), (), "anything", limit=5, max_ranked=500)

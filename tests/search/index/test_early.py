"""A new catalog that takes long to embed: words and the graph answer until it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from gateway.config import Options, SearchOptions
from gateway.embed.cached import MemoryVectorStore
from gateway.embed.protocol import Embedded, Role
from gateway.gateway import Gateway
from gateway.testing import HashingEmbedder
from gateway.types import ToolDefinition
from tests.conftest import CatalogOf, OpenGateway
from tests.fakes import codes, names, until

AT_ONCE = Options(search=SearchOptions(first_search="words"))
QUERY = "approve one yearly invoice of the account"


class Gated(HashingEmbedder):
    """Embeds as many documents as it is let to, and queries at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.broken = False
        self._loop = asyncio.get_running_loop()

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        if role == "document":
            waiting = asyncio.run_coroutine_threadsafe(self.gate.wait(), self._loop)
            await asyncio.wrap_future(waiting)
            if self.broken:
                raise TimeoutError
        return await super().embed(texts, role=role)


def told(gateway_codes: list[str]) -> list[str]:
    return [code for code in gateway_codes if code in {"index_building", "graph_fallback"}]


async def wait_for_all(gateway: Gateway) -> None:
    async def whole() -> bool:
        return "index_building" not in codes(await gateway.search(QUERY))

    await until(whole)


async def test_words_and_the_graph_answer_until_the_vectors_are_made(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """The first answer says what it is and how far the index has come; nobody waits for it."""
    embedder = Gated()
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=embedder, options=AT_ONCE)

    first = await gateway.search(QUERY)
    again = await gateway.search(QUERY)
    tools = await gateway.list_tools()
    known = gateway.known
    embedder.gate.set()
    report = await gateway.report()
    last = await gateway.search(QUERY)

    by_graph = await open_gateway(catalog_of(80)).search(QUERY)
    assert ("graph", ["index_building", "graph_fallback"]) == (first.mode, told(codes(first)))
    assert " of 216 texts have a vector" in first.diagnostics[0].detail
    assert names(by_graph) == names(first) == names(again)
    assert first.degraded
    assert not again.cached
    assert 80 == len(tools)
    assert known is None
    assert ("hybrid", []) == (last.mode, codes(last))
    assert (80, ()) == (report.vectors, report.diagnostics)
    assert 216 == embedder.texts - 1
    assert gateway.known is not None


async def test_the_vectors_take_over_by_themselves(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """As a build without waiting would have it."""
    embedder = Gated()
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=embedder, options=AT_ONCE)
    await gateway.search(QUERY)

    embedder.gate.set()
    await wait_for_all(gateway)

    waited = open_gateway(catalog_of(80), strategy="auto", embedder=HashingEmbedder())
    assert await waited.search(QUERY) == await gateway.search(QUERY)


async def test_what_is_added_meanwhile_is_found_and_can_be_called(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """A server that comes in late does not make anybody wait for the others' vectors."""
    embedder = Gated()
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=embedder, options=AT_ONCE)
    await gateway.search(QUERY)

    def water_plants() -> str:
        """Water the plants."""
        return "done"

    gateway.add_tool(water_plants)
    found = await gateway.search("water the plants")
    called = await gateway.invoke("water_plants")
    embedder.gate.set()
    report = await gateway.report()

    assert "water_plants" == names(found)[0]
    assert "index_building" in codes(found)
    assert "done" == called.text
    assert 81 == report.vectors


@pytest.mark.parametrize(
    ("strategy", "options"), [("embeddings", AT_ONCE), ("auto", Options())], ids=str
)
async def test_who_did_not_ask_for_it_waits(
    open_gateway: OpenGateway, catalog_of: CatalogOf, strategy: str, options: Options
) -> None:
    """By default, and where vectors alone rank."""
    embedder = Gated()
    gateway = open_gateway(catalog_of(80), strategy=strategy, embedder=embedder, options=options)
    searching = asyncio.ensure_future(gateway.search(QUERY))
    embedder.gate.set()

    assert [] == codes(await searching)


async def test_a_small_catalog_is_waited_for(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """So is a large one of which nearly all is kept already."""
    store = MemoryVectorStore()
    gateway = open_gateway(
        catalog, strategy="auto", embedder=HashingEmbedder(), options=AT_ONCE, vector_store=store
    )

    assert "hybrid" == (await gateway.search("send an e-mail")).mode


async def test_what_is_kept_already_is_not_waited_for(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    store = MemoryVectorStore()
    whole = {"strategy": "auto", "options": AT_ONCE, "vector_store": store}
    await open_gateway(catalog_of(80), embedder=HashingEmbedder(), **whole).report()

    found = await open_gateway(catalog_of(90), embedder=HashingEmbedder(), **whole).search(QUERY)

    assert "hybrid" == found.mode


async def test_an_embedder_that_fails_ends_the_waiting(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """Then it is as it ever was: what failed is said, and tried again after a while."""
    embedder = Gated()
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=embedder, options=AT_ONCE)
    await gateway.search(QUERY)
    embedder.broken = True

    embedder.gate.set()
    report = await gateway.report()
    found = await gateway.search(QUERY)

    assert {"embedding_failed", "vectors_incomplete"} <= {each.code for each in report.diagnostics}
    assert "index_building" not in codes(found)
    assert "graph" == found.mode


async def test_a_gateway_that_is_closed_meanwhile_ends(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=Gated(), options=AT_ONCE)
    await gateway.search(QUERY)

    await gateway.aclose()

    assert 1 == gateway.index_builds

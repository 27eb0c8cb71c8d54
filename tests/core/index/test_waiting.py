"""Searches while the vectors of a new catalog are missing: words and the graph rank until then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from gateway.discovery import MetaNames, ToolList, ToolListBuilder, ToolListRequest
from gateway.discovery.call_handler import ToolAnswer, ToolCall, handle_call
from gateway.embed import Embedder, EmbeddingLimits, MemoryVectorStore
from gateway.errors import StoreError
from gateway.gateway import Gateway
from gateway.options import DiscoveryOptions, Options, SearchOptions
from gateway.options.search import First
from gateway.runtime.vectors import Vector, VectorStore
from gateway.testing import HashingEmbedder
from gateway.types import Access, Filters
from tests.conftest import CatalogOf, OpenGateway
from tests.fakes import CountedStore, Gate, Gated, ListSource, Shelf, codes, names, tool, until

WORDS_FIRST = Options(search=SearchOptions(first_search="words"))
NEW = "new"
QUERY = "approve one yearly invoice of the account"


class FailingStore(MemoryVectorStore):
    """A vector store whose methods fail."""

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        raise StoreError("no disk")

    def put(self, model_id: str, vectors: Mapping[str, Vector]) -> None:
        raise StoreError("no disk")


def progress_codes(gateway_codes: list[str]) -> list[str]:
    return [code for code in gateway_codes if code in {"index_building", "graph_fallback"}]


async def open_and_search(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> tuple[Gateway, Gated]:
    """Open a gateway whose embedder does not answer yet, search once, and return both."""
    embedder = Gated()
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=embedder, options=WORDS_FIRST)
    await gateway.search(QUERY)
    return gateway, embedder


async def wait_for_all(gateway: Gateway) -> None:
    async def is_complete() -> bool:
        return "index_building" not in codes(await gateway.search(QUERY))

    await until(is_complete)


async def test_words_and_graph_rank_until_the_vectors_are_ready(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """The first result reports the progress of embedding. Searches do not wait."""
    embedder = Gated()
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=embedder, options=WORDS_FIRST)

    first = await gateway.search(QUERY)
    again = await gateway.search(QUERY)
    tools = await gateway.list_tools()
    embedder.gate.set()
    report = await gateway.report()
    last = await gateway.search(QUERY)

    by_graph = await open_gateway(catalog_of(80)).search(QUERY)
    assert ("graph", ["index_building", "graph_fallback"]) == (
        first.mode,
        progress_codes(codes(first)),
    )
    assert " of 160 texts have a vector" in first.diagnostics[0].detail
    assert names(by_graph) == names(first) == names(again)
    assert first.degraded
    assert not again.cached
    assert 80 == len(tools)
    assert ("hybrid", []) == (last.mode, codes(last))
    assert (80, (), 160) == (report.vectors, report.diagnostics, report.embedded_texts)
    assert report.tokens
    assert 160 == embedder.texts - 1


async def test_tool_added_during_embedding_can_be_found_and_called(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """Searches for it must not wait for the vectors of other tools."""
    gateway, embedder = await open_and_search(open_gateway, catalog_of)

    def water_plants() -> str:
        """Water the plants."""
        return "done"

    gateway.add_tool(water_plants)
    result = await gateway.search("water the plants")
    called = await gateway.invoke("water_plants")
    embedder.gate.set()
    report = await gateway.report()

    assert "water_plants" == names(result)[0]
    assert "index_building" in codes(result)
    assert "done" == called.text
    assert 81 == report.vectors


@pytest.mark.parametrize(
    ("strategy", "options"), [("embeddings", WORDS_FIRST), ("auto", Options())], ids=str
)
async def test_gateway_search_waits_for_vectors_by_default(
    open_gateway: OpenGateway, catalog_of: CatalogOf, strategy: str, options: Options
) -> None:
    """It always waits if the strategy ranks only by vectors."""
    embedder = Gated()
    gateway = open_gateway(catalog_of(80), strategy=strategy, embedder=embedder, options=options)
    searching = asyncio.ensure_future(gateway.search(QUERY))
    embedder.gate.set()

    assert [] == codes(await searching)


@pytest.mark.parametrize("wait_s", [0, 0.01])
async def test_words_answer_a_model_that_waited_in_vain(
    open_gateway: OpenGateway, catalog_of: CatalogOf, wait_s: float
) -> None:
    """Words rank the tools for searches, routes and preselection. A note tells the model to search
    again.
    """
    discovery = DiscoveryOptions(route_name="route_tools", preselect=1)
    options = Options(search=SearchOptions(first_search_wait_s=wait_s), discovery=discovery)
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=Gated(), options=options)
    request = ToolListRequest(messages=[{"role": "user", "content": QUERY}])

    tools = await ToolListBuilder(gateway).build(request)
    answer_to_one = await call_meta_tool(gateway, "search_tools", query=QUERY)
    several = await call_meta_tool(gateway, "search_tools", queries=[QUERY, "book a flight"])
    route = await call_meta_tool(gateway, "route_tools", query=QUERY)

    assert 1 == len(tools.proxies)
    for answer in (answer_to_one, several):
        assert answer.search
        assert "index_building" in codes(answer.search)
        assert "if none of these fits, search again in a moment" in answer.text
    assert "shelf" in route.text


@pytest.mark.parametrize("first_search", ["wait", "words", "auto"])
async def test_search_by_a_model_waits_for_vectors(
    open_gateway: OpenGateway, catalog_of: CatalogOf, first_search: First
) -> None:
    options = Options(search=SearchOptions(first_search=first_search, first_search_wait_s=120))
    embedder = Gated()
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=embedder, options=options)
    searching = asyncio.ensure_future(call_meta_tool(gateway, "search_tools", query=QUERY))
    embedder.gate.set()

    search = (await searching).search

    assert search
    assert ("hybrid", []) == (search.mode, codes(search))


async def test_texts_that_fit_a_waiting_query_are_embedded_first(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """The query comes while other texts are embedded. Every text is embedded once."""
    embedder = Gated()
    embedder.info = replace(embedder.info, limits=EmbeddingLimits(max_texts=16))
    tools = (*catalog_of(80), tool("water_plants", "Water the plants."))
    gateway = open_gateway(tools, strategy="auto", embedder=embedder)
    await gateway.list_tools()
    await embedder.gate.reached.wait()

    search = asyncio.create_task(gateway.search("water the plants", wait=120.0))
    await asyncio.sleep(0)
    embedder.gate.set()
    result = await search

    documents = embedder.batches[:-1]
    texts = [text for batch in documents for text in batch]
    assert ("hybrid", []) == (result.mode, codes(result))
    assert "plants" not in " ".join(documents[0])
    assert all("plants" in text for text in documents[1])
    assert 162 == len(texts) == len({*texts})
    assert 162 == (await gateway.report()).embedded_texts


async def test_texts_of_listed_servers_are_embedded_while_others_are_listed(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """Every text is embedded once, and a later process embeds nothing."""
    store, embedder = CountedStore(), HashingEmbedder()
    slow, gateway = await open_two_servers(open_gateway, catalog_of, embedder, store)
    reporting = asyncio.ensure_future(gateway.report())

    async def are_embedded() -> bool:
        return embedder.texts >= 41

    await until(are_embedded)
    assert slow.gate
    slow.gate.set()
    report = await reporting
    again = HashingEmbedder()
    other, second = await open_two_servers(open_gateway, catalog_of, again, store)
    assert other.gate
    other.gate.set()

    assert (1, embedder.texts) == (gateway.index_builds, report.embedded_texts)
    assert report.vectors == report.entities == (await second.report()).vectors
    assert len(store) == embedder.texts
    assert 0 == again.texts


async def test_build_does_not_wait_for_texts_that_are_being_embedded(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """The texts in the embedder are not embedded again."""
    store, embedder = CountedStore(), Gated()
    slow, gateway = await open_two_servers(open_gateway, catalog_of, embedder, store)
    searching = asyncio.ensure_future(gateway.search(QUERY, wait=False))
    await embedder.gate.reached.wait()
    assert slow.gate
    slow.gate.set()
    result = await searching
    embedder.gate.set()
    report = await gateway.report()

    assert ("graph", True) == (result.mode, "index_building" in codes(result))
    assert len(store) == report.embedded_texts == embedder.texts


async def open_two_servers(
    open_gateway: OpenGateway, catalog_of: CatalogOf, embedder: Embedder, store: VectorStore
) -> tuple[Shelf, Gateway]:
    """Open a gateway of two servers, and return the one that is listed once its gate is open."""
    slow = Shelf(catalog_of(50)[20:])
    slow.gate = Gate()
    gateway = open_gateway(strategy="auto", embedder=embedder, vector_store=store)
    gateway.add_server("fast", server=Shelf(catalog_of(20)).server)
    gateway.add_server("slow", server=slow.server)
    return slow, gateway


async def call_meta_tool(gateway: Gateway, name: str, **arguments: object) -> ToolAnswer:
    """Call a meta-tool as a model does, and return the answer."""
    names = MetaNames(search="search_tools", call="call_tool", route="route_tools")
    call = ToolCall(id="1", name=name, arguments=json.dumps(arguments))
    return await handle_call(gateway, ToolList(names=names), call)


async def test_search_stops_waiting_for_vectors_if_the_embedder_fails(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """The result reports the failure, and embedding is retried later."""
    gateway, embedder = await open_and_search(open_gateway, catalog_of)
    embedder.broken = True

    embedder.gate.set()
    report = await gateway.report()
    result = await gateway.search(QUERY)

    assert {"embedding_failed", "vectors_incomplete"} <= {note.code for note in report.diagnostics}
    assert "index_building" not in codes(result)
    assert "graph" == result.mode
    assert 1 == embedder.asked


async def test_failed_embedding_is_retried_in_the_background(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """Searches do not wait for the retry, and it does not start before its time."""
    now, embedder = [0.0], Gated()
    gateway = open_gateway(
        catalog_of(80),
        strategy="auto",
        embedder=embedder,
        options=WORDS_FIRST,
        clock=lambda: now[0],
    )
    embedder.broken = True
    embedder.gate.set()
    await gateway.report()
    embedder.broken = False
    embedder.gate.clear()

    before = codes(await gateway.search(QUERY))
    now[0] += 3600
    await wait_for_code(gateway, "index_building")
    embedder.gate.set()
    await wait_for_all(gateway)

    assert "vectors_incomplete" in before
    assert "hybrid" == (await gateway.search(QUERY)).mode


async def wait_for_code(gateway: Gateway, code: str) -> None:
    async def is_reported() -> bool:
        return code in codes(await gateway.search(QUERY))

    await until(is_reported)


async def test_vectors_of_a_growing_catalog_stay_in_use(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """Only new tools lack vectors. Searches do not wait for them, and the result is not cached."""
    embedder = Gated()
    gateway = open_gateway(catalog_of(200), strategy="auto", embedder=embedder, options=WORDS_FIRST)
    embedder.gate.set()
    await gateway.report()
    embedder.gate.clear()

    gateway.add_source(ListSource("more", catalog_of(250)[200:]))
    results = [await gateway.search(QUERY) for _ in range(2)]
    embedder.gate.set()
    report = await gateway.report()

    assert ["hybrid"] * 2 == [result.mode for result in results]
    assert [["index_building"]] * 2 == [progress_codes(codes(result)) for result in results]
    assert not results[1].cached
    assert 250 == report.vectors
    assert ("hybrid", []) == ((last := await gateway.search(QUERY)).mode, codes(last))


@pytest.mark.parametrize(
    ("before", "mode", "notes"),
    [(200, "hybrid", ["index_building"]), (199, "graph", ["index_building", "graph_fallback"])],
)
async def test_vectors_rank_if_four_of_five_tools_have_one(
    open_gateway: OpenGateway, catalog_of: CatalogOf, before: int, mode: str, notes: list[str]
) -> None:
    """An earlier process embedded these tools. With fewer vectors, words rank, because tools
    without a vector would come last.
    """
    store, tools = MemoryVectorStore(), catalog_of(250)
    is_complete = {"strategy": "auto", "options": WORDS_FIRST, "vector_store": store}
    await open_gateway(tools[:before], embedder=HashingEmbedder(), **is_complete).report()

    second = open_gateway(tools[:before], embedder=Gated(), **is_complete)
    second.add_source(ListSource("more", tools[before:]))
    result = await second.search(QUERY)

    assert (mode, notes) == (result.mode, progress_codes(codes(result)))


async def test_words_rank_if_few_eligible_tools_have_a_vector(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """The filter selects a new server, whose tools all lack a vector, although four of five tools
    of the catalog have one.
    """
    embedder, tools = Gated(), catalog_of(250)
    gateway = open_gateway(tools[:200], strategy="auto", embedder=embedder, options=WORDS_FIRST)
    embedder.gate.set()
    await gateway.report()
    embedder.gate.clear()

    gateway.add_source(ListSource("more", tools[200:]), access=Access(tags=(NEW,)))
    result = await gateway.search(QUERY, filters=Filters(tags=frozenset({NEW})))

    assert ("graph", 50) == (result.mode, result.counts.eligible)


async def test_failed_server_is_retried_during_embedding(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """Without a failed server, searches during embedding do not cause a new build."""
    now, down = [0.0], ListSource("down")
    down.fail_with = OSError()
    embedder = Gated()
    gateway = open_gateway(
        catalog_of(80),
        strategy="auto",
        embedder=embedder,
        options=WORDS_FIRST,
        clock=lambda: now[0],
    )
    gateway.add_source(down)
    before = codes(await gateway.search(QUERY))
    down.fail_with = None

    now[0] += 3600

    async def is_up() -> bool:
        return "source_load_failed" not in codes(await gateway.search(QUERY))

    await until(is_up)

    assert "source_load_failed" in before
    assert "index_building" in codes(await gateway.search(QUERY))


async def test_report_without_wait_describes_the_current_build(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """If there is no build yet, the report starts one, but does not wait for it."""
    embedder = Gated()
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=embedder, options=WORDS_FIRST)

    nothing = await gateway.report(wait=False)
    await gateway.list_tools()
    listed = await gateway.report(wait=False)
    await embedder.gate.reached.wait()
    gateway.add_source(ListSource("more", [tool("water_plants", "Water the plants.")]))
    changed = await gateway.report(wait=False)
    embedder.gate.set()
    is_complete = await gateway.report()

    details = [report.diagnostics[0].detail for report in (nothing, listed, changed)]
    assert {"index_building"} == {
        report.diagnostics[0].code for report in (nothing, listed, changed)
    }
    assert (0, 80, 80) == (nothing.entities, listed.entities, changed.entities)
    assert (0, 0) == (listed.vectors, changed.vectors)
    assert "nothing is listed yet" in details[0]
    assert "of 160 texts have a vector" in details[1]
    assert "the catalog changed" in details[2]
    assert (81, 81, ()) == (is_complete.entities, is_complete.vectors, is_complete.diagnostics)
    assert is_complete == await gateway.report(wait=False)


async def test_vectors_of_tools_removed_during_embedding_are_dropped(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    embedder = Gated()
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=embedder, options=WORDS_FIRST)
    await gateway.list_tools()
    await embedder.gate.reached.wait()
    await gateway.remove_server("shelf")
    gateway.add_source(ListSource("few", catalog_of(90)[85:]))
    tools = await gateway.list_tools()

    embedder.gate.set()
    report = await gateway.report()

    assert (5, 5, ()) == (len(tools), report.vectors, report.diagnostics)


async def test_closing_the_gateway_stops_embedding(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    gateway, _ = await open_and_search(open_gateway, catalog_of)

    await gateway.aclose()

    assert 1 == gateway.index_builds

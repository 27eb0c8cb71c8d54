"""Rule 11: the work of a search is bounded in a large catalog. Work is counted instead of timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.gateway import Gateway
from gateway.storage import SqliteVectorStore
from gateway.testing import HashingEmbedder
from gateway.types import ToolDefinition
from tests.conftest import CatalogOf, OpenGateway
from tests.core.search.conftest import Catalog
from tests.fakes import Shelf, names

QUERIES = (
    "approve the urgent invoice",
    "надіслати лист",
    "shedule a meting wiht the employe",
    "list_recurring_payment",
    "export everything " * 30 + ". Then archive the contract. And cancel the flight to Rome.",
)


def calls_of(gateway: Gateway) -> int:
    assert isinstance(gateway.embedder, HashingEmbedder)
    return gateway.embedder.calls


@pytest.mark.requirement("auto:rule-11")
@pytest.mark.parametrize("query", QUERIES)
async def test_work_of_a_search_over_three_thousand_tools_is_bounded(
    big: Gateway, big_shelf: Shelf, query: str
) -> None:
    """Rule 11: at most one embedding request, no build, no listing, few graph nodes."""
    await big.report()
    before = (big.index_builds, big_shelf.listings)
    calls = calls_of(big)

    result = await big.search(query)
    again = await big.search(query)

    assert "hybrid" == result.mode
    assert 3000 == result.counts.eligible
    assert (200, True) == (result.counts.candidates, result.counts.window <= 20)
    assert calls + 1 == calls_of(big)
    assert before == (big.index_builds, big_shelf.listings)
    assert again.cached


@pytest.mark.requirement("auto:rule-11")
async def test_several_queries_need_one_embedding_request(big: Gateway) -> None:
    """Rule 11: the queries are embedded together."""
    await big.report()
    calls = calls_of(big)

    result = await big.search(queries=[f"step {number} of the task" for number in range(8)])

    assert calls + 1 == calls_of(big)
    assert 8 == result.counts.embedded_texts


@pytest.mark.requirement("auto:rule-11")
@pytest.mark.parametrize("query", ["approve the invoice", "cancel_flight", "get one hotel"])
async def test_visited_graph_nodes_do_not_grow_with_the_catalog(
    open_gateway: OpenGateway, big: Gateway, catalog_of: CatalogOf, query: str
) -> None:
    """Rule 11: only the graph around the matches is visited, and large groups are skipped."""
    options = {"strategy": "auto", "embedder": HashingEmbedder()}
    small = await open_gateway(catalog_of(100), **options).search(query)

    large = await big.search(query)

    assert large.counts.graph_nodes <= max(small.counts.graph_nodes, 100)
    assert large.counts.graph_nodes < 300


@pytest.mark.requirement("auto:rule-11")
async def test_second_start_of_a_gateway_embeds_no_texts(
    open_gateway: OpenGateway, catalog_of: CatalogOf, tmp_path: Path
) -> None:
    """Vectors are stored under the model id and the text."""
    texts = []
    for _ in range(2):
        store = SqliteVectorStore(tmp_path / "vectors.sqlite3")
        embedder = HashingEmbedder()
        gateway = open_gateway(
            catalog_of(600), strategy="auto", embedder=embedder, vector_store=store
        )
        report = await gateway.report()
        texts.append((embedder.texts, report.embedded_texts, report.vectors))
        await gateway.aclose()

    assert [(1200, 1200, 600), (0, 0, 600)] == texts


@pytest.mark.requirement("auto:rule-11")
async def test_adding_a_tool_embeds_only_its_two_texts(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """Servers are not listed again, either."""
    embedder = HashingEmbedder()
    shelf = Shelf(catalog_of(600))
    gateway = open_gateway(strategy="auto", embedder=embedder)
    gateway.add_server("shelf", server=shelf.server)
    await gateway.report()
    before = embedder.texts

    def water_plants() -> str:
        """Water the plants of the garden."""
        return ""

    gateway.add_tool(water_plants)
    report = await gateway.report()

    assert (601 + 1, 2) == (report.entities, report.embedded_texts)  # one more entity is the server
    assert before + 2 == embedder.texts
    assert 1 == shelf.listings
    assert "water_plants" == names(await gateway.search("water the plants"))[0]


async def test_changed_description_of_a_tool_embeds_two_texts(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """They are the text of the tool and the text of its server."""
    embedder = HashingEmbedder()
    shelf = Shelf(catalog)
    gateway = open_gateway(strategy="auto", embedder=embedder)
    gateway.add_server("shelf", server=shelf.server)
    await gateway.report()
    shelf.tools[0] = ToolDefinition(
        name="send_email", description="Other words.", input_schema={"type": "object"}
    )

    report = await gateway.refresh()

    assert (12 + 1, 2) == (report.entities, report.embedded_texts)  # one more entity is the server

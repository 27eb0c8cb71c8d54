"""Suggestions of the next tool, by edges, vectors, words and servers."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.errors import InvalidRequestError, UnknownToolError
from gateway.gateway import Gateway
from gateway.index import VectorIndex
from gateway.search import following_clauses
from gateway.sync import SyncGateway
from gateway.testing import HashingEmbedder
from gateway.types import Filters
from graphs import Document, Edge, Link
from tests.conftest import OpenGateway
from tests.core.search.conftest import Catalog
from tests.fakes import Shelf, tool

STEP = Document(id="host:1", title="get_weather", next_steps=(Link(target="book_flight"),))


@pytest.mark.parametrize("strategy", ["graph", "auto"])
async def test_declared_next_step_is_suggested_first_with_its_edge(
    open_gateway: OpenGateway, catalog: Catalog, strategy: str
) -> None:
    """Without vectors it is the only suggestion, because no edge or word supports another tool."""
    gateway = open_gateway(catalog, strategy=strategy, embedder=HashingEmbedder(), graph=[STEP])
    await gateway.report()

    suggestions = await gateway.next_steps(["get_weather"])

    (step,) = suggestions[0].evidence.path
    assert ("book_flight", "nextStep", True) == (suggestions[0].name, step.predicate, step.declared)
    assert (strategy == "graph") == (1 == len(suggestions))
    assert "get_weather" not in [match.name for match in suggestions]


@pytest.mark.parametrize("strategy", ["graph", "auto"])
async def test_declared_next_step_comes_before_a_derived_one(
    open_gateway: OpenGateway, strategy: str
) -> None:
    """The derived next step is nearer to the task, but scores stay in descending order."""
    weak = Document(
        id="host:1",
        title="search_mail",
        edges=(Edge(subject="search_mail", predicate="nextStep", object="play_music", weight=0.1),),
    )
    gateway = open_gateway(strategy=strategy, embedder=HashingEmbedder(), graph=[weak])
    names = ("search_mail", "get_mail", "play_music")
    gateway.add_server("one", server=Shelf([tool(name) for name in names]).server)

    suggestions = await gateway.next_steps(["search_mail"], query="get one mail")

    assert ["play_music", "get_mail"] == [match.name for match in suggestions]
    assert suggestions[0].score > suggestions[1].score


async def test_next_steps_are_empty_without_vectors_edges_and_matching_words(
    open_gateway: OpenGateway,
) -> None:
    """An alphabetical list of tools would be useless."""
    gateway = open_gateway(strategy="graph")
    gateway.add_server("one", server=Shelf([tool("alpha"), tool("beta"), tool("zulu")]).server)

    assert () == await gateway.next_steps(["alpha"])
    assert ["zulu"] == [step.name for step in await gateway.next_steps(["alpha"], query="zulu")]


@pytest.mark.parametrize("strategy", ["graph", "auto"])
async def test_task_changes_the_suggested_next_steps(
    open_gateway: OpenGateway, catalog: Catalog, strategy: str
) -> None:
    gateway = open_gateway(catalog, strategy=strategy, embedder=HashingEmbedder())

    suggestions = await gateway.next_steps(
        ["get_weather"], query="translate a text into another language", limit=1
    )

    assert ["translate_text"] == [match.name for match in suggestions]


async def test_next_steps_use_words_of_the_task_if_the_embedder_fails(
    gateway: Gateway, embedder: HashingEmbedder
) -> None:
    await gateway.report()
    embedder.fail_with = OSError("down")

    suggestions = await gateway.next_steps(
        ["get_weather"], query="play a song on the speakers", limit=1
    )

    assert ["play_music"] == [match.name for match in suggestions]


async def test_next_steps_prefer_tools_of_the_same_server(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_server("one", server=Shelf([tool("alpha"), tool("zulu_mail")]).server)
    gateway.add_server("two", server=Shelf([tool("beta_mail"), tool("gamma")]).server)

    suggestions = await gateway.next_steps(["one/alpha"], query="mail", limit=3)

    assert ["zulu_mail", "beta_mail"] == [match.name for match in suggestions]


async def test_filters_apply_to_next_steps(open_gateway: OpenGateway, catalog: Catalog) -> None:
    gateway = open_gateway(catalog, graph=[STEP])
    gateway.add_server("few", server=Shelf([tool("beta")]).server)
    filters = Filters(servers=frozenset({"few"}))

    suggestions = await gateway.next_steps(["beta"], filters=filters)

    assert () == suggestions
    assert () == await gateway.next_steps([])
    with pytest.raises(InvalidRequestError, match="limit must be at least 1"):
        await gateway.next_steps(["beta"], limit=0)


def test_next_steps_reject_an_unknown_tool(open_gateway: OpenGateway, catalog: Catalog) -> None:
    """The blocking client raises the same error as the async one."""
    gateway = SyncGateway(open_gateway(catalog))

    assert "send_email" in [match.name for match in gateway.next_steps(["read_email"], limit=12)]
    with pytest.raises(UnknownToolError):
        gateway.next_steps(["read_emial"])


def test_following_clauses_begin_with_the_clause_that_the_tool_fulfilled() -> None:
    """They are that clause and the next two; a request with a single clause has none."""
    parts = np.eye(5, dtype=np.float32)
    index, zero_mean = VectorIndex.of(parts), np.zeros(5, np.float32)

    clauses = following_clauses(parts, index, zero_mean, used=1)
    centred = following_clauses(parts, index, parts.mean(axis=0), used=4)

    np.testing.assert_array_equal(clauses, parts[1:4])
    np.testing.assert_array_equal(centred, parts[4:])
    assert 0 == len(following_clauses(parts[:1], index, zero_mean, used=0))


async def test_next_steps_reject_a_string_instead_of_a_list_of_tools(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Otherwise each of its letters would be taken as a tool."""
    with pytest.raises(InvalidRequestError, match=r"^tools must be a list of ids or names; "):
        await open_gateway(catalog).next_steps("get_weather")

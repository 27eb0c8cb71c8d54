"""Entities whose exact name is in the query come first."""

from __future__ import annotations

import pytest

from gateway.search import find_named
from gateway.testing import HashingEmbedder
from gateway.types import Filters, ToolDefinition
from tests.conftest import OpenGateway
from tests.core.search.conftest import snapshot_of
from tests.fakes import entity, names, tool

SPELLINGS = (
    "get_item_0500",
    "GET item 0500",
    "please call get_item_0500 now",
    "shelf/get_item_0500",
)


@pytest.mark.parametrize("strategy", ["graph", "embeddings", "auto"])
async def test_tool_with_the_exact_name_is_first_among_a_thousand_similar_names(
    open_gateway: OpenGateway, strategy: str
) -> None:
    tools = [tool(f"get_item_{number:04}", "Get one item by its number.") for number in range(1000)]
    gateway = open_gateway(tools, strategy=strategy, embedder=HashingEmbedder())

    for query in SPELLINGS:
        result = await gateway.search(query)

        first = result.matches[0]
        scores = [match.score for match in result.matches]
        assert ("get_item_0500", 1.0, True) == (
            first.name,
            first.confidence,
            first.evidence.exact_name,
        )
        assert 1 == sum(match.evidence.exact_name for match in result.matches)
        assert sorted(scores, reverse=True) == scores


async def test_common_word_in_a_sentence_is_not_taken_as_a_tool_name(
    open_gateway: OpenGateway,
) -> None:
    """The catalog has a tool `run`, but the query "run the weather report" does not mean it."""
    tools = [tool("run", "Run a program."), tool("get_weather", "Write the weather report.")]

    result = await open_gateway(tools, strategy="auto", embedder=HashingEmbedder()).search(
        "run the weather report"
    )

    assert "get_weather" == names(result)[0]
    assert not any(match.evidence.exact_name for match in result.matches)


def test_find_named_returns_tools_in_the_order_of_their_names_in_the_query() -> None:
    """The separator between words of a name does not matter. Ineligible tools are left out."""
    snapshot = snapshot_of(
        [entity(ToolDefinition(name=name)) for name in ("pay_invoice", "getUser", "send")]
    )
    mask = snapshot.mask(Filters())
    query = "use getUser, then 'pay_invoice'. And send"

    assert ["getUser", "pay_invoice"] == [
        snapshot.entities[position].name for position in find_named(snapshot, query, mask)
    ]
    assert ["send"] == [
        snapshot.entities[position].name for position in find_named(snapshot, "Send", mask)
    ]
    assert [] == find_named(snapshot, query, ~mask)

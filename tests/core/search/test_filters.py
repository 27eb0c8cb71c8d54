"""Filters: ineligible entities are in no list of a result, and eligible ones fill the limit."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.errors import InvalidRequestError
from gateway.testing import HashingEmbedder
from gateway.types import Filters, Hints, ToolDefinition
from tests.conftest import CatalogOf, OpenGateway
from tests.fakes import Shelf, eligibility_of, names, tool


def test_empty_catalog_has_an_empty_mask() -> None:
    assert np.array_equal(np.zeros(0, bool), eligibility_of([]).mask(Filters()))


async def test_filters_apply_to_search_and_list_tools(open_gateway: OpenGateway) -> None:
    """The tested filters are server, tag (case does not matter) and disabled."""
    gateway = open_gateway(strategy="auto", embedder=HashingEmbedder())
    tools = [tool(f"report_{name}", "Write a report.") for name in "abc"]
    hints = {"report_a": Hints(tags=("Daily",)), "report_b": Hints(enabled=False)}
    gateway.add_server("one", server=Shelf(tools).server, hints=hints)
    gateway.add_server("two", server=Shelf([tool("report_d", "Write a report.")]).server)

    unfiltered = await gateway.search("report")
    by_tag = await gateway.search("report", filters=Filters(tags=frozenset({"dAILY"})))
    by_server = await gateway.search("report", filters=Filters(servers=frozenset({"two"})))
    listed = await gateway.list_tools(Filters(include_disabled=True))

    assert {"report_a", "report_c", "report_d"} == set(names(unfiltered))
    assert (["report_a"], ["report_d"]) == (names(by_tag), names(by_server))
    assert ["report_a", "report_b", "report_c", "report_d"] == [e.name for e in listed]
    assert 3 == len(await gateway.list_tools())


@pytest.mark.parametrize("strategy", ["embeddings", "auto"])
async def test_search_fills_its_limit_if_few_tools_are_eligible(
    open_gateway: OpenGateway, catalog_of: CatalogOf, strategy: str
) -> None:
    """The ranking must be filtered before it is cut to the limit."""
    gateway = open_gateway(catalog_of(400), strategy=strategy, embedder=HashingEmbedder())
    gateway.add_server(
        "few",
        server=Shelf(
            ToolDefinition(name=f"zebra_{n}", input_schema={"type": "object"}) for n in range(10)
        ).server,
    )

    result = await gateway.search(
        "list one invoice of the account", limit=10, filters=Filters(servers=frozenset({"few"}))
    )

    assert 10 == len(result.matches)
    assert {"few"} == {match.server for match in result.matches}


@pytest.mark.parametrize("given", [{"kind": "tool"}, "tool", frozenset({"tool"})])
async def test_filters_of_the_wrong_type_are_rejected(
    open_gateway: OpenGateway, given: Filters
) -> None:
    gateway = open_gateway([tool("find")])
    message = f"^filters must be a Filters\\(…\\), got {type(given).__name__}$"

    for ask in (
        lambda: gateway.search("find", filters=given),
        lambda: gateway.next_steps(["find"], filters=given),
        lambda: gateway.list_tools(given),
        lambda: gateway.catalog.list(given),
        lambda: gateway.catalog.tags(given),
        lambda: gateway.catalog.get("shelf/find", given),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            await ask()

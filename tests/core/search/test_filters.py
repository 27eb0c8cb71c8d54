"""Eligibility first: who is filtered out is in no list, and a page is full if it can be."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.errors import InvalidRequestError
from gateway.testing import HashingEmbedder
from gateway.types import Filters, Hints, ToolDefinition
from tests.conftest import CatalogOf, OpenGateway
from tests.fakes import Shelf, eligibility_of, names, tool


def test_an_empty_catalog_has_an_empty_mask() -> None:
    """No special case."""
    assert np.array_equal(np.zeros(0, bool), eligibility_of([]).mask(Filters()))


async def test_filters_hold_through_the_public_api(open_gateway: OpenGateway) -> None:
    """By server, by tag without case, and what is disabled is not even listed."""
    gateway = open_gateway(strategy="auto", embedder=HashingEmbedder())
    tools = [tool(f"report_{name}", "Write a report.") for name in "abc"]
    hints = {"report_a": Hints(tags=("Daily",)), "report_b": Hints(enabled=False)}
    gateway.add_server("one", server=Shelf(tools).server, hints=hints)
    gateway.add_server("two", server=Shelf([tool("report_d", "Write a report.")]).server)

    plain = await gateway.search("report")
    tagged = await gateway.search("report", filters=Filters(tags=frozenset({"dAILY"})))
    served = await gateway.search("report", filters=Filters(servers=frozenset({"two"})))
    listed = await gateway.list_tools(Filters(include_disabled=True))

    assert {"report_a", "report_c", "report_d"} == set(names(plain))
    assert (["report_a"], ["report_d"]) == (names(tagged), names(served))
    assert ["report_a", "report_b", "report_c", "report_d"] == [e.name for e in listed]
    assert 3 == len(await gateway.list_tools())


@pytest.mark.parametrize("strategy", ["embeddings", "auto"])
async def test_a_page_is_full_when_enough_are_eligible(
    open_gateway: OpenGateway, catalog_of: CatalogOf, strategy: str
) -> None:
    """Filters never run after truncation: the few eligible ones of many are all found."""
    gateway = open_gateway(catalog_of(400), strategy=strategy, embedder=HashingEmbedder())
    gateway.add_server(
        "few",
        server=Shelf(
            ToolDefinition(name=f"zebra_{n}", input_schema={"type": "object"}) for n in range(10)
        ).server,
    )

    found = await gateway.search(
        "list one invoice of the account", limit=10, filters=Filters(servers=frozenset({"few"}))
    )

    assert 10 == len(found.matches)
    assert {"few"} == {match.server for match in found.matches}


@pytest.mark.parametrize("given", [{"kind": "tool"}, "tool", frozenset({"tool"})])
async def test_what_is_no_filters_is_refused_wherever_it_is_given(
    open_gateway: OpenGateway, given: Filters
) -> None:
    """Before anything is asked or ranked."""
    gateway = open_gateway([tool("find")])
    told = f"^filters must be a Filters\\(…\\), got {type(given).__name__}$"

    for ask in (
        lambda: gateway.search("find", filters=given),
        lambda: gateway.next_steps(["find"], filters=given),
        lambda: gateway.list_tools(given),
        lambda: gateway.catalog.list(given),
        lambda: gateway.catalog.tags(given),
        lambda: gateway.catalog.get("shelf/find", given),
    ):
        with pytest.raises(InvalidRequestError, match=told):
            await ask()

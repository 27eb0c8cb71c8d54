"""Confidence of searches in catalogs of thirty tools, with and without the packaged model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from benchmarks import data
from benchmarks.confidence import read_unserved
from benchmarks.ranking import Way, opened
from gateway.gateway import Gateway

OpenSmall = Callable[[Way, str], Awaitable[Gateway]]

SMALL = Path(data.__file__).with_name("small")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def open_small_catalog() -> AsyncIterator[OpenSmall]:
    """Open each small catalog once for all tests."""
    gateways: dict[tuple[Way, str], Gateway] = {}
    async with AsyncExitStack() as stack:

        async def open_once(strategy: Way, catalog: str) -> Gateway:
            if (strategy, catalog) not in gateways:
                opening = opened(data.read(SMALL / catalog), strategy=strategy)
                gateways[strategy, catalog] = await stack.enter_async_context(opening)
            return gateways[strategy, catalog]

        yield open_once


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("strategy", "catalog", "share"),
    [
        ("auto", "office", 0.8),
        ("auto", "services", 0.8),
        ("auto", "mixed", 0.8),
        ("graph", "office", 0.8),
        ("graph", "services", 0.8),
        # Without a model, "about" has the same weight as "invoice" if only one tool contains
        # "about".
        ("graph", "mixed", 0.65),
    ],
)
async def test_search_reports_low_confidence_for_most_requests_that_no_tool_serves(
    open_small_catalog: OpenSmall, strategy: Way, catalog: str, share: float
) -> None:
    """None of the thirty tools serves any of the 40 requests."""
    unserved = [str(row["query"]) for row in read_unserved(SMALL / "unserved.txt")]
    gateway = await open_small_catalog(strategy, catalog)
    results = [await gateway.search(text) for text in unserved]
    flagged = [
        {"low_confidence_results", "no_match"} & {note.code for note in result.diagnostics}
        for result in results
    ]

    assert sum(map(bool, flagged)) >= share * len(unserved)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("catalog", ["office", "services", "mixed"])
async def test_search_rarely_reports_low_confidence_for_requests_that_a_tool_serves(
    open_small_catalog: OpenSmall, catalog: str
) -> None:
    """It does so for at most one of 24 requests in four languages."""
    gateway = await open_small_catalog("auto", catalog)
    queries = data.read(SMALL / catalog).queries
    results = [await gateway.search(str(row["query"])) for row in queries]

    notes = [note.code for result in results for note in result.diagnostics]
    assert notes.count("low_confidence_results") <= 1

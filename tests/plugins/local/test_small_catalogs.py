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
async def open_small() -> AsyncIterator[OpenSmall]:
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
        # Without a model, "about" has the same weight as "invoice" if only one tool contains it.
        ("graph", "mixed", 0.65),
    ],
)
async def test_unserved_requests_are_mostly_flagged_in_small_catalogs(
    open_small: OpenSmall, strategy: Way, catalog: str, share: float
) -> None:
    """None of the thirty tools serves any of the 40 requests."""
    unserved = [str(row["query"]) for row in read_unserved(SMALL / "unserved.txt")]
    gateway = await open_small(strategy, catalog)
    results = [await gateway.search(text) for text in unserved]
    flagged = [
        {"low_confidence_results", "no_match"} & {note.code for note in result.diagnostics}
        for result in results
    ]

    assert sum(map(bool, flagged)) >= share * len(unserved)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("catalog", ["office", "services", "mixed"])
async def test_served_requests_are_rarely_flagged_in_small_catalogs(
    open_small: OpenSmall, catalog: str
) -> None:
    """At most one of 24 requests in four languages is flagged."""
    gateway = await open_small("auto", catalog)
    queries = data.read(SMALL / catalog).queries
    results = [await gateway.search(str(row["query"])) for row in queries]

    notes = [note.code for result in results for note in result.diagnostics]
    assert notes.count("low_confidence_results") <= 1

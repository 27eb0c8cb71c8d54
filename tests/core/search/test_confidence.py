"""How likely a match is: a calibrated number, comparable between queries and modes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from string import ascii_letters

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import data
from benchmarks.confidence import read_unserved
from benchmarks.ranking import Way, opened
from gateway.embed.cache import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.options import Options, SearchOptions
from gateway.search.confidence import LOCAL_MODEL, Features, closeness, estimate
from gateway.testing import HashingEmbedder
from tests.conftest import OpenGateway
from tests.fakes import Gated, ListSource, codes, tool

OpenSmall = Callable[[Way, str], Awaitable[Gateway]]

SMALL = Path(data.__file__).with_name("small")
shares = st.floats(0, 1)
similarities = st.none() | st.floats(-9, 9)
features = st.builds(
    Features,
    similarity=similarities,
    coverage=shares,
    strength=st.floats(0, 50),
    count=st.integers(1, 100_000),
)


@given(features, shares, shares)
def test_more_of_the_words_is_never_less_confidence(
    match: Features, one: float, other: float
) -> None:
    """With and without vectors; it is a share."""
    low, high = (estimate(replace(match, coverage=share)) for share in sorted((one, other)))

    assert 0 <= low <= high <= 1


@given(features, shares)
def test_the_graph_raises_confidence_and_never_lowers_it(match: Features, agreement: float) -> None:
    """Rule 4: its agreement takes a share of the remaining doubt away."""
    assert estimate(match) <= estimate(match, graph=agreement) <= 1


def test_an_exact_name_is_certain() -> None:
    """Whatever else speaks against it."""
    assert 1 == estimate(Features(similarity=-5.0), exact_name=True)


@pytest.mark.parametrize("model", ["", LOCAL_MODEL])
@pytest.mark.parametrize("size", [1, 30, 100_000])
def test_without_a_known_word_what_stands_apart_from_nothing_is_unlikely(
    model: str, size: int
) -> None:
    """The nearest of a catalog that is far away as a whole, or near as a whole, is no match."""
    alike = closeness(0.15, mean=0.15, spread=0.0, count=size, model=model)
    match = Features(similarity=alike, count=size)

    assert estimate(match, model=model) < 0.5


@pytest.mark.parametrize("model", ["", LOCAL_MODEL])
def test_the_best_of_many_is_near_by_chance(model: str) -> None:
    """Equally near: of few entities it is likelier what was asked for."""
    few, many = (
        estimate(Features(similarity=0.3, count=count), model=model) for count in (100, 10_000)
    )

    assert many < few


@pytest.mark.parametrize("coverage", [0.0, 0.5])
def test_a_nearer_match_is_likelier(coverage: float) -> None:
    """At equal words."""
    near, far = (Features(similarity=each, coverage=coverage) for each in (2.0, 0.0))

    assert estimate(near) > estimate(far)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def open_small() -> AsyncIterator[OpenSmall]:
    """Open each small catalog once for all tests that only ask."""
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
        # Without a model "about" says as much as "invoice", where one tool alone holds it.
        ("graph", "mixed", 0.65),
    ],
)
async def test_a_small_catalog_knows_what_it_does_not_serve(
    open_small: OpenSmall, strategy: Way, catalog: str, share: float
) -> None:
    """Of 40 requests that none of thirty tools serves, most are flagged or have no match."""
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
async def test_a_small_catalog_knows_what_it_serves(open_small: OpenSmall, catalog: str) -> None:
    """Of 24 requests, in four languages, at most one is flagged."""
    gateway = await open_small("auto", catalog)
    queries = data.read(SMALL / catalog).queries
    results = [await gateway.search(str(row["query"])) for row in queries]

    notes = [note.code for result in results for note in result.diagnostics]
    assert notes.count("low_confidence_results") <= 1


async def test_of_few_vectors_the_nearest_is_no_match(open_gateway: OpenGateway) -> None:
    """While most tools are still to be embedded, what holds no word of the request is not found."""
    store, first = MemoryVectorStore(), [tool("plant", "Water the flowers."), tool("mow", "Lawn.")]
    options = Options(search=SearchOptions(first_search="words"))
    embedded = open_gateway(
        first, strategy="auto", embedder=HashingEmbedder(), options=options, vector_store=store
    )
    await embedded.report()
    gateway = open_gateway(
        first, strategy="auto", embedder=Gated(), options=options, vector_store=store
    )
    rest = [tool(f"list_{number}", f"Orders of shop {number}.") for number in range(80)]
    gateway.add_source(ListSource("rest", rest))

    found = await gateway.search("asdf qwerty")

    assert "index_building" in codes(found)
    assert () == found.matches


async def test_a_bare_number_is_near_to_nothing(open_gateway: OpenGateway) -> None:
    """Whatever its vector says: digits are no words."""
    tools = [
        tool("page", "12345"),
        *(tool(f"list_{name}", f"Orders {name}.") for name in ascii_letters[:40]),
    ]
    gateway = open_gateway(tools, strategy="auto", embedder=HashingEmbedder())

    assert "low_confidence_results" in codes(await gateway.search("12345"))

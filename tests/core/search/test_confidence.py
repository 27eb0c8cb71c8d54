"""Confidence of matches: calibrated, and comparable between queries and modes."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_letters

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.embed import MemoryVectorStore
from gateway.options import Options, SearchOptions
from gateway.search import LOCAL_MODEL, Features, closeness, estimate
from gateway.testing import HashingEmbedder
from tests.conftest import OpenGateway
from tests.fakes import Gated, ListSource, codes, tool

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
def test_confidence_does_not_fall_if_more_words_of_the_query_match(
    match: Features, one: float, other: float
) -> None:
    low, high = (estimate(replace(match, coverage=share)) for share in sorted((one, other)))

    assert 0 <= low <= high <= 1


@given(features, shares)
def test_words_in_the_graph_node_never_lower_confidence(match: Features, agreement: float) -> None:
    """Rule 4: they add a share of the missing confidence."""
    assert estimate(match) <= estimate(match, graph=agreement) <= 1


def test_match_with_its_exact_name_in_the_query_has_confidence_one() -> None:
    assert 1 == estimate(Features(similarity=-5.0), exact_name=True)


@pytest.mark.parametrize("model", ["", LOCAL_MODEL])
@pytest.mark.parametrize("size", [1, 30, 100_000])
def test_match_without_words_of_the_query_or_distinct_similarity_is_unlikely(
    model: str, size: int
) -> None:
    """All entities are equally near to the query, so the nearest one is not a match."""
    alike = closeness(0.15, mean=0.15, spread=0.0, count=size, model=model)
    match = Features(similarity=alike, count=size)

    assert estimate(match, model=model) < 0.5


@pytest.mark.parametrize("model", ["", LOCAL_MODEL])
def test_same_similarity_means_less_confidence_in_a_larger_catalog(model: str) -> None:
    """The best of many entities may be near by chance."""
    in_small_catalog, in_large_catalog = (
        estimate(Features(similarity=0.3, count=count), model=model) for count in (100, 10_000)
    )

    assert in_large_catalog < in_small_catalog


@pytest.mark.parametrize("coverage", [0.0, 0.5])
def test_confidence_rises_with_similarity(coverage: float) -> None:
    near, far = (Features(similarity=similarity, coverage=coverage) for similarity in (2.0, 0.0))

    assert estimate(near) > estimate(far)


async def test_nearest_tool_is_not_a_match_if_few_tools_have_vectors(
    open_gateway: OpenGateway,
) -> None:
    """The nearest one contains no word of the request, so it must not be found."""
    store, first = MemoryVectorStore(), [tool("plant", "Water the flowers."), tool("mow", "Lawn.")]
    options = Options(search=SearchOptions(first_search="words"))
    embedded = open_gateway(
        first, strategy="auto", embedder=HashingEmbedder(), options=options, vector_store=store
    )
    await embedded.report()
    gateway = open_gateway(
        first, strategy="auto", embedder=Gated(), options=options, vector_store=store
    )
    others = [tool(f"list_{number}", f"Orders of shop {number}.") for number in range(80)]
    gateway.add_source(ListSource("rest", others))

    result = await gateway.search("asdf qwerty")

    assert "index_building" in codes(result)
    assert () == result.matches


async def test_query_of_digits_has_low_confidence(open_gateway: OpenGateway) -> None:
    """Digits do not count as words, even if their vector is near to a tool."""
    tools = [
        tool("page", "12345"),
        *(tool(f"list_{name}", f"Orders {name}.") for name in ascii_letters[:40]),
    ]
    gateway = open_gateway(tools, strategy="auto", embedder=HashingEmbedder())

    assert "low_confidence_results" in codes(await gateway.search("12345"))

"""How likely a match is: a calibrated number, comparable between queries and modes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.embed.local.embedder import LocalEmbedder
from gateway.search.confidence import COEFFICIENTS, LOCAL_MODEL, estimate, margin

shares = st.floats(0, 1)
margins = st.none() | st.floats(-9, 9)


@given(margins, shares, shares)
def test_more_of_the_words_is_never_less_confidence(
    similarity: float | None, one: float, other: float
) -> None:
    """With and without vectors; it is a share."""
    low, high = (estimate(similarity, share) for share in sorted((one, other)))

    assert 0 <= low <= high <= 1


@given(margins, shares, shares)
def test_the_graph_raises_confidence_and_never_lowers_it(
    similarity: float | None, coverage: float, agreement: float
) -> None:
    """Rule 4: its agreement takes a share of the remaining doubt away."""
    without = estimate(similarity, coverage)

    assert without <= estimate(similarity, coverage, graph=agreement) <= 1


def test_an_exact_name_is_certain() -> None:
    """Whatever else speaks against it."""
    assert 1 == estimate(-5.0, 0.0, exact_name=True)


def test_the_best_of_many_is_near_by_chance() -> None:
    """The margin falls with the size of the catalog, and a few entities say little."""
    few, some, many = (
        margin(0.5, mean=0.2, spread=0.1, count=count) for count in (3, 100, 100_000)
    )

    assert many < some
    assert few < some
    assert 0 > margin(0.5, mean=0.5, spread=0.0, count=9)


@pytest.mark.parametrize("coverage", [0.0, 0.5])
def test_a_nearer_match_is_likelier(coverage: float) -> None:
    """At equal words."""
    assert estimate(2.0, coverage) > estimate(0.0, coverage)


def test_the_local_model_has_a_row_of_its_own() -> None:
    """A new version of it must be fitted anew."""
    assert LOCAL_MODEL == LocalEmbedder().info.model_id
    assert LOCAL_MODEL in COEFFICIENTS

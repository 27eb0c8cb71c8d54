"""How likely a match is: a calibrated number, comparable between queries and modes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.embed.local.embedder import LocalEmbedder
from gateway.search.confidence import COEFFICIENTS, LOCAL_MODEL, Features, estimate, margin

shares = st.floats(0, 1)
margins = st.none() | st.floats(-9, 9)


@given(margins, shares, st.none() | shares)
def test_confidence_is_a_share(
    similarity: float | None, coverage: float, graph: float | None
) -> None:
    """Whatever is known."""
    features = Features(similarity=similarity, coverage=coverage, graph=graph)

    assert 0 <= estimate(features) <= 1


@given(margins, shares, shares)
def test_more_of_the_words_is_never_less_confidence(
    similarity: float | None, one: float, other: float
) -> None:
    """With and without vectors."""
    low, high = (Features(similarity=similarity, coverage=share) for share in sorted((one, other)))

    assert estimate(low) <= estimate(high)


@given(margins, shares, shares)
def test_the_graph_raises_confidence_and_never_lowers_it(
    similarity: float | None, coverage: float, agreement: float
) -> None:
    """Rule 4: its agreement takes a share of the remaining doubt away."""
    without = Features(similarity=similarity, coverage=coverage)
    with_graph = Features(similarity=similarity, coverage=coverage, graph=agreement)

    assert estimate(without) <= estimate(with_graph) <= 1


def test_an_exact_name_is_certain() -> None:
    """Whatever else speaks against it."""
    assert 1 == estimate(Features(similarity=-5.0, coverage=0.0, exact_name=True))


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
    near, far = (
        estimate(Features(similarity=similarity, coverage=coverage)) for similarity in (2.0, 0.0)
    )

    assert near > far


def test_the_local_model_has_a_row_of_its_own() -> None:
    """A new version of it must be fitted anew."""
    assert LOCAL_MODEL == LocalEmbedder().info.model_id
    assert LOCAL_MODEL in COEFFICIENTS

"""The product's formula over whole arrays."""

from __future__ import annotations

import numpy as np

from benchmarks.generalization.evidence import Evidence
from benchmarks.generalization.scoring import Weights, deviations, fused, judge, rankings


def test_the_formula_with_its_own_weights_ranks_as_the_product(sets: list[Evidence]) -> None:
    """Scores agree to rounding; the same tools are ranked."""
    for evidence in sets:
        scores = fused(evidence)

        assert np.array_equal(np.isfinite(evidence.product), np.isfinite(scores))
        ranked = np.isfinite(scores)
        assert np.allclose(evidence.product[ranked], scores[ranked], atol=1e-4)
        assert judge(evidence, evidence.product) == judge(evidence, scores)


def test_other_weights_rank_otherwise(sets: list[Evidence]) -> None:
    """Clauses count for long requests alone."""
    large = sets[0]
    usual, without = fused(large), fused(large, weights=Weights(clause_words=0, clause_cosine=0))

    assert np.array_equal(usual[:20], without[:20])
    assert not np.array_equal(usual[20], without[20])
    assert not np.array_equal(usual, fused(large, weights=Weights(words=1)))


def test_exact_names_come_first_and_what_is_not_ranked_is_left_out(sets: list[Evidence]) -> None:
    """Ties fall by position."""
    large = sets[0]
    scores = np.full_like(large.product, -np.inf)
    scores[:, [4, 2]] = 1.0

    found = list(rankings(large, scores))

    assert [large.tool_ids[2], large.tool_ids[4]] == found[0]
    assert ["list-invoice", large.tool_ids[2], large.tool_ids[4]] == found[18]


def test_deviations_are_measured_from_the_mean_of_each_row() -> None:
    """A row without a spread says nothing."""
    rows = np.array([[1.0, 3.0], [5.0, 5.0]], dtype=np.float32)

    assert [[-1.0, 1.0], [0.0, 0.0]] == deviations(rows).tolist()

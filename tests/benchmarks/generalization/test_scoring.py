"""The product's score computed over whole arrays."""

from __future__ import annotations

import numpy as np

from benchmarks.generalization.evidence import Evidence
from benchmarks.generalization.scoring import Weights, deviations, fused, judge, rankings


def test_formula_with_the_weights_of_the_product_ranks_like_the_product(
    sets: list[Evidence],
) -> None:
    """Scores are equal except for rounding."""
    for evidence in sets:
        scores = fused(evidence)

        assert np.array_equal(np.isfinite(evidence.product), np.isfinite(scores))
        ranked = np.isfinite(scores)
        assert np.allclose(evidence.product[ranked], scores[ranked], atol=1e-4)
        assert judge(evidence, evidence.product) == judge(evidence, scores)


def test_formula_with_other_weights_changes_the_ranking(sets: list[Evidence]) -> None:
    """The weight of clauses has an effect on long requests only."""
    large = sets[0]
    usual, without = fused(large), fused(large, weights=Weights(clause_words=0, clause_cosine=0))

    assert np.array_equal(usual[:20], without[:20])
    assert not np.array_equal(usual[20], without[20])
    assert not np.array_equal(usual, fused(large, weights=Weights(words=1)))


def test_exact_names_come_first_and_unranked_tools_are_omitted(sets: list[Evidence]) -> None:
    """Ties are ordered by position."""
    large = sets[0]
    scores = np.full_like(large.product, -np.inf)
    scores[:, [4, 2]] = 1.0

    result = list(rankings(large, scores))

    assert [large.tool_ids[2], large.tool_ids[4]] == result[0]
    assert ["list-invoice", large.tool_ids[2], large.tool_ids[4]] == result[18]


def test_deviations_of_scores_are_measured_from_the_mean_of_each_query() -> None:
    """A query with equal scores has no deviations."""
    rows = np.array([[1.0, 3.0], [5.0, 5.0]], dtype=np.float32)

    assert [[-1.0, 1.0], [0.0, 0.0]] == deviations(rows).tolist()

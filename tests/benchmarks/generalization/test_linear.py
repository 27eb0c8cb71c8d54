"""The linear model over features of the pool."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.generalization.evidence import POOL, Evidence
from benchmarks.generalization.linear import (
    feature_names,
    features_of,
    fit_linear,
    linear,
    linear_candidates,
)
from benchmarks.generalization.scoring import judge, rankings


def test_features_are_those_of_the_pool(sets: list[Evidence]) -> None:
    """A relevant tool is a target; targets and weights sum to 1."""
    large = sets[0]
    features = features_of(large)

    assert (21, POOL, len(feature_names(large))) == features.values.shape
    scores = np.take_along_axis(large.product, features.positions, axis=1)
    assert np.array_equal(scores, features.values[..., 0])
    assert {1.0} == set(features.targets.sum(axis=1).tolist())
    assert [0.5, 0.5] == features.targets[20][features.targets[20] > 0].tolist()
    assert np.isclose(1.0, features.weights.sum())


def test_the_products_score_alone_ranks_as_the_product(sets: list[Evidence]) -> None:
    """The other features may change that."""
    large = sets[0]
    alone = np.zeros(len(feature_names(large)))
    alone[0] = 1.0

    assert list(rankings(large, large.product)) == list(rankings(large, linear(large, alone)))
    assert list(rankings(large, large.product)) != list(rankings(large, linear(large, -alone)))


def test_a_score_that_says_nothing_is_replaced_by_what_says_more(sets: list[Evidence]) -> None:
    """Learned on two sets, it helps the third."""
    rng = np.random.default_rng(3)
    blind = [
        replace(
            each,
            product=np.asarray(rng.standard_normal(each.product.shape), dtype=np.float32),
            exact_names=((),) * len(each.gold),
        )
        for each in sets
    ]

    found = fit_linear(blind[:2], 0.01)

    named = dict(zip(feature_names(blind[2]), np.abs(found), strict=True))
    assert named["product"] < max(named["words"], named["cosine"])
    assert (
        judge(blind[2], linear(blind[2], found)).recall > judge(blind[2], blind[2].product).recall
    )


def test_coefficients_are_reported_by_feature(sets: list[Evidence]) -> None:
    """In units of the product's own."""
    model = next(iter(linear_candidates(sets[0])))
    described = model.describe(model.fit(sets))

    assert isinstance(described, dict)
    assert feature_names(sets[0]) == list(described)
    assert 1.0 == described["product"]

"""How likely a match is what was asked for, 0 to 1, comparable between queries and modes. Pure.

* One formula for every mode: what vectors say, in deviations from unrelated texts, and the share of
  the query's words that were met. Without vectors the first term is simply absent.
* The weights are a logistic regression on requests that a catalog serves against requests that
  only another catalog serves (public sets; fitted on the half of the requests whose id hashes
  even, looked at on the other half), so another model needs no other weights.
* The graph's agreement moves the number, never the rank.
"""

from __future__ import annotations

import math

BIAS = -3.7
DEVIATION_WEIGHT = 0.69
COVERAGE_WEIGHT = 11.2
GRAPH_SHARE = 0.15
"""How much of the remaining doubt the graph's full agreement takes away."""
_FEW = 8
"""Of so few entities the spread says little: deviations from it count half."""


def judge(*, deviations: float, coverage: float) -> float:
    """Judge a match.

    Args:
        deviations: How far its cosine lies above that of unrelated texts, in their standard
            deviations; 0 if no vector speaks.
        coverage: Share of the query's words that it holds, by rarity, 0 to 1.
    """
    return _logistic(BIAS + DEVIATION_WEIGHT * deviations + COVERAGE_WEIGHT * coverage)


def deviations(
    cosine: float,
    *,
    background: tuple[float, float] | None,
    mean: float,
    spread: float,
    count: int,
) -> float:
    """Measure a cosine against unrelated texts.

    Args:
        cosine: The match's best cosine.
        background: Mean and standard deviation between unrelated texts, where the model's are
            known; else the catalog itself stands for them.
        mean: Mean cosine of the eligible catalog.
        spread: Standard deviation of the same.
        count: How many entities that is.
    """
    if background is not None:
        mean, spread = background
        return (cosine - mean) / spread
    if spread <= 0:
        return 0.0
    return (cosine - mean) / spread * count / (count + _FEW)


def with_graph(confidence: float, agreement: float | None) -> float:
    """Raise *confidence* by how much of the query the entity's graph node holds, 0 to 1."""
    if agreement is None:
        return confidence
    return confidence + (1.0 - confidence) * GRAPH_SHARE * min(max(agreement, 0.0), 1.0)


def _logistic(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(min(value, 60.0), -60.0)))

"""What a ranking is worth where answers have grades. Pure; every figure is a share of 1.

An answer is a set of ids with a grade: any of them serves it, once. With one grade for all the
figures are those of `benchmarks.metrics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gateway.plugins.quality.metrics import DEPTH, Figures

FIGURES = ("ndcg_at_10", "mrr", "recall_at_10")
_DISCOUNTS = 1 / np.log2(np.arange(2, DEPTH + 2))
_TAILS = (0.025, 0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer to a request."""

    ids: frozenset[str]
    """Any of these will do."""
    grade: int
    """2 is what was asked for, 1 would do."""


def score(ranked: Sequence[str], gold: Sequence[Answer]) -> Figures:
    """Judge one ranking.

    NDCG with the gain 2^grade - 1 and the discount 1 / log2(place + 1), after Burges et al.,
    *Learning to rank using gradient descent* (2005).

    Args:
        ranked: Ids, best first.
        gold: At least one answer.
    """
    top = ranked[:DEPTH]
    waiting = sorted(gold, key=lambda answer: -answer.grade)
    ideal = _discounted([answer.grade for answer in waiting[:DEPTH]])
    grades: list[int] = []
    for each in top:
        met = next((answer for answer in waiting if each in answer.ids), None)
        grades.append(met.grade if met else 0)
        if met:
            waiting.remove(met)
    places = (
        place for place, each in enumerate(ranked, 1) if any(each in answer.ids for answer in gold)
    )
    return {
        "ndcg_at_10": _discounted(grades) / ideal,
        "mrr": next((1 / place for place in places), 0.0),
        "recall_at_10": (len(gold) - len(waiting)) / len(gold),
    }


def _discounted(grades: Sequence[int]) -> float:
    return float((np.exp2(grades) - 1) @ _DISCOUNTS[: len(grades)])


def interval(
    slices: Sequence[Sequence[float]], *, resamples: int = 2000, seed: int = 7
) -> tuple[float, float]:
    """Return the middle 95 % of the mean over *slices*, each resampled over its requests.

    Percentile bootstrap, see `benchmarks.bootstrap`.

    Args:
        slices: A figure of each request, by slice; none of them empty. One slice is a plain mean.
        resamples: How often as many requests are drawn from each, with replacement.
        seed: Another seed draws others.
    """
    drawn = np.random.default_rng(seed)
    means = np.zeros(resamples)
    for figures in slices:
        values = np.asarray(figures)
        means += values[drawn.integers(len(values), size=(resamples, len(values)))].mean(axis=1)
    low, high = np.quantile(means / len(slices), _TAILS)
    return float(low), float(high)

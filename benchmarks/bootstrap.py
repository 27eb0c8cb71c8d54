"""How sure a difference between two systems is, asked the same queries. Pure.

Percentile bootstrap over queries: Efron, *Bootstrap methods: another look at the jackknife* (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TAILS = (0.025, 0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Ours less theirs, as a mean over the queries."""

    mean: float
    low: float
    high: float
    """The middle 95 % of the resamples lie between *low* and *high*."""

    @property
    def verdict(self) -> str:
        """``wins`` or ``loses`` where 0 lies outside the interval, else ``ties``."""
        return "wins" if self.low > 0 else "loses" if self.high < 0 else "ties"


def paired(
    ours: Sequence[float], theirs: Sequence[float], *, resamples: int = 10_000, seed: int = 7
) -> Difference:
    """Compare two systems query by query.

    Args:
        ours: A figure of each query.
        theirs: The same figure of the same queries, in the same order.
        resamples: How often as many queries are drawn, with replacement.
        seed: Another seed draws others.

    Raises:
        ValueError: If there are no queries, or not equally many.
    """
    return paired_sets([ours], [theirs], resamples=resamples, seed=seed)


def paired_sets(
    ours: Sequence[Sequence[float]],
    theirs: Sequence[Sequence[float]],
    *,
    resamples: int = 10_000,
    seed: int = 7,
) -> Difference:
    """Compare two systems over several sets of queries, each of which has the same weight.

    Queries are drawn within their set.

    Args:
        ours: A figure of each query, by set.
        theirs: The same figure of the same queries, in the same order.
        resamples: How often as many queries are drawn, with replacement.
        seed: Another seed draws others.

    Raises:
        ValueError: If there are no sets or no queries, or not equally many.
    """
    if not ours or len(ours) != len(theirs):
        raise ValueError(f"cannot pair {len(ours)} sets with {len(theirs)}")
    rng = np.random.default_rng(seed)
    pairs = [
        _resampled(one, other, rng, resamples) for one, other in zip(ours, theirs, strict=True)
    ]
    means = np.mean([drawn for _, drawn in pairs], axis=0)
    low, high = np.quantile(means, _TAILS)
    mean = float(np.mean([mean for mean, _ in pairs]))
    return Difference(mean=mean, low=float(low), high=float(high))


def _resampled(
    ours: Sequence[float], theirs: Sequence[float], rng: np.random.Generator, resamples: int
) -> tuple[float, NDArray[np.float64]]:
    """Return the mean difference, and that of each resample, shape (resamples,)."""
    count = len(ours)
    if not count or count != len(theirs):
        raise ValueError(f"cannot pair {count} figures with {len(theirs)}")
    # Equal differences are drawn alike, so a draw is how often each value comes.
    values, counts = np.unique(np.subtract(ours, theirs), return_counts=True)
    drawn = rng.multinomial(count, counts / count, size=resamples)
    return float(values @ counts / count), drawn @ values / count

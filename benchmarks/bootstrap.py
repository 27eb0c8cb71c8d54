"""How sure a difference between two systems is, asked the same queries. Pure.

Percentile bootstrap over queries: Efron, *Bootstrap methods: another look at the jackknife* (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
    if not ours or len(ours) != len(theirs):
        raise ValueError(f"cannot pair {len(ours)} figures with {len(theirs)}")
    # Equal differences are drawn alike, so a draw is how often each value comes.
    values, counts = np.unique(np.subtract(ours, theirs), return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(ours), counts / len(ours), size=resamples)
    means = drawn @ values / len(ours)
    low, high = np.quantile(means, _TAILS)
    return Difference(mean=float(values @ counts / len(ours)), low=float(low), high=float(high))

"""Gain of a new ranking over an old one, averaged over calls, with a test of significance.

The test is a percentile bootstrap over tasks, because the calls of a task are not independent:
Efron, *Bootstrap methods: another look at the jackknife* (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MIN_TASKS = 20
"""Minimum number of tasks for a significant gain."""
_RESAMPLES = 2_000
_TAILS = (0.025, 0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Gain of a new ranking over an old one, measured on recorded calls."""

    tasks: int = 0
    calls: int = 0
    mean: float = 0.0
    """Mean over all calls of the new value minus the old one; positive if the new one is better."""
    low: float = 0.0
    high: float = 0.0
    """Upper bound of the 95 % bootstrap interval of the mean; `low` is its lower bound."""
    higher: int = 0
    """Number of calls that the new ranking improves."""
    lower: int = 0
    """Number of calls that the new ranking makes worse."""

    @property
    def measured(self) -> bool:
        """True if enough tasks show that the new ranking is significantly better."""
        return self.tasks >= MIN_TASKS and self.low > 0


def measure_gain(tasks: Sequence[Sequence[float]], *, seed: int = 7) -> Gain:
    """Compute the gain of a new ranking over an old one.

    *tasks* contains, for each call of each task, the new value minus the old one. Tasks without
    calls are skipped.
    """
    counted = [task for task in tasks if task]
    if not counted:
        return Gain()
    sums = np.asarray([sum(task) for task in counted])
    counts = np.asarray([len(task) for task in counted], dtype=float)
    samples = np.random.default_rng(seed).integers(0, len(counted), size=(_RESAMPLES, len(counted)))
    means = sums[samples].sum(axis=1) / counts[samples].sum(axis=1)
    low, high = np.quantile(means, _TAILS)
    every = [difference for task in counted for difference in task]
    return Gain(
        tasks=len(counted),
        calls=len(every),
        mean=float(sums.sum() / counts.sum()),
        low=float(low),
        high=float(high),
        higher=sum(difference > 0 for difference in every),
        lower=sum(difference < 0 for difference in every),
    )

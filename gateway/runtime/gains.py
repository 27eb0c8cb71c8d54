"""How much better one way is than another, and whether that is more than chance. Pure.

A percentile bootstrap over tasks, since the calls of a task are not independent: Efron, *Bootstrap
methods: another look at the jackknife* (1979). In an evaluation each request is a task of one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MIN_TASKS = 20
"""Fewer tasks than this show no gain."""
_RESAMPLES = 2_000
_TAILS = (0.025, 0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How much better the calls of some tasks would have gone the new way."""

    tasks: int = 0
    calls: int = 0
    mean: float = 0.0
    """The mean of the differences over all calls."""
    low: float = 0.0
    high: float = 0.0
    """The middle 95 % of the resamples lie between *low* and *high*."""
    higher: int = 0
    """How many calls would have gone better …"""
    lower: int = 0
    """… and how many worse."""

    @property
    def measured(self) -> bool:
        """Whether the new way is better, and not by chance."""
        return self.tasks >= MIN_TASKS and self.low > 0


def measure_gain(tasks: Sequence[Sequence[float]], *, seed: int = 7) -> Gain:
    """Summarize the differences of each call, by task.

    Args:
        tasks: For each task the differences of its calls, new less old; tasks without any are left
            out.
        seed: Of the resampling.
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

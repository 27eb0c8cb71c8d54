"""What a signal would have changed, and whether that is more than chance. Pure.

A percentile bootstrap over tasks, since the calls of a task are not independent: Efron, *Bootstrap
methods: another look at the jackknife* (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ENOUGH = 20
"""Fewer tasks than this show no gain."""
_RESAMPLES = 2_000
_TAILS = (0.025, 0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How much higher the tools that were really called would have stood."""

    tasks: int = 0
    calls: int = 0
    mean: float = 0.0
    """Of 1 / place with the signal less 1 / place without it, -1 to 1."""
    low: float = 0.0
    high: float = 0.0
    """The middle 95 % of the resamples lie between *low* and *high*."""
    higher: int = 0
    """How many calls would have stood higher …"""
    lower: int = 0
    """… and how many lower."""

    @property
    def measured(self) -> bool:
        """Whether the signal helps, and not by chance."""
        return self.tasks >= ENOUGH and self.low > 0


def gain(tasks: Sequence[Sequence[float]], *, seed: int = 7) -> Gain:
    """Judge the differences of each call, by task.

    Args:
        tasks: For each task the differences of its calls; tasks without any are left out.
        seed: Of the resampling.
    """
    told = [task for task in tasks if task]
    if not told:
        return Gain()
    sums = np.asarray([sum(task) for task in told])
    counts = np.asarray([len(task) for task in told], dtype=float)
    drawn = np.random.default_rng(seed).integers(0, len(told), size=(_RESAMPLES, len(told)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, _TAILS)
    every = [each for task in told for each in task]
    return Gain(
        tasks=len(told),
        calls=len(every),
        mean=float(sums.sum() / counts.sum()),
        low=float(low),
        high=float(high),
        higher=sum(each > 0 for each in every),
        lower=sum(each < 0 for each in every),
    )

"""How the rows of a large catalog scatter, told by a few axes: what mean and spread their cosines
with a query have, without a look at any row. Pure.

* The mean is that of all rows, exactly. The spread is that of a sample, along the axes along which
  it spreads most; what is left is taken to be the same in every direction.
* The sample decides alone, so that nothing tells in which order the rows came.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from gateway.runtime.vectors import Matrix, Vector

AXES = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scatter:
    """Mean and covariance of rows, the latter about."""

    mean: Vector
    """Shape (d,)."""
    axes: Matrix
    """At right angles, each as long as the rows' standard deviation along it, shape (a, d)."""
    rest: float
    """Variance along any other direction."""

    @classmethod
    def of(cls, sample: Matrix, mean: Vector) -> Self:
        """Measure *sample*, shape (s, d), s >= 1.

        Args:
            sample: Rows that stand for all.
            mean: Of all rows, shape (d,).
        """
        away = (sample - sample.mean(axis=0)).astype(np.float64)
        sizes, turned = np.linalg.eigh(away @ away.T / len(away))
        chief = turned[:, -AXES:].T @ away / math.sqrt(len(away))
        left = max(float(sizes[:-AXES].sum()), 0.0) / max(away.shape[1] - len(chief), 1)
        return cls(mean=mean, axes=chief.astype(np.float32), rest=left)

    def moments(self, query: Vector) -> tuple[float, float]:
        """Give the mean and the standard deviation of the rows' cosines with *query*, about."""
        along = np.vecdot(self.axes, query)
        return float(np.dot(self.mean, query)), math.sqrt(float(np.dot(along, along)) + self.rest)

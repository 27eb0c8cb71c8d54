"""Vectors of several encoders side by side: what of a cosine is left where one of them is silent.

A text in a language that one encoder does not read has nothing in that encoder's part. Its cosines
with texts that have are smaller by what they would have had there, however well they match.
"""

from __future__ import annotations

import math

import numpy as np

from gateway.errors import ConfigError
from gateway.values import dataclass
from gateway.vectors import Matrix, Vector

_LEAST = 0.05
"""Where encoders have hardly anything in common, cosines say nothing, and are made no more of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorParts:
    """Where each encoder's part of a row is.

    Raises:
        ConfigError: Unless *starts* ascend from 0, and there is a share for each, 1 together.
    """

    starts: tuple[int, ...]
    """Where they begin, ascending from 0."""
    usual: tuple[float, ...]
    """Their shares of the square of a row that all of them read; 1 together."""

    def __post_init__(self) -> None:
        """Check the numbers: every search relies on them."""
        starts, usual = self.starts, self.usual
        if not starts or starts[0] != 0 or list(starts) != sorted(set(starts)):
            raise ConfigError(f"starts must ascend from 0, got {starts!r}")
        if len(usual) != len(starts) or min(usual) < 0 or not math.isclose(sum(usual), 1.0):
            raise ConfigError(f"usual must hold {len(starts)} shares, 1 together, got {usual!r}")

    def common(self, row: Vector, others: Matrix | None = None) -> float:
        """Give the most that the cosine of *row* with *others* can be.

        Args:
            row: A unit vector, shape (d,).
            others: Unit rows, shape (n, d); None or no row stands for texts that all of them read.

        Returns:
            The mean over *others*, 0.05 to 1; 1 where the same encoders speak for both.
        """
        ours = np.sqrt(np.add.reduceat(row * row, self.starts))
        if others is None or not len(others):
            return max(float(ours @ np.sqrt(np.asarray(self.usual, dtype=np.float32))), _LEAST)
        theirs = np.sqrt(np.add.reduceat(others * others, self.starts, axis=1))
        return max(float(np.add.reduce(theirs @ ours)) / len(theirs), _LEAST)

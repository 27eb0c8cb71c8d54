"""Vectors of several encoders side by side: how large a cosine can be if one does not read a text.

A text in a language that an encoder does not read has nothing in that encoder's part. So its
cosines with texts that have something there are smaller, however well they match.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gateway.errors import ConfigError
from gateway.runtime.vectors import Matrix, Vector

_LEAST = 0.05
"""Texts that share hardly any encoder have cosines that say nothing, and must not be blown up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorParts:
    """Where each encoder's part of a row is, and how much of it.

    Raises:
        ConfigError: Unless *starts* ascend from 0, and there is a share for each, 1 together.
    """

    starts: tuple[int, ...]
    """The first column of each part, ascending from 0."""
    usual: tuple[float, ...]
    """The share of each part in the squared length of a row that all encoders read; 1 together."""

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

"""Tools of one server serve a request together. Pure.

A request of several steps is mostly served by few servers: a tool is the likelier the better the
best other tool of its server fits. The smaller the server's part of the catalog, the more that
says; where all tools are of one server it says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gateway.search.dense.segments import Positions
from gateway.vectors import Vector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mates:
    """Which server each entity is of."""

    numbers: Positions
    """The number of each entity's server, shape (n,)."""
    weights: Vector
    """How rare that server is, shape (n,): 1 for a tool alone, 0 if it is the whole catalog."""
    servers: int
    """How many servers there are, >= 2."""

    @classmethod
    def of(cls, servers: Sequence[str]) -> Self | None:
        """Read the server of each entity; None if there are not two of them."""
        known = {server: number for number, server in enumerate(dict.fromkeys(servers))}
        if len(known) < 2:
            return None
        numbers = np.asarray([known[server] for server in servers], dtype=np.intp)
        rarity = np.log(len(servers) / np.bincount(numbers)) / math.log(len(servers))
        return cls(numbers=numbers, weights=rarity.astype(np.float32)[numbers], servers=len(known))

    def support(self, spots: Positions, scores: Vector) -> Vector:
        """Say how well the best other tool of each one's server fits, shape (len(spots),).

        Args:
            spots: Positions, each once.
            scores: How well each of them fits, 0 for the average of the catalog.

        Returns:
            At least 0: without a mate that is better than the average, nothing is lost.
        """
        numbers = self.numbers[spots]
        best = np.zeros(self.servers, dtype=np.float32)
        np.maximum.at(best, numbers, scores)
        heads = best[numbers]
        leads = scores >= heads
        rest = np.zeros(self.servers, dtype=np.float32)
        np.maximum.at(rest, numbers[~leads], scores[~leads])
        alone = np.bincount(numbers[leads], minlength=self.servers)[numbers] == 1
        mate = np.where(leads & alone, rest[numbers], heads)
        return np.asarray(self.weights[spots] * mate, dtype=np.float32)

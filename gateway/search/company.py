"""What the company of an entity adds to its score, in a catalog of every kind. Pure.

* A tool is lifted by the best other tool of its server; see `Mates`. In a job of many parts that
  counts the more, the smaller the server is: few servers do a job.
* A server is lifted by its best tool: its own text hardly speaks of what its tools do.
* What stands alone, as agents and skills do, has nobody to lift it and must not lose by that. It is
  lifted by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gateway.index.eligibility import Eligibility
from gateway.index.vectors.segments import Positions
from gateway.runtime.vectors import Vector
from gateway.search.dense.mates import Mates
from gateway.search.fusion import MATES, job
from gateway.types import Entity

ALONE = 0.6
"""What stands alone counts as if it had a mate that fits this share of how well it fits itself."""
JOB = 1.0
"""What one deviation of the best mate adds besides in a job, times how rare the server is. Half of
`fusion.JOB`, which is for tools alone: with more, the other kinds would vanish."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Company:
    """The company of each entity, for one request."""

    mates: Mates
    eligibility: Eligibility
    entities: Sequence[Entity]
    parts: int = 0
    """How many parts the request has; 0 for a short one."""

    def lifted(self, spots: Positions, scores: Vector) -> Vector:
        """Give *scores* with what company adds to each, shape (len(spots),).

        Args:
            spots: Positions, each once; only these lift each other.
            scores: How well each of them fits, 0 for the average of the catalog.
        """
        rarity = self.mates.weights[spots]
        rare = MATES + JOB * job(self.parts) * rarity
        added = rare * self.mates.support(spots, scores)
        alone = rarity >= 1
        added[alone] = MATES * ALONE * np.maximum(scores[alone], 0)
        for place, best in self._servers(spots, scores):
            added[place] = MATES * best
        return np.asarray(scores + added, dtype=np.float32)

    def _servers(self, spots: Positions, scores: Vector) -> Iterator[tuple[int, float]]:
        """Give the place of each server that has tools, and how well the best of these fits."""
        places = np.flatnonzero(self.eligibility.has("kind", "server")[spots]).tolist()
        if not places:
            return
        tools = self.eligibility.has("kind", "tool")
        fits = np.zeros(len(tools), dtype=np.float32)
        fits[spots] = np.maximum(scores, 0)
        for place in places:
            server = self.entities[spots[place]]
            if server.name != server.server:
                # Its namespace is the name of a server, but it is not that server.
                continue
            own = self.eligibility.of_server(server.server)
            own = own[tools[own]]
            if own.size:
                yield place, float(self.mates.weights[own[0]] * fits[own].max())

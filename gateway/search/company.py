"""What company says for an entity in a catalog of every kind. Pure.

* A tool is the likelier the better the best other tool of its server fits; see `Mates`. For a job
  of many steps that says the more the smaller its server is: few servers do a job.
* A server is the likelier the better its best tool fits: its own text hardly speaks of them.
* What stands alone, as agents and skills do, has nobody to speak for it, and must not lose by that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gateway.search.dense.mates import Mates
from gateway.search.dense.segments import Positions
from gateway.search.eligible import Eligibility
from gateway.search.fusion import MATES, job
from gateway.types import Entity
from gateway.values import dataclass
from gateway.vectors import Vector

ALONE = 0.6
"""What stands alone counts as if a mate fitted so well, as a share of itself."""
JOB = 1.0
"""What a deviation of the best mate adds besides for a job, times how rare the server is: half of
what it is where all are tools (`fusion.JOB`), or the other kinds would vanish."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Company:
    """Who stands with whom, for one request."""

    mates: Mates
    eligibility: Eligibility
    entities: Sequence[Entity]
    parts: int = 0
    """How many parts the request has; 0 for a short one."""

    def lifted(self, spots: Positions, scores: Vector) -> Vector:
        """Give *scores* with what company adds to each, shape (len(spots),).

        Args:
            spots: Positions, each once; nobody else speaks.
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
        """Give the places of servers that have tools, and what the best of these says."""
        places = np.flatnonzero(self.eligibility.has("kind", "server")[spots]).tolist()
        if not places:
            return
        tools = self.eligibility.has("kind", "tool")
        fits = np.zeros(len(tools), dtype=np.float32)
        fits[spots] = np.maximum(scores, 0)
        for place in places:
            server = self.entities[spots[place]]
            if server.name != server.server:
                # It only shares a name space with those tools.
                continue
            own = self.eligibility.of_server(server.server)
            own = own[tools[own]]
            if own.size:
                yield place, float(self.mates.weights[own[0]] * fits[own].max())

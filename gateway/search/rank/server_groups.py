"""Tools of one server serve a request together. Pure.

* A request of many clauses is mostly served by few servers: the better the best tool of its server
  fits, the likelier a tool is. The smaller the server's part of the catalog, the more that says;
  where all tools are of one server it says nothing.
* The policy *hybrid* ranks entities of every kind. There a tool gains by the best other tool of its
  server, a server by its best tool, and what stands alone, as agents and skills do, by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gateway.index.eligibility import Eligibility, Positions
from gateway.runtime.vectors import Vector
from gateway.search.rank.parameters import (
    HYBRID_GROUP_WEIGHT,
    LONE_ENTITY_SHARE,
    SERVER_GROUP_CLAUSES,
    SERVER_GROUP_WEIGHT,
    SIBLING_WEIGHT,
)
from gateway.types import Entity


def multi_step_weight(clause_count: int) -> float:
    """Return how much a request of so many clauses is one of many steps, 0 to 1."""
    low, high = SERVER_GROUP_CLAUSES
    return min(max((clause_count - low) / (high - low), 0.0), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServerGroups:
    """The server of each entity of a catalog."""

    ids: Positions
    """The number of each entity's server, shape (n,)."""
    rarity: Vector
    """How rare each server is, by number: 1 for an entity alone, 0 for the whole catalog."""

    @classmethod
    def of(cls, ids: Positions) -> Self | None:
        """Group entities by the numbers of their servers, without gaps; None for one server."""
        sizes = np.bincount(ids)
        if len(sizes) < 2:
            return None
        rarity = np.log(len(ids) / sizes) / math.log(len(ids))
        return cls(ids=ids, rarity=rarity.astype(np.float32))

    def rarity_at(self, positions: Positions) -> Vector:
        """Return how rare the servers of the entities at *positions* are, 0 to 1."""
        return self.rarity[self.ids[positions]]

    def best_in_group(self, positions: Positions, scores: Vector) -> Vector:
        """Return the score of the best entity of its server, itself or another, for each; >= 0.

        Args:
            positions: Each once.
            scores: How well each of them fits, 0 for the average of the catalog.
        """
        ids = self.ids[positions]
        best = np.zeros(len(self.rarity), dtype=np.float32)
        np.maximum.at(best, ids, scores)
        return np.asarray(best[ids])

    def best_sibling(self, positions: Positions, scores: Vector) -> Vector:
        """Return the score of the best other entity of its server for each; >= 0."""
        ids = self.ids[positions]
        best = self.best_in_group(positions, scores)
        leads = scores >= best
        second = np.zeros(len(self.rarity), dtype=np.float32)
        np.maximum.at(second, ids[~leads], scores[~leads])
        alone = np.bincount(ids[leads], minlength=len(self.rarity))[ids] == 1
        return np.where(leads & alone, second[ids], best)


def group_scores(ids: Positions, positions: Positions, scores: Vector, clauses: int) -> Vector:
    """Return what servers add to the scores of a request of many clauses, in deviations.

    All tools of a server gain the same, so that no sibling overtakes the tool that lifts it.

    Args:
        ids: The number of each entity's server, shape (n,).
        positions: Those that are ranked, each once.
        scores: Their scores, in deviations.
        clauses: How many clauses the request has.
    """
    share = multi_step_weight(clauses)
    groups = ServerGroups.of(ids) if share else None
    if groups is None:
        return np.zeros(len(positions), dtype=np.float32)
    rarity = groups.rarity_at(positions)
    weight = np.float32(SERVER_GROUP_WEIGHT * share)
    return weight * rarity * rarity * groups.best_in_group(positions, scores)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServerBoost:
    """What the policy *hybrid* adds to the scores of entities for those of the same server."""

    groups: ServerGroups
    eligibility: Eligibility
    entities: Sequence[Entity]
    clause_count: int = 0

    def boost(self, positions: Positions, scores: Vector) -> Vector:
        """Return *scores* with what the servers add, shape (len(positions),).

        Args:
            positions: Each once; only these add to each other.
            scores: How well each of them fits, 0 for the average of the catalog.
        """
        rarity = self.groups.rarity_at(positions)
        share = multi_step_weight(self.clause_count)
        weight = SIBLING_WEIGHT + HYBRID_GROUP_WEIGHT * share * rarity
        added = weight * rarity * self.groups.best_sibling(positions, scores)
        alone = rarity >= 1
        added[alone] = SIBLING_WEIGHT * LONE_ENTITY_SHARE * np.maximum(scores[alone], 0)
        for index, best in self._servers(positions, scores):
            added[index] = SIBLING_WEIGHT * best
        return np.asarray(scores + added, dtype=np.float32)

    def _servers(self, positions: Positions, scores: Vector) -> Iterator[tuple[int, float]]:
        """Yield the index of each server that has tools, and how well the best of these fits."""
        indices = np.flatnonzero(self.eligibility.has("kind", "server")[positions]).tolist()
        if not indices:
            return
        tools = self.eligibility.has("kind", "tool")
        fits = np.zeros(len(tools), dtype=np.float32)
        fits[positions] = np.maximum(scores, 0)
        for index in indices:
            server = self.entities[positions[index]]
            if server.name != server.server:
                # Its namespace is the name of a server, but it is not that server.
                continue
            own = self.eligibility.of_server(server.server)
            own = own[tools[own]]
            if own.size:
                yield index, float(self.groups.rarity_at(own[:1])[0] * fits[own].max())

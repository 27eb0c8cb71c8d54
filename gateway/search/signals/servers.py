"""The signal of servers: all tools of a server gain by its best one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gateway.index.eligibility import Positions
from gateway.runtime.vectors import Vector
from gateway.search.signals.signal import Pool

SERVER_GROUP_WEIGHTS = (0.3, 2.0)
"""Deviations that one deviation of its server's best tool adds to a tool, times how rare the server
is: for few clauses and for many. A first weight of 1 finds 2.0 points more on toollinkos, where a
request needs tools of one server, and 1.4 less on mixed, where it needs tools of unrelated servers
(``docs/benchmarks.md``). The second was chosen on mcp_bench and nestful."""
SERVER_GROUP_CLAUSES = (5, 10)
"""Clauses up to which the first weight holds, and from which on the second."""


class Servers:
    """Speaks for the siblings of what the signals before it speak for.

    Its weights depend on the number of clauses, so that they are in the score.
    """

    name, order, weight = "servers", 400, 1.0

    def score(self, pool: Pool) -> Vector:
        """Return what the best tool of its server adds to each candidate."""
        ids, clauses = pool.snapshot.server_ids, pool.query.clause_count
        return group_scores(ids, pool.positions, pool.scores, clauses)


def group_scores(
    ids: Positions,
    positions: Positions,
    scores: Vector,
    clauses: int,
    weights: Sequence[float] = SERVER_GROUP_WEIGHTS,
) -> Vector:
    """Return what servers add to the scores at *positions*, in deviations.

    A request is mostly served by few servers, one of many clauses all the more: the better the best
    tool of its server fits, the likelier a tool is. The smaller the server's part of the catalog,
    the more that says. All tools of a server gain the same, so that no sibling overtakes the tool
    that lifts it.

    Args:
        ids: The number of each entity's server without gaps, shape (n,).
        positions: Those that are ranked, each once, shape (m,).
        scores: Their scores, in deviations, shape (m,).
        clauses: How many clauses the request has, 0 for a short one.
        weights: What a server's best score counts, at each of `SERVER_GROUP_CLAUSES`.
    """
    groups = ids[positions]
    if len(ids) < 2:
        return np.zeros(len(groups), dtype=np.float32)
    weight = np.float32(np.interp(clauses, SERVER_GROUP_CLAUSES, weights))
    # 1 for a server of one tool, 0 for one that is the whole catalog.
    sizes = np.bincount(ids)[groups]
    rarity = (np.log(len(ids) / sizes) / math.log(len(ids))).astype(np.float32)
    _, places = np.unique(groups, return_inverse=True)
    best = np.zeros(len(groups), dtype=np.float32)
    np.maximum.at(best, places, scores)
    added: Vector = weight * rarity * best[places]
    return added

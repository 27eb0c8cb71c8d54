"""The gateway's own signals of the strategy `auto`, and the list with the plugins' signals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from gateway.errors import ConfigError
from gateway.index.eligibility import Positions
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector
from gateway.search.retrieve import score_clauses
from gateway.search.signals.signal import Pool, Signal


class Vectors:
    """Signal for entities whose vector is near to the request and to one of its clauses.

    The score is the cosine with the request plus `CLAUSE_COSINE_WEIGHT` times the cosine with the
    best clause.
    """

    name, order, weight = "vectors", 100, 1.0

    def score(self, pool: Pool) -> Vector:
        """Return the ranking score of each candidate by vectors, in deviations."""
        return pool.candidates.deviations(pool.candidates.strengths)


class Words:
    """Signal for entities that contain words of the request, by BM25F."""

    name, order = "words", 200

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def score(self, pool: Pool) -> Vector:
        """Return the BM25F score of each candidate, in deviations."""
        return pool.deviations(pool.words.scores)


class ClauseWords:
    """Signal for entities that contain words of one clause, by BM25F; 0 for a short request."""

    name, order = "clause words", 300

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def score(self, pool: Pool) -> Vector:
        """Return each candidate's best BM25F score over the clauses, in deviations."""
        best = score_clauses(pool.snapshot.lexical, pool.query)
        return pool.deviations(best[0]) if best else np.zeros_like(pool.scores)


SERVER_GROUP_WEIGHTS = (0.3, 2.0)
"""Weights of the signal `Servers`: for requests with few clauses, and with many.

A first weight of 1 finds 2.0 points more on toollinkos, where a request needs tools of one server,
and 1.4 points less on mixed, where it needs tools of unrelated servers (``docs/benchmarks.md``).
The second weight was chosen on mcp_bench and nestful."""
SERVER_GROUP_CLAUSES = (5, 10)
"""Numbers of clauses. Up to the first number, the first of `SERVER_GROUP_WEIGHTS` applies. From the
second number, the second weight applies. Between them, weights are interpolated."""


class Servers:
    """Signal for tools whose server has a tool with a high sum of the preceding signals.

    `weight` is 1, because the score already contains the weight for the number of clauses.
    """

    name, order, weight = "servers", 400, 1.0

    def score(self, pool: Pool) -> Vector:
        """Return the gain of each candidate, computed from the best score on its server."""
        ids, clauses = pool.snapshot.server_ids, pool.query.clause_count
        return group_scores(ids, pool.positions, pool.scores, clauses)


def group_scores(
    ids: Positions,
    positions: Positions,
    scores: Vector,
    clauses: int,
    weights: Sequence[float] = SERVER_GROUP_WEIGHTS,
) -> Vector:
    """Return the gain of the entities at *positions* from their servers, in deviations.

    Few servers usually serve a request, so a tool is more likely if its server's best tool has a
    high score. The gain is that score x the weight x the server's rarity. All tools of a server
    gain the same.

    Args:
        ids: Id of each entity's server, from 0, shape (n,).
        positions: Positions of the ranked entities, without duplicates, shape (m,).
        scores: Score of each of *positions*, in deviations, shape (m,).
        clauses: Number of clauses in the request; 0 for a short one.
        weights: Weight at each number of clauses in `SERVER_GROUP_CLAUSES`.
    """
    groups = ids[positions]
    if len(ids) < 2:
        return np.zeros(len(groups), dtype=np.float32)
    weight = np.float32(np.interp(clauses, SERVER_GROUP_CLAUSES, weights))
    # The rarity is 1 for a server with one tool, and 0 for a server with the whole catalog.
    sizes = np.bincount(ids)[groups]
    rarity = (np.log(len(ids) / sizes) / math.log(len(ids))).astype(np.float32)
    _, places = np.unique(groups, return_inverse=True)
    best = np.zeros(len(groups), dtype=np.float32)
    np.maximum.at(best, places, scores)
    added: Vector = weight * rarity * best[places]
    return added


CLAUSE_GAIN, MAX_GAINING_CLAUSES = 1.0, 6
"""Gain of the tool nearest to a clause, in deviations, and maximum number of clauses that give it.
The mean recall@5 of 14 sets hardly changes from 0.5 to 1.5 deviations (``docs/benchmarks.md``)."""


class ClauseCoverage:
    """Signal for the nearest tool of each clause, so that each part of a long request is served."""

    name, order, weight = "clause coverage", 500, CLAUSE_GAIN

    def score(self, pool: Pool) -> Vector:
        """Return 1 for each candidate that is nearest to a clause, else 0."""
        gains = np.zeros_like(pool.scores)
        gains[pool.candidates.nearest_to_clauses(MAX_GAINING_CLAUSES)] = 1
        return gains


def all_signals(options: SearchOptions, others: Iterable[Signal] = ()) -> tuple[Signal, ...]:
    """Return the gateway's signals and those in *others*, in the order in which they are added.

    Raises:
        ConfigError: If two signals have the same name.
    """
    signals: list[Signal] = [
        Vectors(),
        Words(options.lexical_weight),
        ClauseWords(options.lexical_weight),
        Servers(),
        ClauseCoverage(),
        *others,
    ]
    names = [signal.name for signal in signals]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(
            f"two signals of ranking have the name {min(twice)!r}: exclude the plugin of one of "
            "them with the option plugins"
        )
    return tuple(sorted(signals, key=lambda signal: (signal.order, signal.name)))

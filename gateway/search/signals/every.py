"""All signals of `auto`: those of the gateway, and those of plugins."""

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
    """Speaks for what is near to the request, and to a clause of a long one.

    It is the cosine of the request, with 0.7 of that of its best clause. Both cosines are added
    before they are measured in deviations: by that sum vectors choose the candidates, too. Its
    parts are weighed by `CLAUSE_COSINE_WEIGHT`.
    """

    name, order, weight = "vectors", 100, 1.0

    def score(self, pool: Pool) -> Vector:
        """Return the strengths of the candidates in deviations."""
        return pool.candidates.deviations(pool.candidates.strengths)


class Words:
    """Speaks for what holds words of the request, by BM25F.

    Args:
        weight: `SearchOptions.lexical_weight`.
    """

    name, order = "words", 200

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def score(self, pool: Pool) -> Vector:
        """Return the scores by words in deviations."""
        return pool.deviations(pool.words.scores)


class ClauseWords:
    """Speaks for what holds words of the best clause, by BM25F; says nothing of a short request.

    Args:
        weight: `SearchOptions.lexical_weight`.
    """

    name, order = "clause words", 300

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def score(self, pool: Pool) -> Vector:
        """Return the best score of a clause by its words, in deviations."""
        best = score_clauses(pool.snapshot.lexical, pool.query)
        return pool.deviations(best[0]) if best else np.zeros_like(pool.scores)


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


CLAUSE_GAIN, MAX_GAINING_CLAUSES = 1.0, 6
"""Deviations that the tool nearest to a clause gains, and the number of clauses that lift a tool,
the first ones. The mean recall@5 of 14 sets is flat from 0.5 to 1.5 deviations
(``docs/benchmarks.md``)."""


class ClauseCoverage:
    """Speaks for one tool a clause, so that no part of a long request is crowded out."""

    name, order, weight = "clause coverage", 500, CLAUSE_GAIN

    def score(self, pool: Pool) -> Vector:
        """Return 1 for a candidate that is nearest to one clause or more, else 0."""
        gains = np.zeros_like(pool.scores)
        gains[pool.candidates.nearest_to_clauses(MAX_GAINING_CLAUSES)] = 1
        return gains


def all_signals(options: SearchOptions, others: Iterable[Signal] = ()) -> tuple[Signal, ...]:
    """Return the signals of `auto`, in the order of the sum.

    Args:
        options: Weigh the words.
        others: Those of plugins.

    Raises:
        ConfigError: Two signals have one name.
    """
    signals: list[Signal] = [
        Vectors(),
        Words(options.lexical_weight),
        ClauseWords(options.lexical_weight),
        Servers(),
        ClauseCoverage(),
        *others,
    ]
    names = [each.name for each in signals]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(
            f"two signals of ranking have the name {min(twice)!r}: leave the plugin of one of them "
            "out by the option plugins"
        )
    return tuple(sorted(signals, key=lambda each: (each.order, each.name)))

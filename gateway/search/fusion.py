"""Evidence -> order. Pure.

* The graph has no say here: it never reorders matches.
* An entity whose name the query states comes first, in the order of the stating.
* Ties break by name: positions are in the order of names.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gateway.search.dense.doubts import MAX_DOUBT, Doubts
from gateway.search.dense.mates import Mates
from gateway.search.dense.segments import Positions
from gateway.search.dense.vector import Candidates
from gateway.search.eligible import Mask
from gateway.values import dataclass
from gateway.vectors import Vector, moments

FULL_TRUST = 0.2
"""Lexical evidence counts in full if some entity holds this share of the query's words."""
CLAUSE_WORDS = 0.4
"""What a deviation in the words of a long request's best clause counts beside one in vectors."""
COVERAGE = 2.0
"""What holding all of the query's words adds, in deviations."""
NAMES = 0.8
"""What a name that is stated whole, in words, adds, in deviations; half of one adds three
eighths of that."""
MATES = 0.35
"""What a deviation of the best other tool of the same, rare server adds."""
CREDIT = 0.2
FARTHEST = 0.2
"""Of a short request, words count less where vectors say less: by this power of the share of what
they say of the nearest, which is taken for no less than the second number."""
JOB = 2.0
"""What a deviation of the server's best tool adds besides in a job of many steps, by how rare the
server is, twice: few servers do a job, and of a large one some tool is always near."""
STEPS = (5, 10)
"""A request of no more parts than the first is no job; of as many as the second it is one."""
_NOTHING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lexical:
    """What words say of the whole catalog, shape (n,) each."""

    scores: Vector
    """BM25F scores, the best over the query's forms, >= 0."""
    coverage: Vector
    """Share of the query's words that each entity holds, by rarity, 0 to 1."""
    names: Vector
    """Share of each entity's name that the query states, by rarity, 0 to 1."""
    clauses: Vector | None = None
    """The best clause's BM25F scores; None for a short request."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Order:
    """A ranking of positions, best first."""

    positions: Positions
    scores: Vector
    """One a position; falls along the ranking, but for exact names at its head."""

    def at(self, places: Sequence[int]) -> Order:
        """Give what stands at these places, in their order."""
        chosen = np.asarray(places, dtype=np.intp)
        return Order(positions=self.positions[chosen], scores=self.scores[chosen])


def by_vector(found: Candidates) -> Order:
    """Rank the pool by vectors alone."""
    return Order(positions=found.pool, scores=found.strengths)


def fuse(  # noqa: PLR0913  (keyword-only, one a piece of evidence)
    found: Candidates,
    lexical: Lexical,
    *,
    mask: Mask,
    weight: float,
    mates: Mates | None = None,
    doubts: Doubts | None = None,
    parts: int = 0,
) -> Order:
    """Re-score the pool by vectors and words together, then by who serves with whom.

    Args:
        found: The vector candidates.
        lexical: What the words say of the whole catalog.
        mask: Who may be found.
        weight: See `together`.
        mates: Which server each entity is of; None if that says nothing.
        doubts: What each entity loses for wanting to be found for everything. Who loses the most
            speaks for no mate; who is not heard is ranked by its vector alone.
        parts: How many clauses the request has, 0 for a short one.
    """
    pool = found.pool
    vector, words = _evidence(found, lexical, spots=pool, mask=mask, weight=weight)
    if lexical.clauses is None:
        words = words * _credit(vector)
    if doubts is None:
        added = 0 if mates is None else _supported(mates, pool, vector + words, parts)
        return _sorted(pool, vector + words + added)
    heard, lost = 1 - doubts.unheard[pool], doubts.lost[pool]
    scores = vector + np.where(words > 0, heard * words, words)
    if mates is not None:
        # Half of the most may be chance: mates hear of what is beyond, and then of all of it.
        told = scores - np.maximum(2 * lost - np.float32(MAX_DOUBT), 0)
        scores = scores + heard * _supported(mates, pool, told, parts)
    return _sorted(pool, scores - lost)


def _credit(vector: Vector) -> Vector:
    """Say how much words count for each, 0 to 1: the nearest has all of its own."""
    best = max(float(vector.max(initial=0.0)), _NOTHING)
    credit: Vector = np.maximum(vector / np.float32(best), FARTHEST) ** np.float32(CREDIT)
    return credit


def job(parts: int) -> float:
    """Say how much a request of so many parts is a job, 0 to 1."""
    least, most = STEPS
    return min(max((parts - least) / (most - least), 0.0), 1.0)


def _supported(mates: Mates, spots: Positions, scores: Vector, parts: int) -> Vector:
    added = np.float32(MATES) * mates.support(spots, scores)
    if share := job(parts):
        # All of a server gain the same, so that a mate never stands before who it speaks for.
        rarity = mates.weights[spots]
        added += np.float32(JOB * share) * rarity * rarity * mates.heads(spots, scores)
    return np.asarray(added, dtype=np.float32)


def together(
    found: Candidates, lexical: Lexical, *, spots: Positions, mask: Mask, weight: float
) -> Vector:
    """Score the entities at *spots* by vectors and words, shape (len(spots),).

    Args:
        found: The vector candidates.
        lexical: What the words say of the whole catalog.
        spots: Whom to score.
        mask: Who may be found.
        weight: How much a deviation in words counts beside one in vectors.
    """
    vector, words = _evidence(found, lexical, spots=spots, mask=mask, weight=weight)
    return vector + words


def _evidence(
    found: Candidates, lexical: Lexical, *, spots: Positions, mask: Mask, weight: float
) -> tuple[Vector, Vector]:
    """Say what vectors and what words say of the entities at *spots*; see `together`.

    Each kind of evidence is measured in standard deviations from the eligible catalog's mean, so
    that the one which tells the candidates apart decides. Words count by how much of the query
    they explain at best: a query in another language than the catalog's, which shares next to
    none, is ranked by vectors alone.
    """
    strengths = found.strengths if spots is found.pool else found.strengths_at(spots)
    vector = (strengths - found.mean) / found.spread if found.spread > 0 else strengths
    coverage = lexical.coverage[spots]
    trust = min(1.0, float(coverage.max(initial=0.0)) / FULL_TRUST)
    words = weight * _deviations(lexical.scores, spots, mask)
    if lexical.clauses is not None:
        words += CLAUSE_WORDS * _deviations(lexical.clauses, spots, mask)
    names = lexical.names[spots]
    shares = COVERAGE * coverage + NAMES / 2 * names * (1 + names)
    told = np.asarray(trust * words + shares, dtype=np.float32)
    return np.asarray(vector, dtype=np.float32), told


def _deviations(scores: Vector, spots: Positions, mask: Mask) -> Vector:
    mean, spread = moments(scores if mask.all() else scores[mask])
    if spread <= 0:
        return np.zeros(len(spots), dtype=np.float32)
    return np.asarray((scores[spots] - mean) / spread, dtype=np.float32)


def named_first(order: Order, named: Sequence[int]) -> Order:
    """Put the entities that the query names before all others."""
    if not named:
        return order
    rest = ~np.isin(order.positions, named)
    known = dict(zip(order.positions.tolist(), order.scores.tolist(), strict=True))
    top = max(order.scores.tolist(), default=1.0)
    head = [max(known.get(position, 0.0), top) for position in named]
    return Order(
        positions=np.concatenate([np.asarray(named, np.intp), order.positions[rest]]),
        scores=np.concatenate([np.asarray(head, np.float32), order.scores[rest]]),
    )


def interleave(orders: Sequence[Order], *, limit: int) -> list[tuple[int, int]]:
    """Take the next best of each ranking in turn, each entity once.

    Returns:
        Pairs of the ranking's number and the position, at most *limit*.
    """
    if len(orders) == 1:
        return [(0, position) for position in orders[0].positions[:limit].tolist()]
    queues = [iter(order.positions.tolist()) for order in orders]
    taken: dict[int, int] = {}
    open_queues = list(range(len(queues)))
    while open_queues and len(taken) < limit:
        for number in tuple(open_queues):
            position = next((spot for spot in queues[number] if spot not in taken), None)
            if position is None:
                open_queues.remove(number)
            elif len(taken) < limit:
                taken[position] = number
    return [(number, position) for position, number in taken.items()]


def _sorted(positions: Positions, scores: Vector) -> Order:
    order = np.lexsort((positions, -scores))
    return Order(positions=positions[order], scores=np.asarray(scores[order], dtype=np.float32))

"""Evidence -> order. Pure.

* The graph has no say here: it never reorders matches.
* Entities that the query calls by their exact names come first, in the order of the query.
* Ties break by name: positions are in the order of names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gateway.index.eligibility import Mask
from gateway.index.vectors.segments import Positions
from gateway.runtime.vectors import Vector, moments
from gateway.search.dense.doubts import MAX_DOUBT, Doubts
from gateway.search.dense.mates import Mates
from gateway.search.dense.vector import Candidates

FULL_TRUST = 0.2
"""Words count in full if some candidate holds this share of the query's words, and in proportion
below it."""
CLAUSE_WORDS = 0.4
"""What one deviation in the words of a long request's best clause adds, in deviations."""
COVERAGE = 2.0
"""What holding all of the query's words adds, in deviations; a share of them adds its share."""
NAMES = 0.8
"""What it adds if the query holds all words of an entity's name, in deviations; see `_for_name`."""
MATES = 0.35
"""What one deviation of the best other tool of the same, rare server adds, in deviations."""
CREDIT_POWER = 0.2
"""By which power of its vector score, as a share of the best one, the words of a candidate count;
see `_credit`."""
LEAST_SHARE = 0.2
"""That share is never taken for less."""
JOB = 2.0
"""What one deviation of the server's best tool adds besides in a job of many parts, in deviations.
It is multiplied by the square of the server's rarity: few servers do a job, and of a large one some
tool is always near."""
STEPS = (5, 10)
"""A request of no more parts than the first is no job; of as many as the second it is one in full;
see `job`."""
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
    """The BM25F scores of the clause that met each entity best, >= 0; None for a short request."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Order:
    """A ranking, best first; empty if nobody was found."""

    positions: Positions
    """Of entities, each once, shape (m,)."""
    scores: Vector
    """One for each position, shape (m,), comparable within one search; exact names at the head
    share the best one."""

    def at(self, places: Sequence[int]) -> Order:
        """Give what stands at these places, in their order."""
        chosen = np.asarray(places, dtype=np.intp)
        return Order(positions=self.positions[chosen], scores=self.scores[chosen])


def by_vector(found: Candidates) -> Order:
    """Give the pool as vectors alone rank it, scored by their strengths."""
    return Order(positions=found.pool, scores=found.strengths)


def by_graph(scores: Mapping[int, float]) -> Order:
    """Give the entities as the graph alone ranks them: *scores* by position, best first."""
    return Order(
        positions=np.fromiter(scores, np.intp, len(scores)),
        scores=np.fromiter(scores.values(), np.float32, len(scores)),
    )


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
        lexical: What words say of the whole catalog.
        mask: Who may be found.
        weight: See `together`.
        mates: The server of each entity; None if servers say nothing.
        doubts: What each entity loses for wanting to be found for everything; None if nobody loses
            anything. An entity that loses the most speaks for no mate; one that is not heard is
            ranked by its vector alone.
        parts: How many clauses the request has, 0 for a short one.
    """
    pool = found.pool
    vector, words = _evidence(found, lexical, spots=pool, mask=mask, weight=weight)
    if lexical.clauses is None:
        words = words * _credit(vector)
    if doubts is None:
        added = 0 if mates is None else _support(mates, pool, vector + words, parts)
        return _sorted(pool, vector + words + added)
    heard, lost = 1 - doubts.unheard[pool], doubts.lost[pool]
    scores = vector + np.where(words > 0, heard * words, words)
    if mates is not None:
        # Half of the greatest doubt may be chance. Only what is beyond it is kept from mates, and
        # twice as much of that, so that of the greatest doubt all is.
        for_mates = scores - np.maximum(2 * lost - np.float32(MAX_DOUBT), 0)
        scores = scores + heard * _support(mates, pool, for_mates, parts)
    return _sorted(pool, scores - lost)


def _credit(vector: Vector) -> Vector:
    """Give the share of its words that counts for each candidate of a short request, > 0 to 1.

    Words count less where vectors say less; those of the nearest candidate count in full.
    """
    best = max(float(vector.max(initial=0.0)), _NOTHING)
    shares = np.maximum(vector / np.float32(best), LEAST_SHARE)
    credit: Vector = shares ** np.float32(CREDIT_POWER)
    return credit


def job(parts: int) -> float:
    """Say how much of a job a request of so many *parts* is, 0 to 1."""
    least, most = STEPS
    return min(max((parts - least) / (most - least), 0.0), 1.0)


def _support(mates: Mates, spots: Positions, scores: Vector, parts: int) -> Vector:
    """Give what its server's other tools add for each of *spots*, in deviations."""
    added = np.float32(MATES) * mates.support(spots, scores)
    if share := job(parts):
        # All tools of a server gain the same: no mate may overtake the tool it was lifted by.
        rarity = mates.weights[spots]
        added += np.float32(JOB * share) * rarity * rarity * mates.heads(spots, scores)
    return np.asarray(added, dtype=np.float32)


def together(
    found: Candidates, lexical: Lexical, *, spots: Positions, mask: Mask, weight: float
) -> Vector:
    """Score the entities at *spots* by vectors and words, shape (len(spots),).

    Args:
        found: The vector candidates.
        lexical: What words say of the whole catalog.
        spots: Whom to score, by position.
        mask: Who may be found.
        weight: What one deviation in words adds, in deviations of vectors.

    Returns:
        In deviations from the mean of all who may be found.
    """
    vector, words = _evidence(found, lexical, spots=spots, mask=mask, weight=weight)
    return vector + words


def _evidence(
    found: Candidates, lexical: Lexical, *, spots: Positions, mask: Mask, weight: float
) -> tuple[Vector, Vector]:
    """Score the entities at *spots* by vectors and by words, shape (len(spots),) each.

    Each kind of evidence is measured in standard deviations from the eligible catalog's mean, so
    that the one which tells the candidates apart decides. Words are trusted by how much of the
    query they explain at best: a query in another language than the catalog's, which shares next
    to none, is ranked by vectors alone.
    """
    strengths = found.strengths if spots is found.pool else found.strengths_at(spots)
    vector = (strengths - found.mean) / found.spread if found.spread > 0 else strengths
    coverage = lexical.coverage[spots]
    trust = min(1.0, float(coverage.max(initial=0.0)) / FULL_TRUST)
    words = weight * _deviations(lexical.scores, spots, mask)
    if lexical.clauses is not None:
        words += CLAUSE_WORDS * _deviations(lexical.clauses, spots, mask)
    shares = COVERAGE * coverage + _for_name(lexical.names[spots])
    words = np.asarray(trust * words + shares, dtype=np.float32)
    return np.asarray(vector, dtype=np.float32), words


def _for_name(shares: Vector) -> Vector:
    """Give what *shares* of a name add: `NAMES` for a whole one, less than half for a half."""
    added: Vector = NAMES / 2 * shares * (1 + shares)
    return added


def _deviations(scores: Vector, spots: Positions, mask: Mask) -> Vector:
    """Give how far *scores* at *spots* are above the mean of the eligible; 0 if all are equal."""
    mean, spread = moments(scores if mask.all() else scores[mask])
    if spread <= 0:
        return np.zeros(len(spots), dtype=np.float32)
    return np.asarray((scores[spots] - mean) / spread, dtype=np.float32)


def named_first(order: Order, named: Sequence[int]) -> Order:
    """Put the entities at *named* before all others, in that order; none of them needs a score."""
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
        Pairs of the ranking's number and the entity's position, at most *limit*.
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

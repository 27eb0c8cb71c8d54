"""The ranking policies of the catalog: the same evidence, weighed another way. Pure.

=============  ================================================================================
hybrid         reciprocal ranks over what vectors and words (and the graph) say independently,
               each with what company adds; who shares words by chance has no rank by words
weighted       0.6 x cosine + 0.4 x keyword share, both on absolute scales
legacy         (cosine + 1) / 2 + 0.1 x keyword boost, at most 1; three of a kind
lexical        words alone, by BM25F
=============  ================================================================================

Without vectors, and for entities that have none, each ranks by words alone. Ties break by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot
from gateway.index.vectors.segments import Positions
from gateway.runtime.vectors import Vector, deviations, top
from gateway.search import keywords
from gateway.search.asked import Asked
from gateway.search.company import Company
from gateway.search.dense.vector import Candidates
from gateway.search.evidence import Words
from gateway.search.fusion import CLAUSE_WORDS, Lexical, Order
from gateway.search.keywords import Keywords
from gateway.types import Entity, RankingPolicy

RRF_K = 60
SEMANTIC, KEYWORD = 0.6, 0.4
BOOST = 0.1
HALF, ENOUGH = 0.5, 2.5
"""See `telling`."""
LEGACY_A_KIND = 3
"""How many entities of each kind *legacy* gives at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Heard:
    """The evidence for an order."""

    found: Candidates | None
    """What vectors say; None if there are none."""
    words: Vector
    """BM25F scores, shape (n,), >= 0; 0 where an entity holds no word of the query."""
    clauses: Vector | None = None
    """The BM25F scores of a long request's best clause; None for a short one."""
    telling: Callable[[], Mask]
    """Says which entities share words with the query by more than chance; see `telling`."""
    company: Company | None = None
    """What company adds; None if no entity has any."""
    keywords: Callable[[], Keywords]
    """Counts keywords; called only by the policies that use them."""
    graph: Positions
    """What the graph's own text search found, best first; empty if it has no say."""
    mask: Mask
    """Who may be found."""
    entities: Sequence[Entity]


def heard(  # noqa: PLR0913  (keyword-only, one a witness)
    snapshot: Snapshot,
    asked: Asked,
    lexical: Lexical,
    words: Words,
    *,
    mask: Mask,
    found: Candidates | None,
    graph: Positions,
) -> Heard:
    """Gather what is known of a query; what only some policies read is computed when read."""
    index, mates = snapshot.lexical, snapshot.mates
    told = partial(telling, lexical.coverage, mask, weight=words.best.weight, size=index.size)
    company = None
    if mates is not None:
        company = Company(
            mates=mates,
            eligibility=snapshot.eligibility,
            entities=snapshot.entities,
            parts=asked.parts,
        )
    return Heard(
        found=found,
        words=lexical.scores,
        clauses=lexical.clauses,
        telling=told,
        company=company,
        keywords=partial(keywords.read, index, words.best, snapshot.entities, mask),
        graph=graph,
        mask=mask,
        entities=snapshot.entities,
    )


def rank(policy: RankingPolicy, heard: Heard, *, count: int) -> Order:
    """Rank the catalog.

    Args:
        policy: Any but ``strategy``.
        heard: The evidence.
        count: How long the lists are that *hybrid* fuses.
    """
    if policy == "weighted":
        return weighted(heard.found, heard.keywords(), heard.mask)
    if policy == "legacy":
        return legacy(heard.found, heard.keywords(), heard.mask, heard.entities)
    if policy == "lexical" or heard.found is None:
        return by_words(heard.words, heard.mask)
    lists = (near(heard.found, heard.company), spoken(heard), heard.graph)
    return reciprocal([each[:count] for each in lists], size=len(heard.entities))


def near(found: Candidates, company: Company | None) -> Positions:
    """Rank the pool by strength, in deviations, with what company adds."""
    if company is None or found.spread <= 0:
        return found.pool
    scores = (found.strengths - found.mean) / found.spread
    return _best(found.pool, company.lifted(found.pool, scores)).positions


def spoken(heard: Heard) -> Positions:
    """Rank by words those that share them by more than chance, with what company adds.

    A long request is read as a whole and by its best clause, as in `gateway.search.fusion`.
    """
    eligible = np.flatnonzero(heard.mask)
    if not eligible.size:
        return eligible
    words = heard.words[eligible]
    scores = deviations(words)
    if heard.clauses is not None:
        scores = scores + np.float32(CLAUSE_WORDS) * deviations(heard.clauses[eligible])
    told = (words > 0) & heard.telling()[eligible]
    spots, scores = eligible[told], scores[told]
    if heard.company is not None:
        scores = heard.company.lifted(spots, scores)
    return _best(spots, scores).positions


def reciprocal(lists: Sequence[Positions], *, size: int, k: int = RRF_K) -> Order:
    """Fuse rankings that were made independently: the sum of 1/(k + rank), ranks from 1.

    After Cormack, Clarke, Büttcher, *Reciprocal rank fusion outperforms Condorcet* (2009).

    Args:
        lists: Positions, best first; an entity in one list only has that one term.
        size: How many entities there are.
        k: > 0; the larger, the less the first ranks differ.
    """
    scores = np.zeros(size, dtype=np.float32)
    for ranked in lists:
        scores[ranked] += np.float32(1) / np.arange(k + 1, k + 1 + len(ranked), dtype=np.float32)
    found = np.flatnonzero(scores)
    return _best(found, scores[found])


def telling(coverage: Vector, mask: Mask, *, weight: float, size: int) -> Mask:
    """Say which entities share words with a query by more than chance.

    Ranks know no degrees: the first by words counts as much as the first by vectors, however little
    it holds. So words must tell something. If some entity holds more of the query than `ENOUGH`
    words weigh that nobody holds, all entities count; if not, only those that hold at least `HALF`
    of the query.

    Args:
        coverage: Share of the query's words that each entity holds, by rarity, shape (n,).
        mask: Who may be found.
        weight: What all of the query's words weigh.
        size: How many entities there are; the weight of a word that nobody holds follows from it.
    """
    strange = math.log1p((size + 0.5) / 0.5)
    best = float(coverage[mask].max(initial=0.0)) * weight
    return coverage >= (0.0 if best > ENOUGH * strange else HALF)


def by_words(scores: Vector, mask: Mask) -> Order:
    """Rank by *scores*, shape (n,), the entities that may be found and score above 0."""
    spots = np.flatnonzero(mask & (scores > 0))
    return _best(spots, scores[spots])


def weighted(found: Candidates | None, keywords: Keywords, mask: Mask) -> Order:
    """Rank by 0.6 x cosine, negative ones as 0, and 0.4 x keyword share; scores in [0, 1].

    Without vectors the keyword share alone is the score.
    """
    if found is None:
        return by_words(keywords.share, mask)
    spots, cosines = _pool(found, keywords.share, mask)
    near = np.maximum(cosines, 0)
    return _best(spots, SEMANTIC * near + KEYWORD * keywords.share[spots])


def legacy(
    found: Candidates | None, keywords: Keywords, mask: Mask, entities: Sequence[Entity]
) -> Order:
    """Rank by (cosine + 1) / 2 + 0.1 x boost, at most 1, and at most three of a kind.

    Without vectors the score is the boost over the most that there is, at most 1.
    """
    if found is None:
        order = by_words(np.minimum(keywords.boost / np.float32(keywords.full), 1), mask)
    else:
        spots, cosines = _pool(found, keywords.boost, mask)
        order = _best(spots, np.clip((cosines + 1) / 2 + BOOST * keywords.boost[spots], 0, 1))
    return _few_a_kind(order, entities)


def _pool(found: Candidates, words: Vector, mask: Mask) -> tuple[Positions, Vector]:
    """Give what is ranked, the nearest and all that hold a word, with their cosines."""
    who = mask & (words > 0)
    who[found.pool] = True
    spots = np.flatnonzero(who)
    return spots, np.asarray(found.cosines(spots.tolist()), dtype=np.float32)


def _few_a_kind(order: Order, entities: Sequence[Entity]) -> Order:
    taken: dict[str, int] = {}
    kept: list[int] = []
    for place, spot in enumerate(order.positions.tolist()):
        kind = entities[spot].kind
        taken[kind] = taken.get(kind, 0) + 1
        if taken[kind] <= LEGACY_A_KIND:
            kept.append(place)
    return order.at(kept)


def _best(spots: Positions, scores: Vector) -> Order:
    order = top(scores, len(spots))
    return Order(positions=spots[order], scores=np.asarray(scores[order], dtype=np.float32))

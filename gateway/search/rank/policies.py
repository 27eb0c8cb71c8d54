"""The ranking policies of the catalog: the same evidence, weighed another way. Pure.

=============  ================================================================================
hybrid         reciprocal ranks over what vectors and words (and the graph) rank independently,
               each with what servers add; an entity that shares words by chance has no rank by
               words
weighted       0.6 x cosine + 0.4 x keyword share, both on absolute scales
legacy         (cosine + 1) / 2 + 0.1 x keyword boost, at most 1; three of a kind
lexical        words alone, by BM25F
=============  ================================================================================

Without vectors, and for entities that have none, each ranks by words alone. Ties break by name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gateway.index.eligibility import Mask, Positions
from gateway.index.snapshot import Snapshot
from gateway.runtime.vectors import Vector, deviations
from gateway.search.rank.fusion import RankedList
from gateway.search.rank.parameters import (
    CLAUSE_WORDS_WEIGHT,
    INFORMATIVE_COVERAGE,
    INFORMATIVE_WORDS,
    LEGACY_BOOST,
    LEGACY_MAX_PER_KIND,
    RRF_K,
    WEIGHTED_COSINE,
    WEIGHTED_KEYWORDS,
)
from gateway.search.rank.server_groups import ServerBoost, ServerGroups
from gateway.search.retrieve.keywords import Keywords, count_keywords
from gateway.search.retrieve.lexical import LexicalMatch, LexicalScores
from gateway.search.retrieve.vectors import Candidates
from gateway.types import Entity, RankingPolicy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankingInputs:
    """The evidence for an order."""

    snapshot: Snapshot
    mask: Mask
    """Eligible entities, shape (n,)."""
    lexical: LexicalScores
    terms: LexicalMatch
    """The words of the query, resolved."""
    clause_count: int = 0
    candidates: Candidates | None = None
    """The vector candidates; None without vectors."""
    graph: Positions
    """What the graph's text search found, best first; empty if it is not fused."""

    @property
    def keywords(self) -> Keywords:
        """The keyword scores of the whole catalog."""
        return count_keywords(
            self.snapshot.lexical, self.terms.best, self.snapshot.entities, self.mask
        )

    @property
    def boost(self) -> ServerBoost | None:
        """What servers add; None in a catalog of one server."""
        groups = ServerGroups.of(self.snapshot.server_ids)
        if groups is None:
            return None
        return ServerBoost(
            groups=groups,
            eligibility=self.snapshot.eligibility,
            entities=self.snapshot.entities,
            clause_count=self.clause_count,
        )


def rank(policy: RankingPolicy, inputs: RankingInputs, *, count: int) -> RankedList:
    """Rank the catalog.

    Args:
        policy: Any but ``strategy``.
        inputs: The evidence.
        count: How long the lists are that *hybrid* fuses.
    """
    if policy == "weighted":
        return weighted(inputs.candidates, inputs.keywords, inputs.mask)
    if policy == "legacy":
        return legacy(inputs.candidates, inputs.keywords, inputs.mask, inputs.snapshot.entities)
    if policy == "lexical" or inputs.candidates is None:
        return by_words(inputs.lexical.scores, inputs.mask)
    boost = inputs.boost
    lists = (
        vector_ranking(inputs.candidates, boost),
        lexical_ranking(inputs, boost),
        inputs.graph,
    )
    size = len(inputs.snapshot.entities)
    return reciprocal_rank_fusion([ranked[:count] for ranked in lists], size=size)


def vector_ranking(candidates: Candidates, boost: ServerBoost | None) -> Positions:
    """Rank the pool by strength, in deviations, with what servers add."""
    if boost is None:
        return candidates.pool
    scores = boost.boost(candidates.pool, candidates.deviations)
    return RankedList.of(candidates.pool, scores).positions


def lexical_ranking(inputs: RankingInputs, boost: ServerBoost | None) -> Positions:
    """Rank the entities that share words by more than chance, with what servers add.

    A long request is read as a whole and by its best clause, as in `gateway.search.rank.fusion`.
    """
    eligible = np.flatnonzero(inputs.mask)
    if not eligible.size:
        return eligible
    words = inputs.lexical.scores[eligible]
    scores = deviations(words)
    if inputs.lexical.clauses is not None:
        weight = np.float32(CLAUSE_WORDS_WEIGHT)
        scores = scores + weight * deviations(inputs.lexical.clauses[eligible])
    reading, size = inputs.terms.best, inputs.snapshot.lexical.size
    informative = informative_matches(
        inputs.lexical.coverage, inputs.mask, weight=reading.weight, size=size
    )
    shared = (words > 0) & informative[eligible]
    positions, scores = eligible[shared], scores[shared]
    if boost is not None:
        scores = boost.boost(positions, scores)
    return RankedList.of(positions, scores).positions


def reciprocal_rank_fusion(lists: Sequence[Positions], *, size: int, k: int = RRF_K) -> RankedList:
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
    positions = np.flatnonzero(scores)
    return RankedList.of(positions, scores[positions])


def informative_matches(coverage: Vector, mask: Mask, *, weight: float, size: int) -> Mask:
    """Return the entities that share words with a query by more than chance, shape (n,).

    Ranks know no degrees: the first by words counts as much as the first by vectors, however little
    it holds. If some entity holds more of the query than `INFORMATIVE_WORDS` unmatched words weigh,
    all entities count; if not, only those that hold `INFORMATIVE_COVERAGE` of it.

    Args:
        coverage: Share of the query's words that each entity holds, by rarity, shape (n,).
        mask: Eligible entities.
        weight: What all of the query's words weigh.
        size: How many entities there are; the weight of an unmatched word follows from it.
    """
    unmatched_weight = math.log1p((size + 0.5) / 0.5)
    best = float(coverage[mask].max(initial=0.0)) * weight
    many = best > INFORMATIVE_WORDS * unmatched_weight
    return coverage >= (0.0 if many else INFORMATIVE_COVERAGE)


def by_words(scores: Vector, mask: Mask) -> RankedList:
    """Rank by *scores*, shape (n,), the eligible entities that score above 0."""
    positions = np.flatnonzero(mask & (scores > 0))
    return RankedList.of(positions, scores[positions])


def weighted(candidates: Candidates | None, keywords: Keywords, mask: Mask) -> RankedList:
    """Rank by 0.6 x cosine, negative ones as 0, and 0.4 x keyword share; scores in [0, 1].

    Without vectors the keyword share alone is the score.
    """
    if candidates is None:
        return by_words(keywords.share, mask)
    positions, cosines = _pool(candidates, keywords.share, mask)
    scores = WEIGHTED_COSINE * np.maximum(cosines, 0)
    return RankedList.of(positions, scores + WEIGHTED_KEYWORDS * keywords.share[positions])


def legacy(
    candidates: Candidates | None, keywords: Keywords, mask: Mask, entities: Sequence[Entity]
) -> RankedList:
    """Rank by (cosine + 1) / 2 + 0.1 x boost, at most 1, and at most three of a kind.

    Without vectors the score is the boost over the most that there is, at most 1.
    """
    if candidates is None:
        ranked = by_words(np.minimum(keywords.boost / np.float32(keywords.maximum), 1), mask)
    else:
        positions, cosines = _pool(candidates, keywords.boost, mask)
        scores = (cosines + 1) / 2 + LEGACY_BOOST * keywords.boost[positions]
        ranked = RankedList.of(positions, np.clip(scores, 0, 1))
    return _limit_per_kind(ranked, entities)


def _pool(candidates: Candidates, words: Vector, mask: Mask) -> tuple[Positions, Vector]:
    """Return the nearest entities and all that hold a word, with their cosines."""
    ranked = mask & (words > 0)
    ranked[candidates.pool] = True
    positions = np.flatnonzero(ranked)
    return positions, np.asarray(candidates.cosines(positions.tolist()), dtype=np.float32)


def _limit_per_kind(ranked: RankedList, entities: Sequence[Entity]) -> RankedList:
    counts: Counter[str] = Counter()
    indices: list[int] = []
    for index, position in enumerate(ranked.positions.tolist()):
        kind = entities[position].kind
        counts[kind] += 1
        if counts[kind] <= LEGACY_MAX_PER_KIND:
            indices.append(index)
    return ranked.at(indices)

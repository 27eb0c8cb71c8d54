"""Ranking policies compatible with registries: other scores from the same evidence.

=============  ================================================================================
hybrid         reciprocal ranks of two independent rankings, by vectors and by words; an entity
               with less than half of the query's words is not ranked by words
weighted       0.6 x cosine + 0.4 x keyword share, both on absolute scales
legacy         (cosine + 1) / 2 + 0.1 x keyword boost, at most 1; at most three of each kind
=============  ================================================================================

Without vectors, and for an entity without a vector, words alone decide.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from gateway.catalog.kinds import REGISTRY_NAMES
from gateway.index.candidates import Candidates
from gateway.index.eligibility import Mask, Positions
from gateway.runtime.vectors import Vector
from gateway.search.rank.display import first_per_kind
from gateway.search.rank.fusion import RankedList
from gateway.search.rank.parameters import (
    HYBRID_COVERAGE,
    KEYWORD_MAXIMUM,
    LEGACY_BOOST,
    LEGACY_MAX_PER_KIND,
    RRF_K,
    WEIGHTED_COSINE,
    WEIGHTED_KEYWORDS,
)
from gateway.search.rank.policies import (
    CatalogRanking,
    Keywords,
    PolicyEvidence,
    by_words,
    explain_scores,
    has_vectors,
)
from gateway.types import Scoring

_log = logging.getLogger("gateway.search")


class Hybrid:
    """Policy *hybrid*: fuses the ranks by vectors and by words."""

    uses_vectors, is_exact = True, False

    def rank(self, evidence: PolicyEvidence) -> RankedList:
        """Rank by the fusion of the ranks by vectors and by words, or by words without vectors."""
        if evidence.candidates is None:
            return by_words(evidence.lexical.scores, evidence.mask)
        lists = fused_lists(evidence, evidence.candidates)
        return reciprocal_rank_fusion(lists, size=len(evidence.mask))

    def explain(self, evidence: PolicyEvidence, ranked: RankedList) -> Mapping[int, Scoring]:
        """Return the parts of each score, keyed by position, and log them as registries do.

        Rankings are logged at INFO and scores at DEBUG.
        """
        if evidence.candidates is None:
            return explain_scores(evidence, ranked)
        lists = fused_lists(evidence, evidence.candidates)
        line = "RRF inputs: %d vector-ranked docs, %d keyword-ranked docs"
        _log.info(line, *map(len, lists))
        scorings = explain_scores(evidence, ranked, lists)
        line = "RRF score for %r (type=%s): %.6f, text_boost=%.1f"
        for position, scoring in scorings.items():
            if scoring.rrf_score is not None:
                _log.debug(
                    line, *_name_and_kind(evidence, position), scoring.score, scoring.text_boost
                )
        return scorings


class Weighted:
    """Policy *weighted*: 0.6 x cosine + 0.4 x keyword share."""

    uses_vectors, is_exact = True, False

    def rank(self, evidence: PolicyEvidence) -> RankedList:
        """Rank by cosines and keyword shares."""
        return weighted(evidence.candidates, evidence.keywords, evidence.mask)

    def explain(self, evidence: PolicyEvidence, ranked: RankedList) -> Mapping[int, Scoring]:
        """Return the parts of each score, keyed by position."""
        return explain_scores(evidence, ranked)


class Legacy:
    """Policy *legacy*: cosine plus a keyword boost, with at most three entities of each kind."""

    uses_vectors, is_exact = True, True

    def rank(self, evidence: PolicyEvidence) -> RankedList:
        """Rank by cosines and keyword boosts, with at most three entities of each kind."""
        ranked = legacy(evidence.candidates, evidence.keywords, evidence.mask)
        kinds = evidence.snapshot.eligibility.kinds(ranked.positions)
        return ranked.at(first_per_kind(kinds, LEGACY_MAX_PER_KIND))

    def explain(self, evidence: PolicyEvidence, ranked: RankedList) -> Mapping[int, Scoring]:
        """Return the parts of each score, keyed by position, and log them at DEBUG."""
        scorings = explain_scores(evidence, ranked)
        line = (
            "Score for %r (type=%s): vector=%.4f, normalized_vector=%.4f, "
            "text_boost=%.1f, boost_contrib=%.4f, final=%.4f"
        )
        for position, scoring in scorings.items():
            if (cosine := scoring.vector) is not None:
                boost = scoring.text_boost
                parts = cosine, (cosine + 1) / 2, boost, LEGACY_BOOST * boost, scoring.score
                _log.debug(line, *_name_and_kind(evidence, position), *parts)
        return scorings


POLICIES: Mapping[str, CatalogRanking] = {
    "hybrid": Hybrid(),
    "weighted": Weighted(),
    "legacy": Legacy(),
}


def _name_and_kind(evidence: PolicyEvidence, position: int) -> tuple[str, str]:
    """Return the name and kind of an entity for a log message."""
    entity = evidence.snapshot.entities[position]
    # The name is untrusted. %r in log messages keeps it on one line.
    return entity.definition.title or entity.name, REGISTRY_NAMES.get(entity.kind, entity.kind)


def fused_lists(evidence: PolicyEvidence, candidates: Candidates) -> tuple[Positions, Positions]:
    """Return the positions by vectors and by words, best first, at most ``evidence.count`` each."""
    lexical = evidence.lexical
    words = by_words(lexical.scores, evidence.mask & (lexical.coverage >= HYBRID_COVERAGE))
    near = candidates.pool[has_vectors(candidates, candidates.pool)]
    return near[: evidence.count], words.positions[: evidence.count]


def reciprocal_rank_fusion(lists: Sequence[Positions], *, size: int) -> RankedList:
    """Fuse independent rankings: the score is the sum of 1/(60 + rank), with ranks from 1.

    Cormack, Clarke, Büttcher, *Reciprocal rank fusion outperforms Condorcet* (2009).

    Args:
        lists: Positions of entities, best first. A missing entity has no term in the sum.
        size: Number of entities of the catalog.
    """
    scores = np.zeros(size, dtype=np.float32)
    for ranked in lists:
        ranks = np.arange(1, len(ranked) + 1, dtype=np.float32)
        scores[ranked] += 1 / (RRF_K + ranks)
    positions = np.flatnonzero(scores)
    return RankedList.of(positions, scores[positions])


def weighted(candidates: Candidates | None, keywords: Keywords, mask: Mask) -> RankedList:
    """Rank by 0.6 x cosine + 0.4 x keyword share, 0 to 1.

    Negative cosines count as 0. Without vectors, the score is the keyword share.
    """
    if candidates is None:
        return by_words(keywords.share, mask)
    positions, cosines = _pool(candidates, keywords.share, mask)
    scores = WEIGHTED_COSINE * np.maximum(cosines, 0)
    return RankedList.of(positions, scores + WEIGHTED_KEYWORDS * keywords.share[positions])


def legacy(candidates: Candidates | None, keywords: Keywords, mask: Mask) -> RankedList:
    """Rank by (cosine + 1) / 2 + 0.1 x keyword boost, at most 1.

    An entity without a vector has the score 0.1 x keyword boost. Without any vectors, the score is
    keyword boost / 13.5, at most 1.
    """
    if candidates is None:
        return by_words(np.minimum(keywords.boost / np.float32(KEYWORD_MAXIMUM), 1), mask)
    positions, cosines = _pool(candidates, keywords.boost, mask)
    near = np.where(has_vectors(candidates, positions), (cosines + 1) / 2, np.float32(0))
    scores = near + LEGACY_BOOST * keywords.boost[positions]
    return RankedList.of(positions, np.clip(scores, 0, 1))


def _pool(candidates: Candidates, words: Vector, mask: Mask) -> tuple[Positions, Vector]:
    """Return the positions of the nearest entities and of those with a query word, with cosines."""
    ranked = mask & (words > 0)
    ranked[candidates.pool] = True
    positions = np.flatnonzero(ranked)
    return positions, np.asarray(candidates.cosines_at(positions.tolist()), dtype=np.float32)

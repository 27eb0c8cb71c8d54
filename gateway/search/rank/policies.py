"""The ranking policies of the catalog: the same evidence, weighed another way. Pure.

=============  ================================================================================
hybrid         reciprocal ranks over what vectors and words rank independently; an entity that
               holds less than half of the query's words has no rank by words
weighted       0.6 x cosine + 0.4 x keyword share, both on absolute scales
legacy         (cosine + 1) / 2 + 0.1 x keyword boost, at most 1; three of a kind
lexical        words alone, by BM25F
=============  ================================================================================

Without vectors, and for entities that have none, each ranks by words alone. Ties break by name.
Keywords are counted as registries do: a word counts where it stands as a word, once a field, and
never by a near spelling.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gateway.catalog.kinds import REGISTRY_NAMES
from gateway.index.candidates import Candidates
from gateway.index.eligibility import Mask, Positions
from gateway.index.snapshot import Snapshot
from gateway.runtime.vectors import NDArray, Vector
from gateway.search.rank.display import first_per_kind
from gateway.search.rank.fusion import RankedList
from gateway.search.rank.parameters import (
    HYBRID_COVERAGE,
    KEYWORD_BOOSTS,
    KEYWORD_MAXIMUM,
    KEYWORD_TOOL,
    LEGACY_BOOST,
    LEGACY_MAX_PER_KIND,
    RRF_K,
    WEIGHTED_COSINE,
    WEIGHTED_KEYWORDS,
    WORD_IN_DESCRIPTION,
    WORD_IN_NAME,
    WORD_IS_NAME,
)
from gateway.types import Entity, RankingPolicy, Scoring
from graphs.lexical.bm25_index import BM25Index
from graphs.lexical.query import AnalyzedQuery, Hits

log = logging.getLogger("gateway.search")
_Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyEvidence:
    """What is known of the catalog for one query."""

    snapshot: Snapshot
    lexical: Hits
    candidates: Candidates | None
    """None without vectors."""
    mask: Mask
    """Eligible entities, shape (n,)."""
    tools: Mask
    """The tools that may count for their servers, of whatever kind the search is; shape (n,)."""
    count: int
    """How long the lists are that *hybrid* fuses."""

    @property
    def keywords(self) -> Keywords:
        """The keyword scores."""
        snapshot = self.snapshot
        return count_keywords(snapshot.lexical, self.lexical, snapshot.entities, self.tools)

    def lists(self, candidates: Candidates) -> tuple[Positions, Positions]:
        """Return what vectors and words rank, best first, at most `count` each."""
        lexical = self.lexical
        words = by_words(lexical.scores, self.mask & (lexical.coverage >= HYBRID_COVERAGE))
        near = candidates.pool[has_vectors(candidates, candidates.pool)]
        return near[: self.count], words.positions[: self.count]


def rank(policy: RankingPolicy, evidence: PolicyEvidence) -> RankedList:
    """Rank the catalog by any policy but ``strategy``."""
    candidates, mask, snapshot = evidence.candidates, evidence.mask, evidence.snapshot
    if policy == "weighted":
        return weighted(candidates, evidence.keywords, mask)
    if policy == "legacy":
        ranked = legacy(candidates, evidence.keywords, mask)
        kinds = snapshot.eligibility.kinds(ranked.positions)
        return ranked.at(first_per_kind(kinds, LEGACY_MAX_PER_KIND))
    if policy == "lexical" or candidates is None:
        return by_words(evidence.lexical.scores, mask)
    return reciprocal_rank_fusion(evidence.lists(candidates), size=len(mask))


def has_vectors(candidates: Candidates, positions: Positions) -> _Flags:
    """Return which of *positions* have a vector."""
    return candidates.index.has(positions)


def reciprocal_rank_fusion(lists: Sequence[Positions], *, size: int) -> RankedList:
    """Fuse rankings that were made independently: the sum of 1/(60 + rank), ranks from 1.

    After Cormack, Clarke, Büttcher, *Reciprocal rank fusion outperforms Condorcet* (2009).

    Args:
        lists: Positions, best first; an entity in one list only has that one term.
        size: How many entities there are.
    """
    scores = np.zeros(size, dtype=np.float32)
    for ranked in lists:
        ranks = np.arange(1, len(ranked) + 1, dtype=np.float32)
        scores[ranked] += 1 / (RRF_K + ranks)
    positions = np.flatnonzero(scores)
    return RankedList.of(positions, scores[positions])


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


def legacy(candidates: Candidates | None, keywords: Keywords, mask: Mask) -> RankedList:
    """Rank by (cosine + 1) / 2 + 0.1 x boost, at most 1; without a vector by 0.1 x boost alone.

    Without vectors at all the score is boost / 13.5, at most 1.
    """
    if candidates is None:
        return by_words(np.minimum(keywords.boost / np.float32(KEYWORD_MAXIMUM), 1), mask)
    positions, cosines = _pool(candidates, keywords.boost, mask)
    near = np.where(has_vectors(candidates, positions), (cosines + 1) / 2, np.float32(0))
    scores = near + LEGACY_BOOST * keywords.boost[positions]
    return RankedList.of(positions, np.clip(scores, 0, 1))


def _pool(candidates: Candidates, words: Vector, mask: Mask) -> tuple[Positions, Vector]:
    """Return the nearest entities and all that hold a word, with their cosines."""
    ranked = mask & (words > 0)
    ranked[candidates.pool] = True
    positions = np.flatnonzero(ranked)
    return positions, np.asarray(candidates.cosines_at(positions.tolist()), dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keywords:
    """The keyword scores of one query, shape (n,) each; zeros without words."""

    boost: Vector
    """Weights of the fields that hold any of its words, >= 0."""
    share: Vector
    """Points of its words, of all that so many words could earn, in [0, 1]."""


def count_keywords(
    index: BM25Index, reading: AnalyzedQuery, entities: Sequence[Entity], tools: Mask
) -> Keywords:
    """Score the catalog by the words of one query.

    Args:
        index: The catalog's words, by the fields of `gateway.catalog.kinds`.
        reading: The query, resolved against *index*.
        entities: By position.
        tools: The tools that count for what they belong to, shape (n,).
    """
    fields = {name: number for number, name in enumerate(index.fields)}

    def holds(bits: NDArray[np.uint64], *names: str) -> _Flags:
        wanted = sum(1 << fields[name] for name in names if name in fields)
        return np.asarray(bits & np.uint64(wanted), dtype=np.bool_)

    any_word = np.zeros(len(entities), dtype=np.uint64)
    points = np.zeros(len(entities))
    in_name: list[_Flags] = []
    for word in reading.terms:
        if word.is_spelling_correction:
            continue
        bits, exact = index.fields_containing(word, "name")
        any_word |= bits
        in_name.append(holds(bits, "name"))
        points += np.where(exact, WORD_IS_NAME, WORD_IN_NAME * holds(bits, "name", "title"))
        points += WORD_IN_DESCRIPTION * holds(bits, "description")
    if len(in_name) > 1:
        # The words together are the name.
        alone = index.lengths[:, fields["name"]] == len(in_name)
        points[np.all(in_name, axis=0) & alone] = WORD_IS_NAME * len(in_name)
    boost = KEYWORD_TOOL * _count_tools(holds(any_word, "name", "description") & tools, entities)
    for names, weight in KEYWORD_BOOSTS.items():
        boost += weight * holds(any_word, *names)
    most = (WORD_IS_NAME + WORD_IN_DESCRIPTION) * max(len(reading.terms), 1)
    share = (points / most).astype(np.float32)
    return Keywords(boost=boost.astype(np.float32), share=share)


def _count_tools(matches: _Flags, entities: Sequence[Entity]) -> Vector:
    """Count, for each entity, the tools among *matches* that belong to it."""
    found = (entities[position] for position in np.flatnonzero(matches).tolist())
    tools = Counter(entity.parent for entity in found if entity.kind == "tool")
    return np.fromiter((tools[entity.id] for entity in entities), np.float32, len(entities))


def explain(
    policy: RankingPolicy, evidence: PolicyEvidence, ranked: RankedList
) -> dict[int, Scoring]:
    """Return how the scores of *ranked*, which *policy* ranked, were made, by position; and log it.

    At most as many as `PolicyEvidence.count`, best first. Lists are logged at INFO and scores at
    DEBUG, in the lines of registries.
    """
    candidates, keywords = evidence.candidates, evidence.keywords
    positions = ranked.positions[: evidence.count]
    cosines: Sequence[float | None] = [None] * len(positions)
    ranks: list[dict[int, int]] = [{}, {}]
    if candidates is not None:
        embedded = has_vectors(candidates, positions).tolist()
        exact = candidates.cosines_at(positions.tolist())
        cosines = [each if has else None for each, has in zip(exact, embedded, strict=True)]
        if policy == "hybrid":
            lists = evidence.lists(candidates)
            line = "RRF inputs: %d vector-ranked docs, %d keyword-ranked docs"
            log.info(line, *map(len, lists))
            ranks = [{at: place for place, at in enumerate(each.tolist(), 1)} for each in lists]
    scorings: dict[int, Scoring] = {}
    for at, score, cosine in zip(positions.tolist(), ranked.scores.tolist(), cosines, strict=False):
        boost = float(keywords.boost[at])
        scorings[at] = Scoring(
            score=score,
            vector=cosine,
            text_boost=boost,
            keyword_share=float(keywords.share[at]),
            vector_rank=ranks[0].get(at),
            keyword_rank=ranks[1].get(at),
            rrf_score=score if ranks[0] or ranks[1] else None,
        )
        _log_score(policy, evidence.snapshot.entities[at], scorings[at])
    return scorings


def _log_score(policy: RankingPolicy, entity: Entity, scoring: Scoring) -> None:
    cosine, boost, score = scoring.vector, scoring.text_boost, scoring.score
    # A name is a stranger's text: %r keeps it on its line.
    about = entity.definition.title or entity.name, REGISTRY_NAMES.get(entity.kind, entity.kind)
    if scoring.rrf_score is not None:
        line = "RRF score for %r (type=%s): %.6f, text_boost=%.1f"
        log.debug(line, *about, score, boost)
    elif policy == "legacy" and cosine is not None:
        line = (
            "Score for %r (type=%s): vector=%.4f, normalized_vector=%.4f, "
            "text_boost=%.1f, boost_contrib=%.4f, final=%.4f"
        )
        parts = cosine, (cosine + 1) / 2, boost, LEGACY_BOOST * boost, score
        log.debug(line, *about, *parts)

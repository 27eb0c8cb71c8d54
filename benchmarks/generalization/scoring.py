"""Evidence -> scores -> rankings -> figures, for all queries of a set at once. Pure.

`fused` is the sum of `gateway.search.signals`, over whole arrays and with other weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from benchmarks.generalization.evidence import OPTIONS, POOL, Evidence, Numbers, Words
from gateway.plugins.quality.metrics import DEPTH, score
from gateway.runtime.vectors import Matrix, top
from gateway.search.rank.parameters import CLAUSE_COSINE_WEIGHT
from gateway.search.signals.every import (
    CLAUSE_GAIN,
    MAX_GAINING_CLAUSES,
    SERVER_GROUP_WEIGHTS,
    group_scores,
)

NOT_RANKED = np.float32(-np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each part of the score counts, in deviations; those of the product unless named."""

    words: float = OPTIONS.lexical_weight
    clause_words: float = OPTIONS.lexical_weight
    clause_cosine: float = CLAUSE_COSINE_WEIGHT
    """What the cosine of the best clause adds to that of the whole query, before deviations."""
    servers: tuple[float, ...] = SERVER_GROUP_WEIGHTS
    """What the best tool of its server adds to a tool; see `group_scores`."""
    clause_gain: float = CLAUSE_GAIN
    """Gain of the tool that is nearest to a clause; see `ClauseCoverage`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFigures:
    """What each query of a set reaches, in its order; shares of 1."""

    recalls: tuple[float, ...]
    """Recall@5."""
    ndcgs: tuple[float, ...]
    """NDCG@10."""

    @property
    def recall(self) -> float:
        """The mean recall@5."""
        return float(np.mean(self.recalls))

    @property
    def ndcg(self) -> float:
        """The mean nDCG@10."""
        return float(np.mean(self.ndcgs))


@lru_cache(maxsize=64)
def product_cosines(evidence: Evidence) -> tuple[Matrix, Matrix]:
    """Return the best cosine of each tool over the forms of each query, and over its clauses.

    Returns:
        Shape (q, n); and (l, n) for the l long requests, in their order. Not to be changed.
    """
    whole = _best(evidence.texts @ evidence.tools.T, evidence.text_queries)
    return whole, _best(evidence.clauses @ evidence.tools.T, evidence.clause_queries)


def strengths(evidence: Evidence, clause_weight: float) -> Matrix:
    """Return the cosines, with those of the best clause of long requests, shape (q, n).

    Args:
        evidence: The set.
        clause_weight: What the cosine of the best clause counts.
    """
    whole, clause = product_cosines(evidence)
    near = whole.copy()
    near[np.unique(evidence.clause_queries)] += np.float32(clause_weight) * clause
    return near


def fused(evidence: Evidence, words: Words | None = None, weights: Weights | None = None) -> Matrix:
    """Score the tools as the product does.

    Args:
        evidence: The set.
        words: Other scores by words than the product's.
        weights: Other weights than the product's.

    Returns:
        Shape (q, n); minus infinity for what is not among the nearest `POOL` by vectors.
    """
    words, weights = words or evidence.words, weights or Weights()
    near = strengths(evidence, weights.clause_cosine)
    scores = deviations(near)
    scores += np.float32(weights.words) * deviations(words.scores)
    long = np.unique(evidence.clause_queries)
    scores[long] += np.float32(weights.clause_words) * deviations(words.clauses[long])
    for query in range(len(scores)):
        pool = top(near[query], POOL)
        fused_scores = scores[query, pool]
        clauses = int(evidence.clause_counts[query])
        fused_scores += group_scores(
            evidence.server_ids, pool, fused_scores, clauses, weights.servers
        )
        nearest = _nearest_to_clauses(evidence, query, pool)
        fused_scores[list(dict.fromkeys(nearest))] += np.float32(weights.clause_gain)
        scores[query] = NOT_RANKED
        scores[query, pool] = fused_scores
    return scores


def _nearest_to_clauses(evidence: Evidence, query: int, pool: Numbers) -> list[int]:
    """Return the index in *pool* of the tool nearest to each of the first clauses of *query*."""
    clauses = evidence.clauses[evidence.clause_queries == query][:MAX_GAINING_CLAUSES]
    return [int(row.argmax()) for row in clauses @ evidence.tools[pool].T]


def deviations(scores: Matrix) -> Matrix:
    """Measure each row from its mean in units of its spread; zeros where there is none."""
    spread = scores.std(axis=1, keepdims=True)
    away = scores - scores.mean(axis=1, keepdims=True)
    found: Matrix = np.divide(away, spread, out=np.zeros_like(away), where=spread > 0)
    return found


def rankings(evidence: Evidence, scores: Matrix) -> Iterator[list[str]]:
    """Yield the ids of the first `DEPTH` tools of each query by *scores*, shape (q, n).

    Tools that a query calls by their exact names come first; ties fall by position.
    """
    for row, names in zip(scores, evidence.exact_names, strict=True):
        best = top(row, DEPTH + len(names)).tolist()
        ranked = (at for at in best if row[at] > NOT_RANKED)
        yield [evidence.tool_ids[at] for at in dict.fromkeys((*names, *ranked))][:DEPTH]


def judge(evidence: Evidence, scores: Matrix) -> QueryFigures:
    """Rank by *scores*, shape (q, n), and judge each query."""
    figures = [
        score(ranked, gold)
        for ranked, gold in zip(rankings(evidence, scores), evidence.gold, strict=True)
    ]
    return QueryFigures(
        recalls=tuple(each["recall@5"] for each in figures),
        ndcgs=tuple(each["ndcg@10"] for each in figures),
    )


def _best(scores: Matrix, owners: Numbers) -> Matrix:
    """Return the best of the rows of each owner; *owners* ascend."""
    if not len(owners):
        return scores
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    found: Matrix = np.maximum.reduceat(scores, starts, axis=0)
    return found

"""Text search over a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np

from graphs.graph import GraphIndex
from graphs.lexical.bm25_index import Query
from graphs.lexical.explain import Hits

GROUP_SHARE = 0.15
"""What a document gets of the score of a declared group that it belongs to."""
MAX_GROUPS = 16
_LONG = 8192
_WIDTH = 16
"""More scores than `_LONG` are first looked at as columns of so many."""
DocumentFilter: TypeAlias = np.ndarray | Callable[[str], bool] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopDocuments:
    """The documents that answer best, as columns; see `TextMatch` for the numbers."""

    rows: list[int]
    """Positions in ``index.documents``, best first."""
    scores: list[float]
    coverage: list[float]
    hits: Hits
    """What the words alone match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMatch:
    """A document, and how well it answers."""

    node: str
    """The document's id."""
    score: float
    """BM25F score with the share of its groups, > 0; comparable within one search only."""
    coverage: float
    """Share of the text's words that the document matches, by idf, in [0, 1]."""
    words: tuple[str, ...]
    """The matched words, as the query spells them; empty if only a group matched, or if they
    were not asked for."""


def search_text(
    index: GraphIndex,
    text: str,
    *,
    limit: int,
    allowed: DocumentFilter = None,
    explain: bool = True,
) -> tuple[TextMatch, ...]:
    """Find the documents that answer *text*.

    Args:
        index: The graph.
        text: A question in any language; an empty one finds nothing.
        limit: How many documents at most.
        allowed: Which may be found: a boolean mask over ``index.documents``, or a function that
            is called with the best documents, one by one, until there are enough.
        explain: Whether to return the matched words.

    Returns:
        Best first, equal scores by label and id.
    """
    top = top_documents(index, text, limit=limit, allowed=allowed)
    words: Sequence[tuple[str, ...]] = [()] * len(top.rows)
    if explain:
        words = index.texts.document_matches(top.hits, top.rows).words
    columns = zip(top.rows, top.scores, top.coverage, words, strict=True)
    return tuple(
        TextMatch(node=index.documents[row], score=score, coverage=coverage, words=matched)
        for row, score, coverage, matched in columns
    )


def top_documents(
    index: GraphIndex, query: Query, *, limit: int, allowed: DocumentFilter = None
) -> TopDocuments:
    """Find what `search_text` finds, as columns."""
    hits = index.texts.match(query)
    scores, coverage = _with_groups(index, hits)
    rows = _top_rows(index, scores, limit, allowed)
    return TopDocuments(
        rows=rows, scores=scores[rows].tolist(), coverage=coverage[rows].tolist(), hits=hits
    )


def score_documents(
    index: GraphIndex, query: Query, rows: Sequence[int]
) -> tuple[list[float], list[float]]:
    """Return the scores and the coverage of the documents at *rows*."""
    scores, coverage = _with_groups(index, index.texts.match(query))
    wanted = list(rows)
    return scores[wanted].tolist(), coverage[wanted].tolist()


def _with_groups(index: GraphIndex, hits: Hits) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of documents, with the share of their best groups."""
    count = len(index.documents)
    scores, coverage = hits.scores[:count], hits.coverage[:count]
    groups = _best_groups(hits.scores[count:])
    if not groups:
        return scores, coverage
    bonus = np.zeros_like(scores)
    covered = coverage.copy()
    for group in groups:
        score, share = hits.scores[count + group], hits.coverage[count + group]
        starts = {edge[0] for edge in index.edges_to(index.groups[group], "member")}
        rows = [row for row in map(index.rows.get, starts) if row is not None and row < count]
        bonus[rows] = np.maximum(bonus[rows], score * np.float32(GROUP_SHARE))
        covered[rows] = np.maximum(covered[rows], share * np.float32(GROUP_SHARE))
    return scores + bonus, covered


def _best_groups(scores: np.ndarray) -> list[int]:
    """Return the best groups that answer at all; ties by position."""
    (found,) = scores.nonzero()
    best: list[int] = found[(-scores[found]).argsort(kind="stable")[:MAX_GROUPS]].tolist()
    return best


def _top_rows(
    index: GraphIndex, scores: np.ndarray, limit: int, allowed: DocumentFilter
) -> list[int]:
    if limit < 1:
        return []
    if isinstance(allowed, np.ndarray):
        scores = np.where(allowed, scores, np.float32(0))
    ask = allowed if callable(allowed) else None
    # Everything that ties with the last one stays in: rows stand by label and id.
    least = 0.0 if ask else kth_score(scores, limit)
    (found,) = (scores >= least if least > 0 else scores > 0).nonzero()
    ranked: list[int] = found[(-scores[found]).argsort(kind="stable")].tolist()
    if ask is None:
        return ranked[:limit]
    return list(islice((row for row in ranked if ask(index.documents[row])), limit))


def kth_score(scores: np.ndarray, limit: int) -> float:
    """Return the score of the last of *limit* best; 0 if there are fewer scores."""
    if len(scores) > _LONG:
        # As many columns reach the score of the last, so that nothing below it is among the best.
        columns = scores[: len(scores) // _WIDTH * _WIDTH].reshape(_WIDTH, -1).max(axis=0)
        scores = scores[scores >= kth_score(columns, limit)]
    return float(np.partition(scores, -limit)[-limit]) if len(scores) >= limit else 0.0

"""Focused search: the documents that a text is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from graphs.index import GraphIndex
from graphs.postings import Hits

_CONCEPT_SHARE = 0.15
_CONCEPTS = 16
_NOBODY = np.zeros(0, dtype=np.int64)
Allowed = np.ndarray | Callable[[str], bool] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A document, and how well it answers."""

    node: str
    """The document's id."""
    score: float
    """BM25F score with the share of its groups, > 0; comparable within one search only."""
    coverage: float
    """Share of the text's words that the document matches, by rarity, in [0, 1]."""
    words: tuple[str, ...]
    """The words that it matches, as they were asked; empty if only a group matched, or if nobody
    asked for them."""


def focused(
    index: GraphIndex,
    text: str,
    *,
    limit: int,
    allowed: Allowed = None,
    explain: bool = True,
) -> tuple[Ranked, ...]:
    """Find the documents that answer *text*.

    Args:
        index: The graph.
        text: A question in any language; an empty one finds nothing.
        limit: How many documents at most.
        allowed: Which may be found: a boolean mask over ``index.nodes`` or its documents, or a
            question asked of the best documents, one by one, until there are enough.
        explain: Whether to say which words were met, which costs more than the search itself.

    Returns:
        Best first, equal scores by label and id.
    """
    hits = index.postings.match(text)
    scores, coverage = _with_groups(index, hits)
    if isinstance(allowed, np.ndarray):
        scores = np.where(allowed[: index.document_count], scores, 0.0)
    asked = allowed if callable(allowed) else None

    def met(at: int) -> tuple[str, ...]:
        return tuple(dict.fromkeys(match.word for match in index.postings.explain(hits, at)))

    return tuple(
        Ranked(
            node=index.nodes[at],
            score=float(scores[at]),
            coverage=float(coverage[at]),
            words=met(at) if explain else (),
        )
        for at in _best(index, scores, limit, asked)
    )


def _with_groups(index: GraphIndex, hits: Hits) -> tuple[np.ndarray, np.ndarray]:
    count = index.document_count
    scores, coverage = hits.scores[:count], hits.coverage[:count]
    concepts = hits.scores[count:]
    order = np.argsort(-concepts, kind="stable")[:_CONCEPTS]
    bonus, covered = np.zeros_like(scores), np.zeros_like(coverage)
    for at in (int(at) + count for at in order if concepts[at] > 0):
        members = index.members.get(index.nodes[at], _NOBODY)
        bonus[members] = np.maximum(bonus[members], hits.scores[at] * _CONCEPT_SHARE)
        covered[members] = np.maximum(covered[members], hits.coverage[at] * _CONCEPT_SHARE)
    return scores + bonus, np.maximum(coverage, covered)


def _best(
    index: GraphIndex, scores: np.ndarray, limit: int, asked: Callable[[str], bool] | None
) -> list[int]:
    found = np.flatnonzero(scores > 0)
    if limit < 1 or not found.size:
        return []
    if asked is None and found.size > limit:
        # Everything that ties with the last place stays in, so that labels decide, not chance.
        last = np.partition(scores[found], found.size - limit)[found.size - limit]
        found = found[scores[found] >= last]
    ranked = sorted(found.tolist(), key=lambda at: (-scores[at], index.labels[at], index.nodes[at]))
    if asked is None:
        return ranked[:limit]
    return list(islice((at for at in ranked if asked(index.nodes[at])), limit))

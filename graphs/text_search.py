"""Focused search: the documents that a text is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from graphs.graph import GraphIndex
from graphs.lexical.bm25_index import Question
from graphs.lexical.explain import Hits

_CONCEPT_SHARE = 0.15
_CONCEPTS = 16
_LONG = 8192
_WIDTH = 16
"""More scores than `_LONG` are first looked at as columns of so many."""
Allowed = np.ndarray | Callable[[str], bool] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Best:
    """The documents that answer best, as columns; see `Ranked` for what the numbers mean."""

    places: list[int]
    """Where each stands in ``index.nodes``, best first."""
    scores: list[float]
    coverage: list[float]
    hits: Hits
    """What the words alone met."""


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
        explain: Whether to say which words were met.

    Returns:
        Best first, equal scores by label and id.
    """
    found = best(index, text, limit=limit, allowed=allowed)
    nobody: tuple[str, ...] = ()
    words = (
        index.postings.held(found.hits, found.places).words
        if explain
        else [nobody] * len(found.places)
    )
    return tuple(
        Ranked(node=index.nodes[at], score=score, coverage=coverage, words=met)
        for at, score, coverage, met in zip(
            found.places, found.scores, found.coverage, words, strict=True
        )
    )


def best(index: GraphIndex, query: Question, *, limit: int, allowed: Allowed = None) -> Best:
    """Find what `focused` finds, without making a value of each document.

    Args:
        index: The graph.
        query: A text or its tokens; an empty one finds nothing.
        limit: How many documents at most.
        allowed: As in `focused`.
    """
    hits = index.postings.match(query)
    scores, coverage = _with_groups(index, hits)
    places = _places(index, scores, limit, allowed)
    return Best(
        places=places,
        scores=scores[places].tolist(),
        coverage=coverage[places].tolist(),
        hits=hits,
    )


def among(
    index: GraphIndex, query: Question, places: Sequence[int]
) -> tuple[list[float], list[float]]:
    """Give the scores and the coverage that `best` would give the documents at *places*.

    Only these are looked at, unless the host declares groups, whose share depends on all.
    """
    read = index.postings.read(query)
    if index.postings.size == index.document_count:
        held = index.postings.held(read, places)
        return held.scores, held.coverage
    scores, coverage = _with_groups(index, index.postings.match(read))
    spots = list(places)
    return scores[spots].tolist(), coverage[spots].tolist()


def _with_groups(index: GraphIndex, hits: Hits) -> tuple[np.ndarray, np.ndarray]:
    """Give each document the share of its best groups, which stand behind the documents."""
    count = index.document_count
    scores, coverage = hits.scores[:count], hits.coverage[:count]
    groups = _strongest(hits.scores[count:]) + count
    members = [index.members(at) for at in groups.tolist()]
    if not members:
        return scores, coverage
    sizes = [len(each) for each in members]
    everybody = np.concatenate(members)
    bonus = np.zeros_like(scores)
    np.maximum.at(bonus, everybody, (hits.scores[groups] * _CONCEPT_SHARE).repeat(sizes))
    covered = coverage.copy()
    np.maximum.at(covered, everybody, (hits.coverage[groups] * _CONCEPT_SHARE).repeat(sizes))
    return scores + bonus, covered


def _strongest(concepts: np.ndarray) -> np.ndarray:
    """Give the places of the best concepts that answer at all; ties by place."""
    (found,) = concepts.nonzero()
    if found.size > _CONCEPTS:
        last = np.partition(concepts[found], found.size - _CONCEPTS)[found.size - _CONCEPTS]
        found = found[concepts[found] >= last]
    return found[(-concepts[found]).argsort(kind="stable")[:_CONCEPTS]]


def _places(index: GraphIndex, scores: np.ndarray, limit: int, allowed: Allowed) -> list[int]:
    if limit < 1:
        return []
    if isinstance(allowed, np.ndarray):
        scores = np.where(allowed[: len(scores)], scores, np.float32(0))
    asked = allowed if callable(allowed) else None
    # Everything that ties with the last place stays in, so that labels decide, not chance.
    least = 0.0 if asked else last_place(scores, limit)
    (found,) = (scores >= least if least > 0 else scores > 0).nonzero()
    ranked: list[int] = found[np.lexsort((index.ranks[found], -scores[found]))].tolist()
    if asked is None:
        return ranked[:limit]
    return list(islice((at for at in ranked if asked(index.nodes[at])), limit))


def last_place(scores: np.ndarray, limit: int) -> float:
    """Give the score of the last of *limit* places; 0 if there are fewer scores."""
    if len(scores) > _LONG:
        # As many columns reach their last place, so that nobody below it is among the best.
        columns = scores[: len(scores) // _WIDTH * _WIDTH].reshape(_WIDTH, -1).max(axis=0)
        scores = scores[scores >= last_place(columns, limit)]
    return float(np.partition(scores, -limit)[-limit]) if len(scores) >= limit else 0.0

"""Text search over a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from graphs.graph import GraphIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMatch:
    """A document, and how well it answers."""

    node: str
    """The document's id."""
    score: float
    """BM25F score, > 0; comparable within one search only."""
    coverage: float
    """Share of the text's words that the document matches, by idf, in [0, 1]."""
    words: tuple[str, ...]
    """The matched words, as the query spells them."""


def search_text(
    index: GraphIndex, text: str, *, limit: int, allowed: Callable[[str], bool] | None = None
) -> tuple[TextMatch, ...]:
    """Find the documents that answer *text*.

    Args:
        index: The graph.
        text: A question in any language; an empty one finds nothing.
        limit: How many documents at most.
        allowed: Called with the best documents, one by one, until enough may be found; None
            allows all.

    Returns:
        Best first, equal scores by label and id.
    """
    hits = index.texts.match(text)
    (found,) = hits.scores.nonzero()
    ranked: list[int] = found[(-hits.scores[found]).argsort(kind="stable")].tolist()
    may_be_found = (row for row in ranked if allowed is None or allowed(index.nodes[row]))
    rows = list(islice(may_be_found, max(limit, 0)))
    matches = index.texts.document_matches(hits, rows)
    columns = zip(rows, matches.scores, matches.coverage, matches.words, strict=True)
    return tuple(
        TextMatch(node=index.nodes[row], score=score, coverage=coverage, words=words)
        for row, score, coverage, words in columns
    )

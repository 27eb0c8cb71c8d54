"""One query, ranked, with the evidence for the order and for confidence. Pure.

A *position* is an entity's number in the snapshot; a *rank* counts from the first of a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gateway.runtime.vectors import Vector
from gateway.search.confidence import COEFFICIENTS, Features, estimate, margin
from gateway.search.query import Query
from gateway.search.rank.fusion import RankedList
from gateway.search.retrieve import Candidates, GraphHits, LexicalMatch
from gateway.types import Evidence


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """One query, ranked."""

    query: Query
    ranked: RankedList
    lexical: LexicalMatch
    window: frozenset[int] = frozenset()
    """The positions that supplements may come from."""
    named: frozenset[int] = frozenset()
    """The positions of entities that the query calls by their exact names."""
    candidates: Candidates | None = None
    """The vector candidates; None if words or the graph ranked alone."""
    model: str = ""
    """The id of the model that made the vectors; empty without."""
    graph: GraphHits = field(default_factory=GraphHits)
    """What the graph says of the entities that may be listed."""

    def nearness(self, positions: Sequence[int]) -> Vector:
        """Return how near entities are to the query, by vectors if there are any.

        Returns:
            Strengths, or shares of the query's words; comparable within one search.
        """
        if self.candidates is None:
            return np.asarray(self.lexical.explain(positions).coverage, dtype=np.float32)
        return self.candidates.strengths_at(np.asarray(positions, dtype=np.intp))

    def assess(self, positions: Sequence[int]) -> list[tuple[float, Evidence]]:
        """Return how likely each of *positions* is what was asked for, 0 to 1, and the evidence."""
        words = self.lexical.explain(positions)
        cosines: Sequence[float | None] = [None] * len(positions)
        if self.candidates is not None:
            cosines = self.candidates.cosines(positions)
        rows = zip(positions, cosines, words.coverage, words.words, strict=True)
        return [
            (
                estimate(self.features(position, cosine, coverage), self.model),
                Evidence(
                    vector=cosine,
                    lexical=coverage,
                    graph=self.graph.coverage.get(position),
                    words=matched,
                    exact_name=position in self.named,
                ),
            )
            for position, cosine, coverage, matched in rows
        ]

    def features(self, position: int, cosine: float | None, coverage: float) -> Features:
        """Return what confidence is estimated by.

        Args:
            position: Of the entity.
            cosine: Its best cosine with the query; None without vectors.
            coverage: Share of the query's words that it holds, by rarity.
        """
        agreement = self.graph.coverage.get(position)
        similarity = cosine
        if self.candidates is None:
            # The graph knows words of the entity's groups and documents, too.
            coverage = max(coverage, agreement or 0.0)
        elif cosine is not None and self.model not in COEFFICIENTS:
            scan = self.candidates.scan
            mean, spread = scan.moments.cosine_mean, scan.moments.cosine_spread
            similarity = margin(cosine, mean=mean, spread=spread, count=scan.eligible)
        return Features(
            similarity=similarity,
            coverage=coverage,
            graph=agreement,
            exact_name=position in self.named,
        )

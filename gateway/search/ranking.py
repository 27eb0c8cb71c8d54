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
from gateway.search.retrieve.graph import GraphHits
from gateway.search.retrieve.lexical import LexicalMatch
from gateway.search.retrieve.vectors import Candidates
from gateway.types import Evidence, PathStep
from graphs.lexical.explain import DocumentMatches


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityScores:
    """What one ranking says of some entities, one entry an entity."""

    positions: Sequence[int]
    confidences: list[float]
    """How likely each is what was asked for, 0 to 1."""
    cosines: Sequence[float | None]
    """The best over the query's forms, -1 to 1; None without vectors."""
    words: DocumentMatches
    """The query's words that they hold."""


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

    def assess(self, positions: Sequence[int]) -> EntityScores:
        """Return the evidence for the entities at *positions*, and their confidence."""
        words = self.lexical.explain(positions)
        cosines: Sequence[float | None] = [None] * len(positions)
        if self.candidates is not None:
            cosines = self.candidates.cosines(positions)
        rows = zip(positions, cosines, words.coverage, strict=True)
        return EntityScores(
            positions=positions,
            confidences=[estimate(self.features(*row), self.model) for row in rows],
            cosines=cosines,
            words=words,
        )

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

    def evidence(
        self, scores: EntityScores, index: int, path: tuple[PathStep, ...] = ()
    ) -> Evidence:
        """Return why the entity at *index* was found, by *path* if the graph added it."""
        position = scores.positions[index]
        return Evidence(
            vector=scores.cosines[index],
            lexical=scores.words.coverage[index],
            graph=self.graph.coverage.get(position),
            words=scores.words.words[index],
            path=path,
            exact_name=position in self.named,
        )

"""What is known of one query: its texts, its evidence, its ranking. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gateway.search import confidence
from gateway.search.eligible import Mask
from gateway.search.fusion import Order
from gateway.search.toolgraph import ToolGraph
from gateway.search.vector import Candidates
from gateway.types import Evidence
from gateway.vectors import Matrix, Vector
from graphs import Hits, Postings, Ranked, focused


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One query in all its forms."""

    query: str
    """As the user said it; blank if there is only a context."""
    english: str
    """Its English form, or the query itself."""
    mended: str = ""
    """As it was probably meant to be spelt; blank or the query itself if that is how it is."""
    context: str = ""
    clauses: tuple[str, ...] = ()
    """Parts of a long request."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What vectors and words see: all forms, with the context; the graph's form last."""
        joined = (". ".join(part for part in (form, self.context) if part) for form in self._forms)
        return tuple(dict.fromkeys(joined))

    @property
    def all_texts(self) -> tuple[str, ...]:
        """The texts and the clauses: all that has to be embedded."""
        return (*self.texts, *self.clauses)

    @property
    def graph_text(self) -> str:
        """What the graph sees: the English form, else the mended one, with the context."""
        return self.texts[-1]

    @property
    def judged(self) -> tuple[str, ...]:
        """What confidence is measured on: the query without its context, if there is one."""
        return self._forms if self.query else (self.context,)

    @property
    def _forms(self) -> tuple[str, ...]:
        """The original, the mended and the English form, each once."""
        forms = [self.query, self.mended or self.query]
        if self.english != self.query:
            forms.append(self.english)
        return tuple(dict.fromkeys(forms))

    def rows(self, found: Mapping[str, Vector]) -> tuple[Matrix, Matrix]:
        """Give the vectors of the texts, shape (t, d), and of the clauses, shape (c, d)."""
        texts = np.stack([found[text] for text in self.texts])
        parts = [found[text] for text in self.clauses]
        return texts, np.stack(parts) if parts else texts[:0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """What the catalog's words say of one query, over all its forms."""

    scores: Vector
    """Best BM25F score, shape (n,), >= 0."""
    coverage: Vector
    """Share of the query's words that each entity holds, by rarity, shape (n,), 0 to 1."""
    hits: Hits
    """The look-up of the form that met best: what an explanation quotes."""


def read_words(index: Postings, asked: Asked) -> Words:
    """Look *asked* up in the catalog's words."""
    forms = [index.match(text) for text in asked.judged]
    best = max(forms, key=lambda hits: float(hits.coverage.max(initial=0.0)))
    if asked.context and asked.query:
        forms += [index.match(text) for text in asked.texts]
    scores = np.max([hits.scores for hits in forms], axis=0)
    return Words(scores=scores, coverage=best.coverage, hits=best)


def read_graph(graph: ToolGraph, asked: Asked, mask: Mask, *, limit: int) -> dict[int, Ranked]:
    """Look *asked* up in the graph: the best *limit* eligible entities by position, best first."""
    allowed = graph.allowed(mask)
    hits = focused(graph.index, asked.graph_text, limit=limit, allowed=allowed, explain=False)
    return {graph.positions[hit.node]: hit for hit in hits}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """One query, ranked, with all that speaks for the order."""

    asked: Asked
    order: Order
    window: frozenset[int] = frozenset()
    """Where supplements may come from."""
    named: frozenset[int] = frozenset()
    """Entities that the query calls by name."""
    found: Candidates | None = None
    """What vectors say; None if the graph ranked."""
    words: Words | None = None
    graph: Mapping[int, Ranked] = field(default_factory=dict)
    """What the graph's text search says, by position."""
    agree: bool = True
    """Whether the graph's agreement moves confidence."""
    background: tuple[float, float] | None = None
    """Mean and deviation of the model's cosines between unrelated texts, if known."""

    def confidence(self, position: int) -> float:
        """Judge the entity at *position*."""
        if position in self.named:
            return 1.0
        coverage = float(self.words.coverage[position]) if self.words else 0.0
        hit = self.graph.get(position)
        agreement = (hit.coverage if hit else 0.0) if self.agree else None
        if self.found is None:
            met = max(coverage, hit.coverage if hit else 0.0)
            return confidence.judge(deviations=0.0, coverage=met)
        found = self.found
        deviations = confidence.deviations(
            float(found.cosines[position]),
            background=self.background,
            mean=found.cosine_mean,
            spread=found.cosine_spread,
            count=found.eligible,
        )
        judged = confidence.judge(deviations=deviations, coverage=coverage)
        return confidence.with_graph(judged, agreement)

    def evidence(self, position: int, index: Postings) -> Evidence:
        """Say why the entity at *position* was found."""
        hit = self.graph.get(position)
        met = index.explain(self.words.hits, position) if self.words else ()
        return Evidence(
            vector=None if self.found is None else float(self.found.cosines[position]),
            lexical=float(self.words.coverage[position]) if self.words else None,
            graph=hit.coverage if hit else None,
            words=tuple(dict.fromkeys(each.word for each in met)),
            exact_name=position in self.named,
        )

"""What is known of one query: its texts, its evidence, its ranking. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gateway.embed.yardstick import Yardstick
from gateway.search import confidence
from gateway.search.confidence import Signals
from gateway.search.eligible import Mask
from gateway.search.fusion import Lexical, Order
from gateway.search.names import Names
from gateway.search.scan import Question
from gateway.search.toolgraph import ToolGraph
from gateway.search.vector import Candidates
from gateway.types import Evidence, PathStep
from gateway.vectors import Vector
from graphs import Hits, Postings
from graphs.rank import best
from graphs.text import Token, tokens


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
    taken_apart: dict[str, Sequence[Token]] = field(default_factory=dict, compare=False)
    """The tokens of the texts that were looked up so far."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What vectors and words see: all forms, with the context; the graph's form last."""
        if not self.context:
            return self._forms
        return tuple(f"{form}. {self.context}" if form else self.context for form in self._forms)

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

    def tokens(self, text: str) -> Sequence[Token]:
        """Take one of the texts apart, once for all indexes that it is looked up in."""
        if text not in self.taken_apart:
            self.taken_apart[text] = tokens(text)
        return self.taken_apart[text]

    def question(self, found: Mapping[str, Vector], common: Vector | None = None) -> Question:
        """Give the vectors of the texts and of the clauses; see `Question.common`."""
        texts = np.stack([found[text] for text in self.texts])
        parts = [found[text] for text in self.clauses]
        return Question(texts=texts, clauses=np.stack(parts) if parts else texts[:0], common=common)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """What the catalog's words say of one query, over all its forms."""

    lexical: Lexical
    """What ranks."""
    hits: Hits
    """The look-up of the form that met best: what an explanation quotes."""

    @property
    def coverage(self) -> Vector:
        """Share of the query's words that each entity holds, by rarity, shape (n,), 0 to 1."""
        return self.lexical.coverage


def read_words(index: Postings, names: Names, asked: Asked) -> Words:
    """Look *asked* up in the catalog's words."""
    texts = dict.fromkeys((*asked.judged, *asked.texts))
    forms = {text: index.match(asked.tokens(text)) for text in texts}
    met = max(
        (forms[text] for text in asked.judged),
        key=lambda hits: float(hits.coverage.max(initial=0.0)),
    )
    parts = [index.match(text).scores for text in asked.clauses]
    lexical = Lexical(
        scores=_highest([hits.scores for hits in forms.values()]),
        coverage=met.coverage,
        names=names.stated(met),
        clauses=_highest(parts) if parts else None,
    )
    return Words(lexical=lexical, hits=met)


def _highest(scores: Sequence[Vector]) -> Vector:
    return scores[0] if len(scores) == 1 else np.maximum.reduce(scores)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphHits:
    """What the graph's text search says of one query: by position, best first."""

    scores: Mapping[int, float] = field(default_factory=dict)
    """> 0; comparable within one search only."""
    coverage: Mapping[int, float] = field(default_factory=dict)
    """Share of the query's words that the entity's node holds, by rarity, 0 to 1."""


def read_graph(graph: ToolGraph, asked: Asked, mask: Mask, *, limit: int) -> GraphHits:
    """Look *asked* up in the graph: the best *limit* eligible entities."""
    found = best(
        graph.index,
        asked.tokens(asked.graph_text),
        limit=limit,
        allowed=graph.allowed(mask),
    )
    positions = graph.owners[found.places].tolist()
    return GraphHits(
        scores=dict(zip(positions, found.scores, strict=True)),
        coverage=dict(zip(positions, found.coverage, strict=True)),
    )


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
    words: Words
    graph: GraphHits = field(default_factory=GraphHits)
    eligible: int = 1
    """How many entities may be found, >= 1."""
    agree: bool = True
    """Whether the graph's agreement moves confidence."""
    yardstick: Yardstick | None = None
    """What the model's cosines mean, if known."""

    def confidences(self, spots: Sequence[int]) -> list[float]:
        """Judge the entities at *spots*."""
        covered, cosines = self._covered(spots), self._cosines(spots)
        return [
            1.0 if spot in self.named else self._confidence(spot, coverage, cosine)
            for spot, coverage, cosine in zip(spots, covered, cosines, strict=True)
        ]

    def evidence(
        self, spots: Sequence[int], paths: Iterable[tuple[PathStep, ...]], index: Postings
    ) -> list[Evidence]:
        """Say why the entities at *spots* were found, and by which path each."""
        covered, cosines = self._covered(spots), self._cosines(spots)
        words = index.words(self.words.hits, spots)
        return [
            Evidence(
                vector=cosine,
                lexical=coverage,
                graph=self.graph.coverage.get(spot),
                words=met,
                path=path,
                exact_name=spot in self.named,
            )
            for spot, path, coverage, cosine, met in zip(
                spots, paths, covered, cosines, words, strict=True
            )
        ]

    def _confidence(self, spot: int, coverage: float, cosine: float | None) -> float:
        agreement = self.graph.coverage.get(spot, 0.0)
        found, hits = self.found, self.words.hits
        unmatched = len(hits.unmatched) / max(len(hits.words), 1)
        if found is None or cosine is None:
            signals = Signals(
                coverage=max(coverage, agreement), unmatched=unmatched, eligible=self.eligible
            )
            return confidence.judge(signals)
        standing = confidence.standing(
            cosine, mean=found.cosine_mean, spread=found.cosine_spread, count=found.eligible
        )
        signals = Signals(
            coverage=coverage,
            unmatched=unmatched,
            eligible=self.eligible,
            standing=standing,
            nearness=self.yardstick.nearness(cosine) if self.yardstick else None,
        )
        judged = confidence.judge(signals)
        return confidence.with_graph(judged, agreement if self.agree else None)

    def _covered(self, spots: Sequence[int]) -> list[float]:
        covered: list[float] = self.words.coverage[np.asarray(spots, dtype=np.intp)].tolist()
        return covered

    def _cosines(self, spots: Sequence[int]) -> Sequence[float | None]:
        if self.found is None:
            return [None] * len(spots)
        cosines: list[float] = self.found.cosines_at(np.asarray(spots, dtype=np.intp)).tolist()
        return cosines

"""What speaks for the entities that one query found: words, the graph, a ranking with both. Pure.

* A *spot* is an entity's position in the snapshot; a *place* counts from the first of a list.
* Confidence is judged here, over the numbers of `confidence` and `served`: it needs all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gateway.embed.cohort import Cohort
from gateway.embed.yardstick import Yardstick
from gateway.index.eligibility import Mask
from gateway.index.name_terms import NameTerms
from gateway.runtime.vectors import Matrix, Vector
from gateway.search import confidence, served
from gateway.search.asked import Asked
from gateway.search.confidence import Signals
from gateway.search.dense.home import Homes
from gateway.search.dense.vector import Candidates
from gateway.search.fusion import Lexical, Order, job
from gateway.search.index.toolgraph import ToolGraph
from gateway.search.served import Request
from gateway.types import Evidence, PathStep
from graphs.lexical.bm25_index import Postings
from graphs.lexical.explain import Held, Hits, Reading
from graphs.text_search import among, best


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """How one query reads in the catalog's words, over all its forms."""

    index: Postings
    best: Reading
    """The form of the query that the catalog holds most of. Matches are judged by it, and
    explanations quote it."""

    def held(self, spots: Sequence[int]) -> Held:
        """Say what the entities at *spots* hold of that form."""
        return self.index.held(self.best, spots)


def read_words(index: Postings, asked: Asked) -> Words:
    """Read *asked* in the catalog's words.

    Documents are looked at only where there are several forms to choose from.
    """
    if len(asked.judged) == 1:
        return Words(index=index, best=index.read(asked.tokens(asked.judged[0])))
    forms = [index.match(asked.tokens(text)) for text in asked.judged]
    return Words(index=index, best=max(forms, key=_best_coverage))


def look_up(index: Postings, names: NameTerms, asked: Asked) -> tuple[Lexical, Words]:
    """Look *asked* up in the whole catalog: what words say of every entity, and the best form."""
    texts = dict.fromkeys((*asked.judged, *asked.texts))
    forms = {text: index.match(asked.tokens(text)) for text in texts}
    best_form = max((forms[text] for text in asked.judged), key=_best_coverage)
    clauses = [index.match(text).scores for text in asked.clauses]
    lexical = Lexical(
        scores=_highest([hits.scores for hits in forms.values()]),
        coverage=best_form.coverage,
        names=names.stated(best_form),
        clauses=_highest(clauses) if clauses else None,
    )
    return lexical, Words(index=index, best=best_form)


def _best_coverage(hits: Hits) -> float:
    return float(hits.coverage.max(initial=0.0))


def _highest(scores: Sequence[Vector]) -> Vector:
    return scores[0] if len(scores) == 1 else np.maximum.reduce(scores)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphHits:
    """What the graph's text search says of one query, by position, best first; empty if it was not
    asked or found nothing.
    """

    scores: Mapping[int, float] = field(default_factory=dict)
    """> 0; comparable within one search only."""
    coverage: Mapping[int, float] = field(default_factory=dict)
    """Share of the query's words that the entity's node holds, by rarity, 0 to 1."""


def read_graph(graph: ToolGraph, asked: Asked, mask: Mask, *, limit: int) -> GraphHits:
    """Look *asked* up in the graph; give the best *limit* of the eligible entities."""
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


def ask_graph(graph: ToolGraph, asked: Asked, spots: Sequence[int]) -> GraphHits:
    """Ask the graph's text search about the entities at *spots* alone; some may have no node."""
    index = graph.index
    owners = zip(graph.places[spots].tolist(), spots, strict=True)
    known = {node: spot for node, spot in owners if node >= 0}
    nodes = list(known)
    scores, coverage = among(index, asked.tokens(asked.graph_text), nodes)
    rows = zip(scores, index.ranks[nodes].tolist(), known.values(), coverage, strict=True)
    found = sorted((-score, rank, spot, share) for score, rank, spot, share in rows if score > 0)
    return GraphHits(
        scores={spot: -score for score, _, spot, _ in found},
        coverage={spot: share for _, _, spot, share in found},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one ranking says of some entities, one entry an entity."""

    spots: Sequence[int]
    """Their positions: those that were asked for, then the first of the ranking besides."""
    confidences: list[float]
    """How likely each is what was asked for, 0 to 1."""
    cosines: Sequence[float | None]
    """The best over the query's forms, -1 to 1; None without vectors."""
    held: Held
    """What they hold of the query's words."""
    request: Request | None = None
    """The signals by which it was judged whether the catalog serves the request at all; None
    without vectors, or where too little is known of the model."""


class _First(NamedTuple):
    """The first matches of a ranking, at most `served.FIRST`."""

    rows: Matrix
    """Their unit vectors, shape (f, d)."""
    common: float
    """The most that a cosine of the query with them can be, > 0 to 1; see `Yardstick.common`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """One query, ranked, with all the evidence for the order."""

    asked: Asked
    order: Order
    window: frozenset[int] = frozenset()
    """The positions that supplements may come from."""
    named: frozenset[int] = frozenset()
    """The positions of entities that the query calls by their exact names."""
    found: Candidates | None = None
    """What vectors say; None if words or the graph ranked alone."""
    words: Words
    graph: GraphHits = field(default_factory=GraphHits)
    """What the graph's text search says of those who may be listed."""
    homes: Homes = field(default_factory=Homes)
    """The servers, to judge the request against that of its first match."""
    eligible: int = 1
    """How many entities may be found, >= 1."""
    agree: bool = True
    """Whether the graph's agreement moves confidence."""
    yardstick: Yardstick | None = None
    """What the model's cosines mean, if known."""
    cohort: Cohort | None = None
    """Tools that are in no catalog, as the model embeds them, if known."""

    def nearness(self, spots: Sequence[int]) -> Vector:
        """Say how near the entities at *spots* are to the query, by vectors if there are any.

        Returns:
            Strengths, or shares of the query's words; comparable within one search.
        """
        if self.found is None:
            return np.asarray(self.words.held(spots).coverage, dtype=np.float32)
        return self.found.strengths_at(np.asarray(spots, dtype=np.intp))

    def told(self, spots: Sequence[int]) -> Told:
        """Judge the entities at *spots*, once for all that is said of them.

        The first of the ranking are judged too, behind them: whether the request is served at all
        is told by the best of those.
        """
        spots = [*spots, *(spot for spot in self._head if spot not in spots)]
        held = self.words.held(spots)
        request: Request | None = None
        cosines: Sequence[float | None]
        if self.found is None:
            cosines, judged = [None] * len(spots), self._by_words(spots, held)
        else:
            cosines = self.found.cosines(spots)
            judged, request = self._by_vectors(self.found, spots, held, cosines)
        if self.named:
            pairs = zip(spots, judged, strict=True)
            judged = [1.0 if spot in self.named else each for spot, each in pairs]
        return Told(spots=spots, confidences=judged, cosines=cosines, held=held, request=request)

    def evidence(self, told: Told, place: int, path: tuple[PathStep, ...] = ()) -> Evidence:
        """Say why the entity at *place* in *told* was found, by *path* if the graph added it."""
        spot = told.spots[place]
        return Evidence(
            vector=told.cosines[place],
            lexical=told.held.coverage[place],
            graph=self.graph.coverage.get(spot),
            words=told.held.words[place],
            path=path,
            exact_name=spot in self.named,
        )

    @property
    def _unmatched(self) -> float:
        """The share of the query's words that nobody holds, 0 to 1."""
        read = self.words.best
        return len(read.unmatched) / max(len(read.words), 1)

    def _by_words(self, spots: Sequence[int], held: Held) -> list[float]:
        met = self.graph.coverage
        pairs = zip(spots, held.coverage, strict=True)
        coverages = [max(coverage, met.get(spot, 0.0)) for spot, coverage in pairs]
        query = Signals(coverage=0.0, unmatched=self._unmatched, eligible=self.eligible)
        odds = confidence.weigh_each(query, coverages, [0.0] * len(coverages))
        return [confidence.share(each) for each in odds]

    def _by_vectors(
        self, found: Candidates, spots: Sequence[int], held: Held, cosines: Sequence[float]
    ) -> tuple[list[float], Request | None]:
        # What all of them have in common is read once, not for each.
        yardstick = self.yardstick
        query = Signals(
            coverage=0.0,
            unmatched=self._unmatched,
            eligible=self.eligible,
            standing=0.0,
            nearness=None if yardstick is None else 0.0,
            unread=0.0 if yardstick is None else yardstick.unread(self.asked.judged[0]),
        )
        first = self._first(found)
        near = self._near(found, cosines, first.common)
        odds = confidence.weigh_each(query, held.coverage, near)
        request = None
        if self.cohort is not None and yardstick is not None and spots:
            head = {spots.index(spot) for spot in self._head}
            best = max(head, key=odds.__getitem__)
            most = max(held.coverage[place] for place in head)
            coverages = held.coverage[best], most
            request = self._request(found, coverages, query.unread, yardstick, self.cohort, first)
            # The best of the first gets the odds of the request; the others keep their distance.
            shift = served.packaged().logit(request) - odds[best]
            if job(self.asked.parts):
                # A job looks like nothing that one tool is made for, and is served by its parts.
                shift = max(shift, 0.0)
            odds = [shift + each for each in odds]
        judged = [confidence.share(each) for each in odds]
        met = self.graph.coverage
        if self.agree and met:
            for place, spot in enumerate(spots):
                if (agreement := met.get(spot)) is not None:
                    judged[place] = confidence.with_graph(judged[place], agreement)
        return judged, request

    def _first(self, found: Candidates) -> _First:
        rows = found.index.rows(self.order.positions[: served.FIRST])
        scale = self.yardstick
        return _First(rows, 1.0 if scale is None else scale.common(found.question.texts, rows))

    def _near(self, found: Candidates, cosines: Sequence[float], common: float) -> Sequence[float]:
        """Place *cosines* on the model's scale, or among the catalog's where that is not known.

        See `confidence.Signals` for both: ``nearness`` and ``standing``.
        """
        if self.yardstick is None:
            seen = found.scanned
            mean, spread = seen.moments.cosine_mean, seen.moments.cosine_spread
            return confidence.standings(cosines, mean=mean, spread=spread, count=seen.eligible)
        return [self.yardstick.nearness(cosine / common) for cosine in cosines]

    def _request(
        self,
        found: Candidates,
        coverages: tuple[float, float],
        unread: float,
        yardstick: Yardstick,
        cohort: Cohort,
        first: _First,
    ) -> Request:
        """Give the signals that tell whether the catalog serves the request.

        Args:
            found: What vectors say.
            coverages: Of the best of the first matches, and the highest among the first.
            unread: How much of the query the model cannot read, 0 to 1.
            yardstick: What the model's cosines mean.
            cohort: Tools that are in no catalog.
            first: The first matches.
        """
        texts, words = found.question.texts, self.words
        step = yardstick.matches - yardstick.strangers
        ours, theirs = first.common, yardstick.common(texts)
        strangers = cohort.cosines(texts) / theirs
        own = self.homes.own(found, self._head[0])
        ground = self.homes.ground(found, own)
        unknown, rarest = words.index.scarcity(words.best, own)
        cosines = found.scanned.cosines
        far, near = float(_best(cosines, served.FURTHER)[0]), float(np.maximum.reduce(cosines))
        return Request(
            coverage=coverages[0],
            unread=unread,
            strangers=yardstick.nearness(_mean(_best(strangers, served.NEAREST))),
            cohort=yardstick.nearness(_mean(strangers)),
            words=served.words(len(words.best.words)),
            parts=math.log1p(self.asked.parts),
            ahead=(near - far) / step / ours,
            mean=yardstick.nearness(ground.mean / ours),
            spread=ground.spread / step / ours,
            alike=cohort.alike(texts, first.rows),
            most=coverages[1],
            unknown=unknown,
            rarest=rarest,
        )

    @property
    def _head(self) -> list[int]:
        """The positions of the first matches, at most `served.FIRST`."""
        head: list[int] = self.order.positions[: served.FIRST].tolist()
        return head


def _best(values: Vector, count: int) -> Vector:
    """Give the *count* highest of *values*, or all if there are fewer; the lowest of them first."""
    place = max(len(values) - count, 0)
    parted = values.copy()
    parted.partition(place)
    return parted[place:]


def _mean(values: Vector) -> float:
    # As `numpy.mean`, without the layers of Python around it.
    return float(np.add.reduce(values)) / len(values)

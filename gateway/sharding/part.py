"""One part of a catalog: what it has for the queries of a coordinator. Pure.

It counts and scores by the same functions as a search in one process; nothing is ranked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count

import numpy as np

from gateway.index.eligibility import Mask, Positions
from gateway.index.snapshot import Snapshot
from gateway.index.vectors import CatalogVectors, VectorIndex
from gateway.runtime.vectors import Vector, top
from gateway.search import retrieve
from gateway.search.expand.supplements import Gatherer, Supplements
from gateway.search.query import Query
from gateway.search.rank.fusion import Pool, PoolMoments, RankedList, pool_moments, pool_of
from gateway.search.rank.parameters import RELATED_COVERAGE
from gateway.search.results import (
    Ranking,
    suspicions,
    to_match,
    unmatched_terms,
    visible_build_notes,
)
from gateway.sharding.values import (
    Details,
    DetailsAnswer,
    DetailsRequest,
    Overview,
    OverviewRequest,
    PartChangedError,
    QueryChoice,
    Survey,
    SurveyAnswer,
    SurveyRequest,
)
from gateway.spelling.word_lists import CatalogWords
from gateway.types.caller import all_seen_by
from gateway.usage.transitions import LearnedSteps
from graphs.lexical.query import AnalyzedQuery, Hits

MAX_SEARCHES = 64
"""So many searches wait for their details; the oldest then begins anew."""
MAX_SERVERS = 50
_NOWHERE, _NONE = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.float32)
_UNRANKED = RankedList(positions=_NOWHERE, scores=_NONE)


@dataclass(frozen=True, slots=True, eq=False)
class _Surveyed:
    """One query between its survey and its details."""

    query: Query
    candidates: retrieve.Candidates | None
    """Without the scores of all entities, which are large; None where the graph ranks."""
    readings: Sequence[AnalyzedQuery]
    """By form; empty for a query of one form that words do not rank."""
    graph: Mapping[int, tuple[float, float]]
    """What the graph's words say of candidates: the score, > 0, and the share of the words."""
    named: frozenset[int]


@dataclass(frozen=True, kw_only=True, eq=False)
class CatalogPart:
    """A part of a catalog. Not for two threads at once."""

    snapshot: Snapshot
    """Compiled with the statistics of the whole."""
    key: str
    """The name of these."""
    _searches: dict[str, tuple[Mask, list[_Surveyed]]] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)

    @cached_property
    def _labels(self) -> list[str]:
        entities = self.snapshot.entities
        return [f"{each.exposed_name.casefold()}\t{each.id}\t{each.kind}" for each in entities]

    def overview(self, request: OverviewRequest) -> Overview:
        """Return what the filters of *request* leave."""
        snapshot, filters = self.snapshot, request.filters
        mask = snapshot.mask(filters)
        vectors, words = snapshot.vectors, CatalogWords(postings=snapshot.lexical)
        present = mask if vectors is None or vectors.present is None else mask & vectors.present
        first = [snapshot.entities[at] for at in np.flatnonzero(mask)[: request.first].tolist()]
        notes = dict.fromkeys(note for each in first for note in each.definition.diagnostics)
        return Overview(
            size=len(mask),
            eligible=int(np.count_nonzero(mask)),
            visible=int(np.count_nonzero(snapshot.mask(all_seen_by(filters)))),
            embedded=0 if vectors is None else int(np.count_nonzero(present)),
            dimensions=snapshot.dimensions,
            has_graph=snapshot.graph is not None,
            tags=snapshot.eligibility.tags(mask),
            servers=tuple(sorted(snapshot.eligibility.servers(mask))[:MAX_SERVERS]),
            words=tuple(word for word in request.words if words.occurs(word, mask)),
            first=tuple(to_match(entity, score=0.0) for entity in first),
            notes=(*visible_build_notes(snapshot, filters, mask), *notes),
        )

    def survey(self, request: SurveyRequest) -> SurveyAnswer:
        """Return the candidates for each query of *request*."""
        mask = self.snapshot.mask(request.filters)
        found = [self._survey(each, mask, request) for each in request.queries]
        while len(self._searches) >= MAX_SEARCHES:
            del self._searches[next(iter(self._searches))]
        search = str(next(self._numbers))
        self._searches[search] = mask, [surveyed for surveyed, _ in found]
        return SurveyAnswer(search=search, surveys=tuple(survey for _, survey in found))

    def _survey(self, query: Query, mask: Mask, request: SurveyRequest) -> tuple[_Surveyed, Survey]:
        snapshot, index = self.snapshot, self.snapshot.lexical
        candidates = lexical = None
        forms: Sequence[Hits] = ()
        moments = PoolMoments(size=len(mask))
        if query.is_embedded and request.by_words:
            lexical = retrieve.score_lexical(index, query)
            forms = lexical.forms
        elif len(query.confidence_texts) > 1:
            forms = retrieve.match_forms(index, query)
        hits = self._graph_hits(query, forms)
        if not query.is_embedded:
            pool = _best_hits(hits, mask, request.count)
        else:
            candidates = retrieve.find_candidates(
                self._vectors(query), query.vectors, mask=mask, count=request.count
            )
            pool = _without_words(candidates.pool, candidates.strengths)
            moments = replace(moments, vectors=candidates.scan.moments)
            if lexical is not None:
                pool = pool_of(candidates, lexical, snapshot.server_ids)
                moments = pool_moments(candidates, lexical, mask)
            # The scores of all entities are large, and not needed any more.
            candidates = replace(candidates, scan=replace(candidates.scan, dense=None))
        named = [self._named(name, mask) for name in retrieve.names_in(query.text)]
        called = frozenset(at for _, positions in named for at in positions)
        survey = Survey(
            eligible=int(np.count_nonzero(mask)),
            pool=pool,
            moments=moments,
            coverages=tuple(map(retrieve.max_coverage, forms)) if len(forms) > 1 else (),
            named=tuple(named),
            labels={at: self._labels[at] for at in chain(pool.positions.tolist(), called)},
        )
        readings = [AnalyzedQuery(terms=form.terms) for form in forms]
        graph = _hits_at(hits, pool.positions)
        return _Surveyed(query, candidates, readings, graph, called), survey

    def _vectors(self, query: Query) -> CatalogVectors:
        if self.snapshot.vectors is not None:
            return self.snapshot.vectors
        size = len(self.snapshot.entities)
        rows = np.zeros((size, query.vectors.texts.shape[1]), dtype=np.float32)
        return VectorIndex(matrix=rows, present=np.zeros(size, dtype=np.bool_))

    def _graph_hits(self, query: Query, forms: Sequence[Hits]) -> Hits | None:
        """Return what the graph's words say; *forms* is what the index of words says."""
        graph = self.snapshot.graph
        if graph is None:
            return None
        is_same = graph.index.texts is self.snapshot.lexical
        if forms and is_same and query.graph_text == query.confidence_texts[-1]:
            return forms[-1]
        return retrieve.score_graph(graph, query)

    def _named(self, name: str, mask: Mask) -> tuple[bool, tuple[int, ...]]:
        is_id = name in self.snapshot.eligibility.by_id
        return is_id, tuple(at for at in self.snapshot.named(name) if mask[at])

    def details(self, request: DetailsRequest) -> DetailsAnswer:
        """Return what is shown of the entities of *request*, and the neighbours of its matches."""
        if request.search not in self._searches:
            raise PartChangedError("the search is not remembered")
        mask, searches = self._searches[request.search]
        rankings = [
            self._ranking(surveyed, choice, request.model)
            for surveyed, choice in zip(searches, request.queries, strict=True)
        ]
        # What is not near to the best of this part is not near to the best of all.
        shares = (share for ranking in rankings for share in ranking.graph.values())
        floor = RELATED_COVERAGE * max(shares, default=0.0)
        near = [
            tuple(
                (at, each.graph[at][0], share)
                for at, share in ranking.graph.items()
                if share >= floor
            )
            for each, ranking in zip(searches, rankings, strict=True)
        ]
        added = self._supplements(request, mask, rankings)
        lists = added.prerequisites, added.related, added.next_steps
        window, index = set(request.window.tolist()), self.snapshot.lexical
        wanted = [
            *request.wanted.tolist(),
            *(each.position for found in lists for each in found),
            *(at for found in near for at, _, _ in found if at in window),
        ]
        return DetailsAnswer(
            details=self._details(list(dict.fromkeys(wanted)), rankings),
            hits=tuple(near),
            prerequisites=tuple(added.prerequisites),
            related=tuple(added.related),
            next_steps=tuple(added.next_steps),
            unmatched=tuple(unmatched_terms(index, [each.reading], mask) for each in rankings),
            visited=added.visited,
        )

    def _ranking(self, surveyed: _Surveyed, choice: QueryChoice, model: str) -> Ranking:
        """Return the evidence for one query, with what the whole catalog says of it."""
        candidates, index, held = surveyed.candidates, self.snapshot.lexical, surveyed.graph
        if candidates is not None:
            scan = replace(candidates.scan, moments=choice.moments, eligible=choice.eligible)
            candidates = replace(candidates, scan=scan)
        if surveyed.readings:
            reading = surveyed.readings[choice.form]
        else:
            reading = retrieve.read_words(index, surveyed.query)
        return Ranking(
            query=surveyed.query,
            ranked=_UNRANKED,
            lexical=index,
            reading=reading,
            eligible=choice.eligible,
            named=surveyed.named,
            candidates=candidates,
            model=model,
            graph={at: held[at][1] for at in choice.listed.tolist() if at in held},
        )

    def _details(
        self, positions: Sequence[int], rankings: Sequence[Ranking]
    ) -> tuple[Details, ...]:
        assessed = zip(*(ranking.assess(positions) for ranking in rankings), strict=True)
        found = []
        for position, scores in zip(positions, assessed, strict=True):
            entity = self.snapshot.entities[position]
            details = Details(
                position=position,
                match=to_match(entity, score=0.0),
                node=self._node(position),
                trusted=entity.trusted,
                generation=entity.generation,
                assessed=scores,
                notes=suspicions(self.snapshot, [position]),
            )
            found.append(details)
        return tuple(found)

    def _node(self, position: int) -> tuple[str, str]:
        graph = self.snapshot.graph
        if graph is None:
            return "", ""
        node = graph.nodes[position]
        return graph.index.label(node), node

    def _supplements(
        self, request: DetailsRequest, mask: Mask, rankings: Sequence[Ranking]
    ) -> Supplements:
        graph = self.snapshot.graph
        if graph is None or not len(request.matches):
            return Supplements()
        gatherer = Gatherer(
            graph,
            request.matches.tolist(),
            window=request.window.tolist(),
            mask=mask,
            options=request.options,
            nearness=lambda at: np.max([ranking.nearness(at) for ranking in rankings], axis=0),
            is_semantic=any(ranking.candidates is not None for ranking in rankings),
            leads=request.leads,
        )
        return gatherer.gather((), LearnedSteps())


def _without_words(positions: Positions, strengths: Vector) -> Pool:
    """Return candidates that words do not rank."""
    none = np.zeros_like(positions)
    return Pool(
        positions=positions,
        strengths=strengths,
        words=np.zeros_like(strengths),
        groups=none,
        group_sizes=none,
    )


def _best_hits(hits: Hits | None, mask: Mask, count: int) -> Pool:
    """Return the candidates where the graph's words rank."""
    if hits is None:
        return _without_words(_NOWHERE, _NONE)
    scores = np.where(mask, hits.scores, np.float32(0))
    best = top(scores, count)
    best = best[scores[best] > 0]
    return _without_words(best, scores[best])


def _hits_at(hits: Hits | None, positions: Positions) -> dict[int, tuple[float, float]]:
    if hits is None:
        return {}
    found = positions[hits.scores[positions] > 0]
    values = zip(hits.scores[found].tolist(), hits.coverage[found].tolist(), strict=True)
    return dict(zip(found.tolist(), values, strict=True))

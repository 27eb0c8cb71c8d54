"""The search, from query to result. Read this file first.

    eligible -> normalize, correct -> embed -> vector rank -> words re-score -> graph -> result

* This file awaits the stages and chooses between them. Other modules compute the numbers.
* A failing optional stage leaves a `Diagnostic`, and the search continues without its output.
* Vectors choose the candidates. Words re-score them. The graph adds entities, but never reorders.
* Without usable vectors, the graph ranks this one search.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from gateway.embed.cache import Embed
from gateway.errors import Failed, attempt_call
from gateway.index.candidates import Candidates, CatalogVectors
from gateway.index.snapshot import Snapshot
from gateway.index.tool_graph import ToolGraph
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector, top
from gateway.search import retrieve
from gateway.search.expand.supplements import Gatherer, Supplements
from gateway.search.explanation import evidence_ranks, filtered_entities
from gateway.search.learned import NO_SIGNALS, UsageSignals
from gateway.search.query import Correct, Query, split_steps
from gateway.search.rank import policies
from gateway.search.rank.copies import move_copies
from gateway.search.rank.display import Chosen, best_of_each, choose
from gateway.search.rank.fusion import RankedList, fuse, pin_exact_names, rerank_by_usage
from gateway.search.request import extract_tags
from gateway.search.results import Ranking, browse, build_result, judge, visible_build_notes
from gateway.search.signals.every import all_signals
from gateway.search.signals.signal import Pool, Signal
from gateway.search.state import SearchState, request_vectors, with_vectors
from gateway.types import Code, Diagnostic, RankingMode, SearchRequest, SearchResult, Strategy
from gateway.types.caller import all_seen_by
from graphs.lexical.query import AnalyzedQuery, Hits

Rewrite = Callable[[str], Awaitable[tuple[str, ...]]]
"""Returns the English form of a query: one text, or one for each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search with its stages. Optional stages are None."""

    options: SearchOptions
    strategy: Strategy
    embed: Embed | None = None
    normalize: Rewrite | None = None
    correct: Correct | None = None
    model: str = ""
    is_preparing: Callable[[], bool] = lambda: False
    """Returns True while the embedder's model is prepared. Searches then do not use vectors."""
    signals: Sequence[Signal] = field(default_factory=lambda: all_signals(SearchOptions()))
    """Signals whose weighted sum is the score in the strategy `auto`."""
    rankings: Mapping[str, policies.CatalogRanking] = field(
        default_factory=lambda: policies.OWN_RANKINGS
    )

    async def __call__(
        self,
        snapshot: Snapshot,
        request: SearchRequest,
        diagnostics: Sequence[Diagnostic] = (),
        *,
        usage: UsageSignals = NO_SIGNALS,
    ) -> SearchResult:
        """Search for *request*, which was checked by `gateway.search.request`.

        *diagnostics* are from before the search, and come first in the result. *usage* was learned
        from past calls.

        Returns:
            A result in every case. Its mode is ``empty`` without a catalog, and ``browse`` without
            query and context. Its diagnostics name each missing or failed stage.
        """
        request, tag_notes = extract_tags(snapshot, request)
        mask = snapshot.mask(request.filters)
        notes = visible_build_notes(snapshot, request.filters, mask)
        state = SearchState(
            options=self.options,
            snapshot=snapshot,
            request=request,
            mask=mask,
            diagnostics=[*diagnostics, *tag_notes, *notes],
            usage=usage,
        )
        if not mask.any() and not snapshot.mask(all_seen_by(request.filters)).any():
            return state.result("empty")
        if not request.queries and not request.context:
            return browse(state)
        queries = await self._prepare(state, request.queries or ("",))
        queries = await self._embed(state, queries)
        if result := await self._answer_by_vectors(state, queries):
            return result
        if snapshot.graph is None and request.ranking == "strategy":
            state.add_diagnostic("graph", "graph_unavailable")
            return state.result("graph")
        return self._answer(state, [query.without_vectors() for query in queries])

    async def _answer_by_vectors(
        self, state: SearchState, queries: Sequence[Query]
    ) -> SearchResult | None:
        """Answer by vectors. None if no query has any, or the catalog's vectors cannot be read."""
        if state.snapshot.graph is None and state.request.ranking == "strategy":
            queries = [query for query in queries if query.is_embedded]
        if not any(query.is_embedded for query in queries):
            return None
        # An attempt that times out may still be running in its thread, so it gets a copy of the
        # state.
        work = partial(self._answer, state.copy(), queries)
        result = await with_vectors(state.snapshot.vectors, work, self.options.query_timeout_s)
        if not isinstance(result, Failed):
            return result
        state.record_time("vector")
        state.add_diagnostic("vector", "vectors_unavailable", result.reason)
        _note_fallback(state)
        return None

    def _answer(self, state: SearchState, queries: Sequence[Query]) -> SearchResult:
        mode: RankingMode = "graph" if state.request.ranking == "strategy" else "lexical"
        if any(query.is_embedded for query in queries):
            mode = "vector" if self._ranks_by_vectors_alone(state.request) else "hybrid"
        return self._finish(state, [self._rank(state, query) for query in queries], mode)

    async def _prepare(self, state: SearchState, texts: Sequence[str]) -> list[Query]:
        """Return a query with all its forms for each text. Only a single one gets clauses."""
        rewritten: Sequence[tuple[str, ...] | None] = [(text,) for text in texts]
        if self.normalize is not None and state.request.queries:
            works = [self.normalize(text) for text in texts]
            code: Code = "query_normalization_failed"
            rewritten = await state.attempt_stage("normalize", code, works)
        queries = []
        for text, lines in zip(texts, rewritten, strict=True):
            if lines not in {None, (text,)}:
                state.add_diagnostic("normalize", "query_normalized")
            corrected, context = self._correct(state, text), state.request.context
            english, *steps = lines or (text,)
            query = Query(text=text, corrected=corrected, english=english, context=context)
            queries.append(query.compare_words())
            if len(texts) == 1 and self._may_split(state.request):
                queries += split_steps(queries.pop(), [english, *steps]) if steps else ()
        return [query.split() for query in queries] if len(queries) == 1 else queries

    def _may_split(self, request: SearchRequest) -> bool:
        """Return whether the steps of a query may be ranked apart."""
        return request.ranking == "strategy" and not request.display_limit

    def _correct(self, state: SearchState, text: str) -> str:
        if self.correct is None or not text:
            return text
        mask = None if state.mask.all() else state.mask
        correction = attempt_call(partial(self.correct, state.snapshot.lexical, text, mask))
        state.record_time("spelling")
        if isinstance(correction, Failed):
            detail = f"the spelling of the query was not corrected: {correction.reason}"
            state.add_diagnostic("spelling", "plugin_failed", detail)
            return text
        if correction.changed:
            state.add_diagnostic("spelling", "query_mended", correction.summary)
        return correction.text

    async def _embed(self, state: SearchState, queries: Sequence[Query]) -> list[Query]:
        ranking, snapshot = state.request.ranking, state.snapshot
        is_strategy = ranking == "strategy"
        if self.strategy == "graph" if is_strategy else not self.rankings[ranking].uses_vectors:
            return list(queries)
        rows: dict[str, Vector] = {}
        if self.embed is None:
            state.add_diagnostic("embed", "embedder_missing", "pass one: Gateway(embedder=…)")
        elif self.is_preparing():
            state.add_diagnostic("embed", "model_preparing")
        elif snapshot.ranks_by_vectors(state.mask):
            rows = await request_vectors(state, self.embed, queries)
        embedded = [
            query.with_vectors(rows) if rows.keys() >= set(query.texts_to_embed) else query
            for query in queries
        ]
        if not all(query.is_embedded for query in embedded):
            _note_fallback(state)
        return embedded

    def _rank(self, state: SearchState, query: Query) -> Ranking:
        if state.snapshot.vectors is not None and query.is_embedded:
            return self._rank_by_vectors(state, state.snapshot.vectors, query)
        if state.request.ranking == "strategy" and state.snapshot.graph is not None:
            return self._rank_by_graph(state, state.snapshot.graph, query)
        return self._rank_by_policy(state, query)

    def _rank_by_vectors(
        self, state: SearchState, vectors: CatalogVectors, query: Query
    ) -> Ranking:
        snapshot, request = state.snapshot, state.request
        if query.contradicts:
            query = retrieve.compare_vectors(vectors, snapshot.lexical, query, mask=state.mask)
        count = self.options.pool(request.limit)
        candidates = vectors.search(query.vectors, mask=state.mask, count=count)
        state.record_time("vector")
        if request.ranking != "strategy":
            return self._rank_by_policy(state, query, candidates)
        if self._ranks_by_vectors_alone(request):
            ranked = RankedList(positions=candidates.pool, scores=candidates.strengths)
            reading = retrieve.read_words(snapshot.lexical, query)
            return self._make_ranking(state, query, ranked, reading, candidates=candidates)
        hits = retrieve.score_lexical(snapshot.lexical, query)
        pool = Pool(snapshot, query, candidates, mask=state.mask, words=hits)
        ranked, terms = fuse(pool, self.signals)
        for name in (signal.name for signal in self.signals if signal.name not in terms):
            state.add_diagnostic("vector", "plugin_failed", f"the signal {name!r} is left out")
        ranking = self._make_ranking(state, query, ranked, hits, candidates=candidates)
        return replace(ranking, terms=terms)

    def _rank_by_policy(
        self, state: SearchState, query: Query, candidates: Candidates | None = None
    ) -> Ranking:
        request, snapshot = state.request, state.snapshot
        policy = self.rankings[request.ranking]
        lexical = retrieve.score_lexical(snapshot.lexical, query)
        any_tool = replace(request.filters, kinds=frozenset({"tool"}), tags=frozenset())
        evidence = policies.PolicyEvidence(
            snapshot=snapshot,
            lexical=lexical,
            candidates=candidates,
            mask=state.mask,
            tools=snapshot.mask(any_tool),
            count=self.options.pool(request.limit),
        )
        ranked, failure = policies.rank_catalog(policy, evidence)
        if failure is not None:
            detail = (
                f"the ranking {request.ranking!r} failed, so only words ranked: {failure.reason}"
            )
            state.add_diagnostic("lexical", "plugin_failed", detail)
        ranking = self._make_ranking(state, query, ranked, lexical, candidates=candidates)
        if not request.explain or failure is not None:
            return ranking
        return replace(ranking, scoring=policies.explain_ranking(policy, evidence, ranked))

    def _rank_by_graph(self, state: SearchState, graph: ToolGraph, query: Query) -> Ranking:
        hits = retrieve.score_graph(graph, query)
        scores = np.where(state.mask, hits.scores, np.float32(0))
        best = top(scores, self.options.pool(state.request.limit))
        best = best[scores[best] > 0]
        state.record_time("graph")
        ranked = RankedList(positions=best, scores=scores[best])
        reading = retrieve.read_words(state.snapshot.lexical, query)
        return self._make_ranking(state, query, ranked, reading, hits=hits)

    def _make_ranking(
        self,
        state: SearchState,
        query: Query,
        ranked: RankedList,
        reading: AnalyzedQuery,
        *,
        candidates: Candidates | None = None,
        hits: Hits | None = None,
    ) -> Ranking:
        snapshot, request, graph = state.snapshot, state.request, state.snapshot.graph
        scores: dict[str, Vector] = {}
        named = retrieve.find_named(snapshot, query.text, state.mask)
        state.record_time("lexical")
        window = retrieve.supplement_window(state, ranked, candidates)
        listed = ranked.positions
        if hits is None and graph is not None:
            hits = retrieve.score_graph(graph, query)
            head = listed[: self.options.window(request.limit)].tolist()
            listed = np.array(sorted(window.union(head)), dtype=np.intp)
            state.record_time("graph")
        if request.explain:
            scores = {"lexical": retrieve.score_lexical(snapshot.lexical, query).scores}
            scores |= {} if hits is None else {"graph": hits.scores}
        if not self._is_exact(request):
            pinned = pin_exact_names(ranked, named)
            ranked = move_copies(pinned, query.text, named, snapshot.entities)
        return Ranking(
            query=query,
            ranked=ranked,
            lexical=snapshot.lexical,
            reading=reading,
            eligible=int(state.mask.sum()),
            window=window,
            named=frozenset(named),
            candidates=candidates,
            model=self.model,
            graph={} if hits is None else retrieve.graph_coverage(hits, listed),
            scores=scores,
        )

    def _is_exact(self, request: SearchRequest) -> bool:
        return request.ranking != "strategy" and self.rankings[request.ranking].is_exact

    def _ranks_by_vectors_alone(self, request: SearchRequest) -> bool:
        return self.strategy != "auto" and request.ranking == "strategy"

    def _finish(
        self, state: SearchState, rankings: Sequence[Ranking], mode: RankingMode
    ) -> SearchResult:
        request, kinds = state.request, state.snapshot.eligibility.kinds
        lists, limit = [ranking.ranked for ranking in rankings], request.limit
        if multipliers := state.usage.multipliers:
            entities = state.snapshot.entities
            rerank = partial(
                rerank_by_usage, multipliers=multipliers, entities=entities, limit=limit
            )
            lists = [rerank(ranking.ranked, named=ranking.named) for ranking in rankings]
        minimum = 0.0 if self._is_exact(request) else self.options.min_confidence
        chosen, displayed = choose(lists, state, kinds, rankings[0].confidences, minimum)
        window = frozenset[int]().union(*(ranking.window for ranking in rankings))
        added = self._supplement(state, rankings, chosen, best_of_each(lists, chosen), window)
        state.counts = replace(
            state.counts,
            candidates=max(len(ranking.ranked.positions) for ranking in rankings),
            window=len(window),
            graph_nodes=added.visited,
        )
        result = build_result(state, rankings, chosen, added, mode=mode)
        result = judge(state, rankings, replace(result, display_scores=displayed))
        return self._explain(state, rankings, chosen, result) if request.explain else result

    def _explain(
        self, state: SearchState, rankings: Sequence[Ranking], chosen: Chosen, result: SearchResult
    ) -> SearchResult:
        ranks = evidence_ranks(state, rankings, chosen) if result.matches else ()
        eligibility = state.snapshot.eligibility
        readable = state.snapshot.open_to(state.request.reader)
        if "server" not in state.request.filters.kinds:
            readable &= ~eligibility.has("kind", "server")  # a server's tools describe it already
        if not np.any(readable & ~state.mask):
            return replace(result, ranks=ranks)
        request = replace(state.request, explain=False)
        unfiltered = replace(state, mask=readable, request=request, diagnostics=[], seconds={})
        again = [self._rank(unfiltered, ranking.query) for ranking in rankings]
        return replace(result, ranks=ranks, filtered=filtered_entities(state, again))

    def _supplement(
        self,
        state: SearchState,
        rankings: Sequence[Ranking],
        chosen: Chosen,
        seeds: Sequence[int],
        window: frozenset[int],
    ) -> Supplements:
        graph = state.snapshot.graph
        if graph is None:
            state.add_diagnostic("graph", "graph_unavailable")
            return Supplements()
        gatherer = Gatherer(
            graph,
            [position for _, position, _ in chosen],
            seeds=seeds,
            window=window,
            mask=state.mask,
            options=self.options,
            nearness=lambda at: np.max([ranking.nearness(at) for ranking in rankings], axis=0),
            is_semantic=any(ranking.candidates is not None for ranking in rankings),
        )
        added = gatherer.gather(state.usage.learned)
        state.record_time("graph")
        return added


def _note_fallback(state: SearchState) -> None:
    is_strategy = state.request.ranking == "strategy"
    state.add_diagnostic("embed", "graph_fallback" if is_strategy else "lexical_fallback")

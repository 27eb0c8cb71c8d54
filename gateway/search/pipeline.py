"""The search, from query to result. Read this file first.

    eligible -> correct, normalize -> embed -> vector rank -> words re-score -> graph -> result

* This file awaits and decides; the numbers are computed elsewhere.
* An optional stage that fails returns nothing and leaves a `Diagnostic`.
* Vectors choose the candidates. Words re-score them. The graph adds, and never reorders.
* Without usable vectors the graph answers, this once: the next request tries again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from gateway.embed.cache import Embed
from gateway.index.snapshot import Snapshot
from gateway.index.tool_graph import ToolGraph
from gateway.index.vectors import VectorIndex
from gateway.options import SearchOptions
from gateway.search import query_tags, results
from gateway.search.expand.supplements import Supplements, supplement
from gateway.search.query import Query
from gateway.search.rank import policies
from gateway.search.rank.fusion import RankedList, fuse, interleave, pin_exact_names
from gateway.search.rank.policies import RankingInputs
from gateway.search.ranking import Ranking
from gateway.search.retrieve.graph import GraphHits, score_by_graph, search_graph
from gateway.search.retrieve.lexical import LexicalMatch, match_terms, score_lexical
from gateway.search.retrieve.names import find_named
from gateway.search.retrieve.vectors import Candidates, find_candidates
from gateway.search.state import SearchState
from gateway.search.visibility import visible_build_notes
from gateway.spelling.corrector import SpellingCorrector
from gateway.types import Diagnostic, RankingMode, SearchRequest, SearchResult, Strategy
from gateway.usage.history import NO_SIGNALS, UsageSignals

Rewrite = Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The stages of a search. Leave one out, and the search does without it."""

    options: SearchOptions
    strategy: Strategy
    embed: Embed | None = None
    normalize: Rewrite | None = None
    correct: SpellingCorrector | None = None
    """The offline spelling correction."""
    model: str = ""
    """The embedder's model id; empty without one."""
    graph: bool = True
    """Whether the graph adds to results and raises confidence. Without vectors it ranks in any
    case."""

    async def __call__(
        self,
        snapshot: Snapshot,
        request: SearchRequest,
        diagnostics: Sequence[Diagnostic] = (),
        *,
        usage: UsageSignals = NO_SIGNALS,
    ) -> SearchResult:
        """Answer *request*.

        Args:
            snapshot: The index.
            request: Checked by `gateway.search.request`.
            diagnostics: Those that the caller has already; they come first.
            usage: What past calls say of tools.

        Returns:
            A result in every case. Its mode is ``empty`` without a catalog and ``browse`` without a
            query and a context; its diagnostics name each stage that was missing or failed.
        """
        request, tag_notes = query_tags.extract_tags(snapshot, request)
        mask = snapshot.mask(request.filters)
        state = SearchState(
            self.options.query_timeout_s,
            snapshot=snapshot,
            request=request,
            mask=mask,
            diagnostics=[
                *diagnostics,
                *tag_notes,
                *visible_build_notes(snapshot, request.filters, mask),
            ],
            usage=usage,
        )
        if not snapshot.entities:
            return state.result("empty")
        if not request.queries and not request.context:
            return results.browse(state)
        queries = [await self._prepare(state, text) for text in request.queries or ("",)]
        embedded = await self._embed(state, queries)
        if embedded is not None:
            mode: RankingMode = "vector" if self._ranks_by_vectors_alone(request) else "hybrid"
            return self._finish(state, [self._by_vectors(state, each) for each in embedded], mode)
        if request.ranking != "strategy":
            return self._finish(
                state, [self._by_policy(state, each) for each in queries], "lexical"
            )
        graph = snapshot.graph
        if graph is None:
            state.add_diagnostic("graph", "graph_unavailable")
            return state.result("graph")
        rankings = [self._by_graph(state, graph, query) for query in queries]
        return self._finish(state, rankings, "graph")

    async def _prepare(self, state: SearchState, text: str) -> Query:
        """Return *text* in all its forms: as written, corrected, and in English if rewritten.

        Only a query that is alone is split into clauses: several queries are parts already.
        """
        english = text
        if self.normalize and text:
            rewriting = self.normalize(text)
            english = (
                await state.attempt_stage("normalize", "query_normalization_failed", rewriting)
                or text
            )
        if english != text:
            state.add_diagnostic("normalize", "query_normalized")
        query = Query(
            text=text,
            corrected=self._correct(state, text),
            english=english,
            context=state.request.context,
        )
        return query.split() if len(state.request.queries) == 1 else query

    def _correct(self, state: SearchState, text: str) -> str:
        """Correct the spelling of *text* by the words of eligible entities."""
        if self.correct is None or not text:
            return text
        mask = None if state.is_unfiltered else state.mask
        correction = self.correct(state.snapshot.lexical, text, mask)
        state.record_time("normalize")
        if correction.changed:
            state.add_diagnostic("normalize", "query_mended", correction.summary)
        return correction.text

    async def _embed(self, state: SearchState, queries: Sequence[Query]) -> list[Query] | None:
        """Embed all texts of all queries in one request.

        Returns:
            The queries with their vectors; None if they must be answered without, which a
            diagnostic then says unless the strategy or the policy wants it so.
        """
        ranking, snapshot = state.request.ranking, state.snapshot
        if ranking == "lexical" or (ranking == "strategy" and self.strategy == "graph"):
            return None
        if self.embed is None:
            state.add_diagnostic("embed", "embedder_missing", "give one: Gateway(embedder=…)")
        elif snapshot.vectors is not None:
            texts = list(dict.fromkeys(text for query in queries for text in query.texts_to_embed))
            work = self.embed(texts, dimensions=snapshot.dimensions)
            vectors = await state.attempt_stage("embed", "embedding_failed", work)
            if vectors is not None:
                state.texts, state.tokens = vectors.embedded, vectors.tokens
                rows = dict(zip(texts, vectors.vectors, strict=True))
                return [query.with_vectors(rows) for query in queries]
        fallback = ranking == "strategy"
        state.add_diagnostic("embed", "graph_fallback" if fallback else "lexical_fallback")
        return None

    def _by_vectors(self, state: SearchState, query: Query) -> Ranking:
        """Rank by vectors, and as strategy or policy want it by words too."""
        snapshot, request = state.snapshot, state.request
        alone = self._ranks_by_vectors_alone(request)
        size = self.options.window if alone else self.options.pool
        candidates = find_candidates(
            snapshot.vectors or VectorIndex.of(query.vectors.texts[:0]),
            query.vectors,
            mask=state.mask,
            limit=request.limit,
            options=self.options,
            pool=max(request.limit, size(request.limit)),
        )
        state.record_time("vector")
        if request.ranking != "strategy":
            return self._by_policy(state, query, candidates)
        ranked = RankedList(positions=candidates.pool, scores=candidates.strengths)
        if alone:
            terms = match_terms(snapshot.lexical, query)
        else:
            lexical, terms = score_lexical(snapshot.lexical, query)
            ranked = fuse(
                candidates,
                lexical,
                mask=state.mask,
                weight=self.options.lexical_weight,
                server_ids=snapshot.server_ids,
                clause_count=query.clause_count,
            )
        return self._ranking(state, query, ranked, terms=terms, candidates=candidates)

    def _by_policy(
        self, state: SearchState, query: Query, candidates: Candidates | None = None
    ) -> Ranking:
        """Rank by the policy that the request names; without vectors words rank alone."""
        lexical, terms = score_lexical(state.snapshot.lexical, query)
        count, graph = self.options.pool(state.request.limit), self._graph(state)
        fused = np.zeros(0, dtype=np.intp)
        if self.options.fuse_graph and graph is not None:
            hits = search_graph(graph, query, state.mask, limit=count)
            fused = np.fromiter(hits.scores, np.intp)
            state.record_time("graph")
        inputs = RankingInputs(
            snapshot=state.snapshot,
            mask=state.mask,
            lexical=lexical,
            terms=terms,
            clause_count=query.clause_count,
            candidates=candidates,
            graph=fused,
        )
        ranked = policies.rank(state.request.ranking, inputs, count=count)
        return self._ranking(state, query, ranked, terms=terms, candidates=candidates)

    def _ranking(
        self,
        state: SearchState,
        query: Query,
        ranked: RankedList,
        *,
        terms: LexicalMatch,
        candidates: Candidates | None,
    ) -> Ranking:
        """Put a ranking together, and ask the graph about the entities that may be listed."""
        named = find_named(state.snapshot, query.text, state.mask)
        state.record_time("lexical")
        request, window_size = state.request, self.options.window(state.request.limit)
        head = frozenset(ranked.positions[:window_size].tolist())
        listed = ranked.positions[: window_size if request.diversify else request.limit].tolist()
        ranking = Ranking(
            query=query,
            ranked=ranked if request.ranking == "legacy" else pin_exact_names(ranked, named),
            lexical=terms,
            window=candidates.window if candidates else head,
            named=frozenset(named),
            candidates=candidates,
            model=self.model,
        )
        if request.display_limit:
            # Only what is displayed is looked up: see `_finish`.
            return ranking
        return self._with_agreement(state, ranking, ranking.window.union(listed))

    def _ranks_by_vectors_alone(self, request: SearchRequest) -> bool:
        return self.strategy != "auto" and request.ranking == "strategy"

    def _by_graph(self, state: SearchState, graph: ToolGraph, query: Query) -> Ranking:
        """Rank by the graph's text search; the window holds those near its best score."""
        limit = state.request.limit
        hits = search_graph(graph, query, state.mask, limit=self.options.pool(limit))
        state.record_time("graph")
        terms = match_terms(state.snapshot.lexical, query)
        named = find_named(state.snapshot, query.text, state.mask)
        state.record_time("lexical")
        ranked = RankedList.of_graph(hits.scores)
        head = ranked.positions[: self.options.window(limit)]
        best = float(ranked.scores[0]) if len(ranked.scores) else 0.0
        near = ranked.scores[: len(head)] >= self.options.window_margin * best
        return Ranking(
            query=query,
            ranked=pin_exact_names(ranked, named),
            lexical=terms,
            window=frozenset(head[near].tolist()),
            named=frozenset(named),
            graph=hits,
        )

    def _graph(self, state: SearchState) -> ToolGraph | None:
        """Return the graph, if there is one and it may be used."""
        return state.snapshot.graph if self.graph else None

    def _with_agreement(
        self, state: SearchState, ranking: Ranking, positions: frozenset[int]
    ) -> Ranking:
        """Return *ranking* with the graph asked about the entities at *positions*."""
        graph = self._graph(state)
        if graph is None:
            return replace(ranking, graph=GraphHits())
        hits = score_by_graph(graph, ranking.query, sorted(positions))
        state.record_time("graph")
        return replace(ranking, graph=hits)

    def _finish(
        self, state: SearchState, rankings: Sequence[Ranking], mode: RankingMode
    ) -> SearchResult:
        """Choose the matches, add the graph's supplements, and write the result."""
        request = state.request
        if state.usage.multipliers or state.usage.associations:
            rankings = [_rerank_by_usage(state, ranking) for ranking in rankings]
        if request.diversify:
            rankings = [results.diversify(state.snapshot, each, request.limit) for each in rankings]
        chosen = interleave([ranking.ranked for ranking in rankings], limit=request.limit)
        display_scores: tuple[float, ...] = ()
        if request.display_limit:
            chosen, display_scores = results.select(state.snapshot, rankings, chosen, request)
            if mode != "graph":
                shown = frozenset(position for _, position in chosen)
                rankings = [self._with_agreement(state, each, shown) for each in rankings]
        window = frozenset[int]().union(*(ranking.window for ranking in rankings))
        added = self._supplement(state, rankings, [position for _, position in chosen], window)
        lists = results.build_lists(state.snapshot, rankings, chosen, added, limit=request.limit)
        best = max((match.confidence for match in lists.matches), default=0.0)
        is_empty = not lists.matches or (
            request.ranking == "strategy" and best < self.options.no_match_confidence
        )
        if is_empty:
            state.add_diagnostic("confidence", "no_match")
        elif best < self.options.min_confidence:
            state.add_diagnostic("confidence", "low_confidence_results")
        state.diagnostics += () if is_empty else lists.suspicions
        state.record_time("confidence")
        result = results.build_result(
            state,
            rankings,
            lists,
            added,
            mode=mode,
            window=len(window),
            display_scores=display_scores,
        )
        return results.without_matches(result, state, rankings) if is_empty else result

    def _supplement(
        self,
        state: SearchState,
        rankings: Sequence[Ranking],
        matches: Sequence[int],
        window: frozenset[int],
    ) -> Supplements:
        """Ask the graph for the neighbours of *matches*; nothing if it may not be used."""
        if state.snapshot.graph is None:
            state.add_diagnostic("graph", "graph_unavailable")
        graph = self._graph(state)
        if graph is None or state.request.display_limit:
            return Supplements()
        added = supplement(
            graph,
            matches,
            text_hits=chain.from_iterable(each.graph.coverage.items() for each in rankings),
            window=window,
            mask=state.mask,
            options=self.options,
            nearness=lambda at: np.max([ranking.nearness(at) for ranking in rankings], axis=0),
            learned=state.usage.learned,
        )
        state.record_time("graph")
        return added


def _rerank_by_usage(state: SearchState, ranking: Ranking) -> Ranking:
    from gateway.search.rank.usage_rerank import rerank_by_usage  # noqa: PLC0415  (off by default)

    limit = state.request.limit
    return replace(ranking, ranked=rerank_by_usage(state.snapshot, ranking, state.usage, limit))

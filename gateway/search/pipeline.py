"""The search, from question to result. Read this file first.

    eligible -> mend, normalize -> embed -> vector rank -> words re-score -> graph -> result

* This file awaits and decides; the numbers are made elsewhere.
* An optional stage that fails gives nothing and leaves a `Diagnostic`.
* Vectors choose the candidates. Words may re-score them. The graph adds, and never reorders.
* Without usable vectors the graph answers, this once: the next request tries again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from gateway.embed.cache import Embed, Known
from gateway.embed.cohort import cohort
from gateway.index.snapshot import Snapshot
from gateway.index.vectors.exact import VectorIndex, VectorQuery
from gateway.options import SearchOptions
from gateway.search import fusion, results, tags
from gateway.search.asked import Asked
from gateway.search.dense import vector
from gateway.search.dense.home import Homes
from gateway.search.dense.vector import Candidates
from gateway.search.evidence import (
    GraphHits,
    Ranking,
    Words,
    ask_graph,
    look_up,
    read_graph,
    read_words,
)
from gateway.search.fusion import Order
from gateway.search.index.toolgraph import ToolGraph
from gateway.search.parted import each_part
from gateway.search.request import parted
from gateway.search.run import Run
from gateway.search.sayable import degrading
from gateway.search.served import FURTHER
from gateway.search.spelling.mending import Mend
from gateway.search.supplement import Supplements, supplement
from gateway.search.usage.signals import NOTHING, Signals
from gateway.types import (
    Diagnostic,
    Match,
    RankingMode,
    SearchRequest,
    SearchResult,
    Strategy,
)

Rewrite = Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The stages of a search. Leave one out, and the search does without it."""

    options: SearchOptions
    strategy: Strategy
    embed: Embed | None = None
    known: Known | None = None
    """Gives the vectors of texts that were embedded before, without waiting; asked first."""
    normalize: Rewrite | None = None
    mend: Mend | None = None
    """The offline spelling pass."""
    model: str = ""
    """The embedder's model id; empty without one."""
    graph: bool = True
    """Whether the graph adds to results and raises confidence. Without vectors it ranks in any
    case."""

    async def __call__(
        self,
        snapshot: Snapshot,
        request: SearchRequest,
        notes: Sequence[Diagnostic] = (),
        *,
        use: Signals = NOTHING,
    ) -> SearchResult:
        """Find what *request* asks for.

        Args:
            snapshot: The index.
            request: What is asked; `gateway.search.request` has checked it.
            notes: What is known to be amiss already; they come first in the diagnostics.
            use: What past calls say of tools.

        Returns:
            A result in every case. Its mode is ``empty`` without a catalog and ``browse`` without a
            query and a context; its diagnostics name each stage that was missing or failed.
        """
        request, tagged = tags.tagged(snapshot, request)
        mask = snapshot.mask(request.filters)
        notes = [*notes, *tagged, *degrading(snapshot, request.filters, mask)]
        patience = self.options.query_timeout_s
        run = Run(patience, snapshot=snapshot, request=request, mask=mask, notes=notes, use=use)
        if not snapshot.entities:
            return run.result("empty")
        if not request.queries and not request.context:
            limit = min(request.limit, request.places or request.limit)
            listed = results.browse(snapshot, mask, limit)
            run.notes += listed.doubts
            return run.result("browse", listed.matches)
        asked = [await self._ask(run, query) for query in request.queries or ("",)]
        questions = await self._embed(run, asked)
        if questions is not None:
            ranked = [self._by_vectors(run, *each) for each in zip(asked, questions, strict=True)]
            mode: RankingMode = "vector" if self._vectors_alone(run.request) else "hybrid"
            return self._finish(run, ranked, mode)
        if request.ranking != "strategy":
            return self._finish(run, [self._by_policy(run, each) for each in asked], "lexical")
        graph = snapshot.graph
        if graph is None:
            run.note("graph", "graph_unavailable")
            return run.result("graph")
        return self._finish(run, [self._by_graph(run, graph, each) for each in asked], "graph")

    async def _ask(self, run: Run, query: str) -> Asked:
        """Give *query* in all its forms: as it is, mended, and in English if somebody rewrites it.

        Only a query that is alone is parted into clauses: several queries are parts already.
        """
        english = query
        if self.normalize and query:
            work = self.normalize(query)
            found = await run.optional("normalize", "query_normalization_failed", work)
            english = found or query
        if english != query:
            run.note("normalize", "query_normalized")
        mended = self._mended(run, query)
        only = len(run.request.queries) == 1
        clauses, parts = parted(query, mended) if only else ((), 0)
        return Asked(
            query=query,
            mended=mended,
            english=english,
            context=run.request.context,
            clauses=clauses,
            parts=parts,
        )

    def _mended(self, run: Run, query: str) -> str:
        """Give *query* as it was probably meant to be spelt, by the words of who may be found."""
        if self.mend is None or not query:
            return query
        mended = self.mend(run.snapshot.lexical, query, None if run.everybody else run.mask)
        run.spent("normalize")
        if mended.changed:
            run.note("normalize", "query_mended", mended.told)
        return mended.text

    async def _embed(self, run: Run, asked: Sequence[Asked]) -> list[VectorQuery] | None:
        """Embed all texts of all queries in one request.

        Returns:
            The vectors of each query; None if it must be answered without, which a note then says
            unless the strategy or the policy wants it so.
        """
        ranking = run.request.ranking
        if ranking == "lexical" or (ranking == "strategy" and self.strategy == "graph"):
            return None
        if self.embed is None:
            run.note("embed", "embedder_missing", "give one: Gateway(embedder=…)")
        elif run.snapshot.vectors is not None:
            texts = list(dict.fromkeys(text for each in asked for text in each.all_texts))
            found = self.known(texts, run.snapshot.dimensions) if self.known else None
            if found is None:
                work = self.embed(texts, dimensions=run.snapshot.dimensions)
                found = await run.optional("embed", "embedding_failed", work)
            run.spent("embed")
            if found is not None:
                run.texts, run.tokens = found.embedded, found.tokens
                by_text = dict(zip(texts, found.vectors, strict=True))
                return [each.question(by_text, run.snapshot.common) for each in asked]
        run.note("embed", "graph_fallback" if ranking == "strategy" else "lexical_fallback")
        return None

    def _by_vectors(self, run: Run, asked: Asked, question: VectorQuery) -> Ranking:
        """Rank by vectors, and as strategy or policy want it by words too."""
        snapshot, mask, limit = run.snapshot, run.mask, run.request.limit
        found = vector.candidates(
            snapshot.vectors or VectorIndex.of(question.texts[:0]),
            question,
            mask=mask,
            limit=limit,
            options=self.options,
            pool=self._pool(run),
        )
        run.spent("vector")
        if run.request.ranking != "strategy":
            return self._by_policy(run, asked, found)
        order = fusion.by_vector(found)
        if self.strategy == "auto":
            lexical, words = look_up(snapshot.lexical, snapshot.names, asked)
            order = fusion.fuse(
                found,
                lexical,
                mask=mask,
                weight=self.options.lexical_weight,
                mates=snapshot.mates,
                doubts=snapshot.doubts,
                parts=asked.parts,
            )
            order = each_part(found, order, parts=asked.parts, doubts=snapshot.doubts)
        else:
            words = read_words(snapshot.lexical, asked)
        return self._ranking(run, asked, order, words=words, found=found)

    def _by_policy(self, run: Run, asked: Asked, found: Candidates | None = None) -> Ranking:
        """Rank by the policy that the request names; without vectors words rank alone."""
        from gateway.search import policies  # noqa: PLC0415  (few searches ask for one)

        snapshot, mask = run.snapshot, run.mask
        lexical, words = look_up(snapshot.lexical, snapshot.names, asked)
        count = self.options.pool(run.request.limit)
        hits = self._graph_hits(run, asked, limit=count).scores if self.options.fuse_graph else ()
        spots = np.fromiter(hits, np.intp)
        heard = policies.heard(snapshot, asked, lexical, words, mask=mask, found=found, graph=spots)
        order = policies.rank(run.request.ranking, heard, count=count)
        return self._ranking(run, asked, order, words=words, found=found)

    def _ranking(
        self, run: Run, asked: Asked, order: Order, *, words: Words, found: Candidates | None
    ) -> Ranking:
        snapshot = run.snapshot
        named = snapshot.named(asked.query, run.mask)
        run.spent("lexical")
        limit, wide = run.request.limit, self.options.window(run.request.limit)
        window = found.window if found else frozenset(order.positions[:wide].tolist())
        first = order.positions[: wide if run.request.spread else limit]
        return Ranking(
            asked=asked,
            order=order if run.request.ranking == "legacy" else fusion.named_first(order, named),
            window=window,
            named=frozenset(named),
            found=found,
            words=words,
            eligible=max(run.eligible, 1),
            # With places, only those that are displayed are looked up: see `_finish`.
            graph=GraphHits()
            if run.request.places
            else self._agreement(run, asked, window.union(first.tolist())),
            agree=self._graph(run) is not None,
            yardstick=snapshot.yardstick,
            cohort=cohort(self.model),
            homes=Homes(mates=snapshot.mates, mask=run.mask),
        )

    def _pool(self, run: Run) -> int:
        """Give how many candidates vectors must give: fewer where words re-score none.

        At least `served.FURTHER`: by those it is judged whether the request is served.
        """
        limit = run.request.limit
        if self._vectors_alone(run.request):
            return max(limit, FURTHER, self.options.window(limit))
        return max(FURTHER, self.options.pool(limit))

    def _vectors_alone(self, request: SearchRequest) -> bool:
        """Say whether vectors rank alone, without words."""
        return self.strategy != "auto" and request.ranking == "strategy"

    def _by_graph(self, run: Run, graph: ToolGraph, asked: Asked) -> Ranking:
        """Rank by the graph's text search; the window holds those near its best score."""
        limit = run.request.limit
        hits = read_graph(graph, asked, run.mask, limit=self.options.pool(limit))
        run.spent("graph")
        words = read_words(run.snapshot.lexical, asked)
        named = run.snapshot.named(asked.query, run.mask)
        run.spent("lexical")
        order = fusion.by_graph(hits.scores)
        head = order.positions[: self.options.window(limit)]
        best = float(order.scores[0]) if len(order.scores) else 0.0
        near = order.scores[: len(head)] >= self.options.window_margin * best
        return Ranking(
            asked=asked,
            order=fusion.named_first(order, named),
            window=frozenset(head[near].tolist()),
            named=frozenset(named),
            words=words,
            eligible=max(run.eligible, 1),
            graph=hits,
        )

    def _graph(self, run: Run) -> ToolGraph | None:
        """Give the graph, if there is one and it may speak."""
        return run.snapshot.graph if self.graph else None

    def _graph_hits(self, run: Run, asked: Asked, *, limit: int) -> GraphHits:
        """Look *asked* up in the graph: the best *limit* of the eligible."""
        graph = self._graph(run)
        if graph is None:
            return GraphHits()
        hits = read_graph(graph, asked, run.mask, limit=limit)
        run.spent("graph")
        return hits

    def _agreement(self, run: Run, asked: Asked, spots: Collection[int]) -> GraphHits:
        """Ask the graph about the entities at *spots*: those that may be listed."""
        graph = self._graph(run)
        if graph is None:
            return GraphHits()
        hits = ask_graph(graph, asked, sorted(spots))
        run.spent("graph")
        return hits

    def _agreed(self, run: Run, ranking: Ranking, chosen: Iterable[tuple[int, int]]) -> Ranking:
        """Give *ranking* with the graph asked about those on display, and about what judges a job.

        *chosen* are displayed: pairs of the ranking's number and the position.
        """
        spots = {spot for _, spot in chosen}
        if fusion.job(ranking.asked.parts):
            spots |= ranking.window
        return replace(ranking, graph=self._agreement(run, ranking.asked, spots))

    def _finish(self, run: Run, rankings: Sequence[Ranking], mode: RankingMode) -> SearchResult:
        """Choose the matches among *rankings*, add the graph's, judge all, and write the result."""
        if run.use.liked or run.use.exposure:
            rankings = [replace(each, order=_used(run, each)) for each in rankings]
        if run.request.spread:
            rankings = [results.spread(run.snapshot, each, run.request.limit) for each in rankings]
        chosen = fusion.interleave([each.order for each in rankings], limit=run.request.limit)
        displays: tuple[float, ...] = ()
        if run.request.places:
            chosen, displays = results.displayed(run.snapshot, rankings, chosen, run.request)
            if mode != "graph":
                rankings = [self._agreed(run, each, chosen) for each in rankings]
        window = frozenset[int]().union(*(each.window for each in rankings))
        added = self._supplement(run, rankings, [spot for _, spot in chosen], window)
        lists = results.lists(run.snapshot, rankings, chosen, added, limit=run.request.limit)
        nothing = self._judge(run, rankings, lists.matches)
        run.notes += () if nothing else lists.doubts
        run.spent("confidence")
        found = results.assembled(run, rankings, lists, added, mode=mode, window=len(window))
        if displays:
            found = replace(found, displays=displays)
        return results.emptied(found, run.snapshot, rankings, run.mask) if nothing else found

    def _supplement(
        self,
        run: Run,
        rankings: Sequence[Ranking],
        primaries: Sequence[int],
        window: frozenset[int],
    ) -> Supplements:
        """Ask the graph what belongs to *primaries*; nothing if it may not speak."""
        if run.snapshot.graph is None:
            run.note("graph", "graph_unavailable")
        graph = self._graph(run)
        if graph is None or run.request.places:
            return Supplements()
        added = supplement(
            graph,
            primaries,
            text_hits=chain.from_iterable(each.graph.coverage.items() for each in rankings),
            window=window,
            mask=run.mask,
            options=self.options,
            nearness=lambda spots: np.max([each.nearness(spots) for each in rankings], axis=0),
            learned=run.use.learned,
        )
        run.spent("graph")
        return added

    def _judge(self, run: Run, rankings: Sequence[Ranking], matches: Sequence[Match]) -> bool:
        """Note that nothing was found, or only what is hardly meant.

        A model is not shown what hardly serves. Whoever names a policy is a person or a program,
        who is told and judges alone.

        Returns:
            Whether the result is to say that nothing serves the request.
        """
        best = max((match.confidence for match in matches), default=0.0)
        least = self.options.no_match_confidence * run.snapshot.narrowness
        if best < least:
            best = max(best, results.nearest_of_jobs(rankings, run.request.limit))
        if not matches or (run.request.ranking == "strategy" and best < least):
            run.note("confidence", "no_match")
            return True
        if best < self.options.min_confidence:
            run.note("confidence", "low_confidence_results")
        return False


def _used(run: Run, ranking: Ranking) -> Order:
    """Give the order of *ranking* as what calls say moves it."""
    from gateway.search.used import used  # noqa: PLC0415  (only where use has a say)

    return used(run.snapshot, ranking, run.use, limit=run.request.limit)

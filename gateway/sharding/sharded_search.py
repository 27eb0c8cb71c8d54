"""One search over several gateways, each of which holds a part of the catalog.

    statistics   of all parts; each compiles its index with the sums    when something changed
    overview     tags, words, whether vectors rank                      once for equal filters
    survey       candidates, and sums over all that is eligible         merged and ranked here
    details      what is shown of the best, and their neighbours

The matches are those of one process with the whole catalog, to the last bit (docs/adr/0072). A part
that does not answer is left out, and a diagnostic says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Self

import numpy as np

from gateway.embed.protocol import Embedder, resolve_embedder
from gateway.errors import InvalidRequestError
from gateway.options import Options
from gateway.options.search import check_strategy
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Cache, Clock
from gateway.runtime.telemetry import Telemetry
from gateway.search.cached_search import Caches, make_search
from gateway.search.query import Query
from gateway.search.rank.choice import Chosen, choose
from gateway.search.rank.copies import move_copies
from gateway.search.rank.parameters import COPY_DEPTH
from gateway.search.request import may_have_tags, prepare, take_tags
from gateway.search.state import SearchState
from gateway.sharding.members import Members, PartLostError
from gateway.sharding.merge import MergedSearch, merge, number_of
from gateway.sharding.outline import CatalogOutline, total_overview
from gateway.sharding.result import ChosenMatches
from gateway.sharding.values import (
    Details,
    DetailsAnswer,
    DetailsRequest,
    Overview,
    OverviewRequest,
    Part,
    PartChangedError,
    SurveyAnswer,
    SurveyRequest,
)
from gateway.types import (
    ANYONE,
    Caller,
    Diagnostic,
    Filters,
    RankingMode,
    SearchRequest,
    SearchResult,
    Strategy,
)

_ATTEMPTS = 5
"""A search begins anew if a part changed or went away under way."""
_MAX_OVERVIEWS = 256


class ShardedSearch:
    """Searches a catalog whose parts stand in several gateways. For one event loop.

    Args:
        parts: One for each gateway: `GatewayPart` in this process, `HttpPart` elsewhere. All of an
            MCP server's tools stand in one of them.
        strategy: As for `Gateway`.
        embedder: As for `Gateway`; the same that the parts have.
        options: Those of the search are used, and those of its caches.
        timeout_s: How long a part may take to answer.
        retry_s: After how long a part that did not answer is asked again.
        clock: Seconds that only grow.
    """

    def __init__(  # noqa: PLR0913  (keyword-only options of the public API)
        self,
        parts: Sequence[Part],
        *,
        strategy: Strategy = "auto",
        embedder: Embedder | Literal["local"] | None = None,
        options: Options | None = None,
        timeout_s: float = 10.0,
        retry_s: float = 5.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self.options = (options or Options()).search
        self._bridge = Bridge("sharded search")
        self._members = Members(parts, timeout_s=timeout_s, retry_s=retry_s, clock=clock)
        self._overviews = Cache[Overview]("overview", max_items=_MAX_OVERVIEWS, clock=clock)
        self._search, _ = make_search(
            self.options,
            strategy=check_strategy(strategy),
            embedder=resolve_embedder(embedder),
            normalizer=None,
            caches=Caches.of((options or Options()).cache, clock=clock),
            submit=self._bridge.submit,
            telemetry=Telemetry(),
        )

    async def search(  # noqa: PLR0913  (keyword-only, all but the query)
        self,
        query: str | None = None,
        *,
        queries: Sequence[str] = (),
        limit: int | None = None,
        context: Mapping[str, object] | None = None,
        context_summary: str = "",
        filters: Filters | None = None,
        diversify: bool = False,
        display_limit: int = 0,
        caller: Caller = ANYONE,
    ) -> SearchResult:
        """Find tools; the arguments and the result are those of `Gateway.search`.

        Raises:
            InvalidRequestError: If an argument is outside what is allowed.
            PartChangedError: If the catalog changes faster than it can be searched.
        """
        if filters is not None and filters.healthy_only:
            raise InvalidRequestError("healthy_only is not known of the parts of a catalog")
        request, notes = prepare(
            query,
            queries=queries,
            context=context,
            context_summary=context_summary,
            limit=limit,
            filters=filters or Filters(),
            options=self.options,
            diversify=diversify,
            display_limit=display_limit,
            caller=caller,
        )
        for _ in range(_ATTEMPTS):
            outline, key = await self._members.ready(), self._members.key
            try:
                return await self._begin(outline, request, notes)
            except PartChangedError:
                await self._members.synchronize(key)
            except PartLostError:
                continue
        raise PartChangedError("the parts of the catalog keep changing: search again")

    async def _begin(
        self, outline: CatalogOutline | None, request: SearchRequest, notes: tuple[Diagnostic, ...]
    ) -> SearchResult:
        if outline is None:
            return SearchResult(mode="empty", diagnostics=(*notes, *self._members.notes))
        if may_have_tags(request):
            every = await self._overview(replace(request.filters, tags=frozenset()))
            request, tag_notes = take_tags(request, every.tags)
            notes += tag_notes
        wants_nothing = not request.queries and not request.context
        first = min(request.limit, request.display_limit or request.limit)
        overview = await self._overview(request.filters, first=first if wants_nothing else 0)
        state = SearchState(
            options=self.options,
            snapshot=replace(outline, overview=overview),
            request=request,
            mask=np.zeros(0, dtype=np.bool_),
            diagnostics=[*notes, *overview.notes, *self._members.notes],
        )
        state.counts = replace(state.counts, eligible=overview.eligible)
        if not overview.eligible and not overview.visible:
            return state.result("empty")
        if wants_nothing:
            return state.result("browse", overview.first[:first])
        return await self._rank(state, overview, await self._prepare(state, overview))

    async def _overview(
        self, filters: Filters, *, words: tuple[str, ...] = (), first: int = 0
    ) -> Overview:
        """Return what *filters* leave of all parts that answer."""
        key = self._members.key, filters, words, first, tuple(self._members.notes)
        overview = self._overviews.peek(key)
        if overview is None:
            request = OverviewRequest(
                key=self._members.key, filters=filters, words=words, first=first
            )
            answers = await self._members.ask(lambda _, part: part.overview(request))
            overview = total_overview(list(answers.values()))
            self._overviews.put(key, overview)
        return overview

    async def _prepare(self, state: SearchState, overview: Overview) -> list[Query]:
        """Return each query in all its forms, with vectors where they could be made."""
        texts, context = state.request.queries or ("",), state.request.context
        queries = []
        for text in texts:
            corrected = await self._correct(state, overview, text)
            queries.append(Query(text=text, corrected=corrected, english=text, context=context))
        if len(queries) == 1:
            queries = [query.split() for query in queries]
        return await self._search.add_vectors(state, queries)

    async def _correct(self, state: SearchState, overview: Overview, text: str) -> str:
        """Correct the spelling of *text* by the words of eligible entities."""
        if self._search.correct is None or not text:
            return text
        correct = partial(self._search.correct, state.snapshot.lexical, text)
        correction = correct()
        if correction.changed and overview.eligible < overview.size:
            guessed = {word for _, guess in correction.changed for word in guess.casefold().split()}
            counts = await self._overview(state.request.filters, words=tuple(sorted(guessed)))
            correction = correct(frozenset(counts.words))
        state.record_time("spelling")
        if correction.changed:
            state.add_diagnostic("spelling", "query_mended", correction.summary)
        return correction.text

    async def _rank(
        self, state: SearchState, overview: Overview, queries: list[Query]
    ) -> SearchResult:
        """Let the parts look for *queries*, and rank what they have."""
        if not overview.has_graph:
            queries = [query for query in queries if query.is_embedded]
        if not queries:
            state.add_diagnostic("graph", "graph_unavailable")
            return state.result("graph")
        request = state.request
        by_words = self._search.strategy == "auto"
        survey = SurveyRequest(
            key=self._members.key,
            queries=tuple(queries),
            filters=request.filters,
            count=self.options.pool(request.limit),
            by_words=by_words,
        )
        answers = await self._members.ask(lambda _, part: part.survey(survey))
        merged = merge(
            queries, answers, limit=request.limit, options=self.options, by_words=by_words
        )
        state.record_time("vector")
        found = await self._choose(state, merged, answers)
        mode: RankingMode = "hybrid" if by_words else "vector"
        if not any(query.is_embedded for query in queries):
            mode = "graph"
        if not overview.has_graph:
            state.add_diagnostic("graph", "graph_unavailable")
        return found.result(state, mode)

    async def _choose(
        self, state: SearchState, merged: MergedSearch, searches: Mapping[int, SurveyAnswer]
    ) -> ChosenMatches:
        """Ask the parts about what may be listed, and choose the matches."""
        request, queries, rows = state.request, merged.queries, merged.rows
        chosen, _ = choose([query.ranked for query in queries], request, rows.kinds_at)
        every = request.diversify or request.display_limit
        depth = None if every else max(COPY_DEPTH, request.limit)
        heads = (query.ranked.positions[:depth].tolist() for query in queries)
        wanted = sorted({row for head in heads for row in head})
        answers = await self._details(merged, searches, wanted, chosen)
        details = _by_number(answers)
        by_row = {row: details[int(rows.numbers[row])] for row in wanted}
        lists = [
            move_copies(query.ranked, query.query.text, query.named, by_row) for query in queries
        ]
        final, displayed = choose(lists, request, rows.kinds_at)
        if [row for _, row, _ in final] != [row for _, row, _ in chosen]:
            # A copy was among them: the neighbours are those of other matches.
            answers = await self._details(merged, searches, (), final)
            details |= _by_number(answers)
        state.record_time("graph")
        return ChosenMatches(
            merged=merged, chosen=final, displayed=displayed, answers=answers, details=details
        )

    async def _details(
        self,
        merged: MergedSearch,
        searches: Mapping[int, SurveyAnswer],
        wanted: Sequence[int],
        chosen: Chosen,
    ) -> dict[int, DetailsAnswer]:
        rows, matches = merged.rows, [row for _, row, _ in chosen]

        def request(part: int) -> DetailsRequest:
            return DetailsRequest(
                search=searches[part].search,
                queries=merged.choices(part),
                wanted=rows.within(part, wanted),
                matches=rows.within(part, matches),
                leads=len(rows.within(part, matches[:1])) > 0,
                window=rows.within(part, merged.window),
                options=self.options,
                model=self._search.model,
            )

        return await self._members.ask(
            lambda number, part: part.details(request(number)), searches.keys()
        )

    async def aclose(self) -> None:
        """Stop all work in the background; the parts are closed by their owner."""
        await self._members.close()
        await asyncio.to_thread(self._bridge.close)

    async def __aenter__(self) -> Self:
        """Return the search itself."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close it."""
        await self.aclose()


def _by_number(answers: Mapping[int, DetailsAnswer]) -> dict[int, Details]:
    return {
        number_of(part, each.position): each
        for part, answer in answers.items()
        for each in answer.details
    }

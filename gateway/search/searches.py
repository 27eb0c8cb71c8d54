"""The searches of a gateway: get the index, search it, add diagnostics about servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gateway.index.indexer import Indexer
from gateway.index.snapshot import IndexBuild, Snapshot
from gateway.search.cached_search import CachedSearch
from gateway.search.expand.next_steps import suggest_next_steps
from gateway.search.rank.policies import check_ranking
from gateway.servers.servers import Servers
from gateway.types import (
    ANYONE,
    Caller,
    Diagnostic,
    Entity,
    Filters,
    IndexReport,
    Match,
    SearchRequest,
    SearchResult,
)


@dataclass(eq=False, repr=False)
class Searches:
    """The searches of one gateway. Every index report begins with `notes`."""

    index: Indexer
    servers: Servers
    cached: CachedSearch
    notes: tuple[Diagnostic, ...] = ()
    latest: IndexBuild | None = field(default=None, init=False)
    """Build used by the latest search; None before the first one."""

    @property
    def rankings(self) -> tuple[str, ...]:
        """Names of rankings that a search accepts."""
        return "strategy", *self.cached.search.rankings

    def usual_ranking(self, kind: str = "") -> str:
        """Return the name of the default ranking for *kind*; empty for several kinds.

        It is the strategy for tools, and a policy for other kinds, because the graph has no nodes
        for servers.
        """
        if kind == "tool":
            return "strategy"
        return "hybrid" if "hybrid" in self.rankings else "lexical"

    async def search(
        self,
        request: SearchRequest,
        notes: Sequence[Diagnostic],
        *,
        wait: bool | float,
        task: str | None,
    ) -> SearchResult:
        """Search the newest index. *wait* and *task* are as for `Gateway.search`.

        Raises:
            InvalidRequestError: If the ranking is unknown, or its plugin is not loaded.
        """
        check_ranking(request.ranking, self.cached.search.rankings)
        has_query = bool(request.queries or request.context)
        queries = request.queries
        built = await self._fetch_build(vectors=has_query, wait=wait, queries=queries)
        # Browsing does not use vectors.
        early = self.index.notes(built) if has_query else ()
        # Users with equal visibility share cached results.
        request = replace(request, filters=built.snapshot.visibility.shared(request.filters))
        result = await self.cached(built.snapshot, request, (*notes, *early), task=task)
        return self.servers.pool.note_stale(result)

    async def next_steps(
        self,
        tools: Sequence[str],
        *,
        query: str = "",
        limit: int = 5,
        filters: Filters | None = None,
        caller: Caller = ANYONE,
    ) -> tuple[Match, ...]:
        """Suggest tools to use after *tools*, best first, without *tools* themselves.

        Args:
            tools: Ids or names of the tools just used, in the order of use.
            query: The task; empty if unknown.
            limit: Maximum number of suggestions.
            filters: Filters that the suggestions must pass; None as for `search`.
            caller: The caller who receives the suggestions.

        Raises:
            UnknownToolError: If one of *tools* is not in the catalog.
            InvalidRequestError: If *limit* is below 1.
        """
        snapshot = await self.snapshot(vectors=bool(query))
        return await suggest_next_steps(
            self.cached.search,
            snapshot,
            tools,
            query=query,
            filters=caller.filters(self.servers.pool.resolve_filters(filters)),
            limit=limit,
            usage=await self.cached.signals(snapshot, caller.tenant),
        )

    async def list_tools(
        self, filters: Filters | None = None, *, caller: Caller = ANYONE
    ) -> tuple[Entity, ...]:
        """Return all tools visible to *caller*, ordered by exposed name."""
        snapshot = await self.snapshot()
        return snapshot.visible(caller.filters(self.servers.pool.resolve_filters(filters)))

    async def refresh(self) -> IndexReport:
        """List every server again, rebuild the index, and return its report."""
        self.servers.bridge.check_open()
        self.servers.pool.expire()
        return self._with_notes((await self.index.refresh()).report)

    async def report(self, *, wait: bool = True) -> IndexReport:
        """Return the report of the newest index build, with all changes and vectors.

        Without *wait*, the current index is reported. Its diagnostic ``index_building`` then names
        missing vectors or changes.
        """
        self.servers.bridge.check_open()
        report = (await self.index.current()).report if wait else self.index.report()
        return self._with_notes(report)

    def _with_notes(self, report: IndexReport) -> IndexReport:
        return replace(report, diagnostics=(*self.notes, *report.diagnostics))

    async def snapshot(self, *, vectors: bool = False) -> Snapshot:
        """Return the index. Only with *vectors*, wait for missing vectors as a search does."""
        return (await self._fetch_build(vectors=vectors)).snapshot

    async def newest(self) -> IndexBuild:
        """Return the newest index build. Its vectors may be incomplete."""
        return await self._fetch_build(vectors=False)

    async def _fetch_build(
        self, *, vectors: bool, wait: bool | float = True, queries: Sequence[str] = ()
    ) -> IndexBuild:
        self.servers.bridge.check_open()
        self.servers.pool.refresh_stale()
        search = self.cached.search
        if search.strategy != "auto":
            wait = True
        elif wait is True and search.options.first_search == "words":
            wait = False
        self.latest = await self.index.get(vectors=vectors, wait=wait, queries=queries)
        return self.latest

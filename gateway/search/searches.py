"""From a checked request to a result: the newest index, the search, and notes on servers."""

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
    """The searches of one gateway.

    Args:
        index: Keeps the index.
        servers: The servers, some of which cannot be reached.
        cached: Searches an index.
        notes: Diagnostics that every report begins with.
    """

    index: Indexer
    servers: Servers
    cached: CachedSearch
    notes: tuple[Diagnostic, ...] = ()
    latest: IndexBuild | None = field(default=None, init=False)
    """The index build of the last search; None before the first one."""

    @property
    def rankings(self) -> tuple[str, ...]:
        """The names that a search can give as its ranking."""
        return "strategy", *self.cached.search.rankings

    def usual_ranking(self, kind: str = "") -> str:
        """Return the ranking of a search that names none: the strategy for tools, else a policy.

        Args:
            kind: The searched kind; empty for several. The strategy does not rank all kinds,
                because the graph has no node of a server.
        """
        if kind == "tool":
            return "strategy"
        return "hybrid" if "hybrid" in self.rankings else "lexical"

    async def search(
        self, request: SearchRequest, notes: Sequence[Diagnostic], *, wait: bool, task: str | None
    ) -> SearchResult:
        """Find tools.

        Args:
            request: Made by `gateway.search.request.prepare`.
            notes: What that noted.
            wait: As for `Gateway.search`.
            task: As for `Gateway.search`.

        Raises:
            InvalidRequestError: The ranking is unknown, or its plugin is not loaded.
        """
        check_ranking(request.ranking, self.cached.search.rankings)
        wanted = bool(request.queries or request.context)
        built = await self._built(vectors=wanted, wait=wait)
        # To browse needs no vectors.
        early = self.index.notes(built) if wanted else ()
        # Equal searches of users that may see the same have one result.
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
        """Suggest what to use after *tools*, best first, never one of them.

        Args:
            tools: Those just used, the last one last, each as `invoke` takes it.
            query: The task, if it is known.
            limit: How many suggestions at most.
            filters: What may be suggested; None as for `search`.
            caller: The party that they are for.

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
        """Return all tools that *caller* may find, ordered by exposed name."""
        snapshot = await self.snapshot()
        return snapshot.visible(caller.filters(self.servers.pool.resolve_filters(filters)))

    async def refresh(self) -> IndexReport:
        """List every server again, rebuild the index, and report on that."""
        self.servers.bridge.check_open()
        self.servers.pool.expire()
        return self._noted((await self.index.refresh()).report)

    async def report(self, *, wait: bool = True) -> IndexReport:
        """Report on the newest index build, with all changes and all vectors in it.

        Without *wait* it reports on what there is; ``index_building`` names what is being made.
        """
        self.servers.bridge.check_open()
        report = (await self.index.current()).report if wait else self.index.report()
        return self._noted(report)

    def _noted(self, report: IndexReport) -> IndexReport:
        return replace(report, diagnostics=(*self.notes, *report.diagnostics))

    async def snapshot(self, *, vectors: bool = False) -> Snapshot:
        """Return the index as calls read it; with *vectors*, wait for those as a search does."""
        return (await self._built(vectors=vectors)).snapshot

    async def newest(self) -> IndexBuild:
        """Return the newest index build, whose vectors may be made still."""
        return await self._built(vectors=False)

    async def _built(self, *, vectors: bool, wait: bool = True) -> IndexBuild:
        self.servers.bridge.check_open()
        self.servers.pool.refresh_stale()
        search = self.cached.search
        waits = search.strategy != "auto" or (wait and search.options.first_search != "words")
        self.latest = await self.index.get(vectors=vectors, words_first=not waits)
        return self.latest

"""`Gateway`: the wiring of all parts. It ranks and decides nothing itself.

* One gateway serves async callers on any loop and, through `SyncGateway`, blocking callers on any
  thread: sessions, builds and requests to models live on its own background loop.
* Registering is immediate and touches no network; the first search lists and builds.
"""

from __future__ import annotations

import asyncio
import reprlib
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from gateway.call.calls import Calls
from gateway.call.gate import AccessGate
from gateway.embed.protocol import Embedder
from gateway.embed.resolve import resolve_embedder
from gateway.errors import ConfigError
from gateway.index.graph_documents import GraphSource, source_of
from gateway.index.indexer import Indexer, Progress
from gateway.index.snapshot import IndexBuild, Snapshot
from gateway.options import Options
from gateway.options.environment import resolved
from gateway.options.search import check_strategy
from gateway.plugin_manager import load_plugins
from gateway.plugins.access.limits import Limiter
from gateway.plugins.access.tables import auditor_of, counters_of
from gateway.registration.views import GatewayViews
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Clock, SingleFlight
from gateway.runtime.telemetry import MeterProvider, Telemetry, TracerProvider
from gateway.runtime.vectors import VectorStore
from gateway.search.cached_search import CachedSearch, Caches, SearchParts, cached_search
from gateway.search.expand.next_steps import suggest_next_steps
from gateway.search.learned import NO_USAGE, make_usage_log
from gateway.search.normalize import Normalizer
from gateway.search.request import prepare
from gateway.sources.entries import ENTRIES
from gateway.storage.protocol import Store, watch
from gateway.stores import resolve_store
from gateway.types import (
    ANYONE,
    Caller,
    Entity,
    Filters,
    IndexReport,
    InvokeResult,
    JsonObject,
    Match,
    RankingPolicy,
    SearchResult,
    Strategy,
)


class Gateway(GatewayViews):
    """A searchable, callable catalog of tools.

    Add tools and servers (`add_tool`, `add_server`, `add_config`), then `search` and `invoke`. End
    it with ``async with`` or `aclose`. Blocking code calls `close`, and `SyncGateway` for the rest.

    Args:
        strategy: ``graph`` needs no model; ``embeddings`` ranks by vectors alone; ``auto`` ranks
            by vectors first, with words and graph beside them.
        embedder: ``"local"`` for the embedded multilingual model, the name that another plugin
            registers, or any `Embedder`.
        normalizer: A chat client of its own that rewrites queries in English; without one the
            original query is used.
        graph: The host's own Markdown-LD documents: a folder, a file, documents or a function.
        options: Everything that has a number.
        store: Where everything persists; None is SQLite files in the user's cache folder.
        vector_store: Where vectors persist, if only these are to be kept elsewhere.
        caches: Shared with other gateways; None makes its own.
        clock: Seconds that only grow; cache lifetimes and retries read it.
        tracer_provider: Where spans go; None is the process's own.
        meter_provider: Where metrics go; None is the process's own.
        progress: Called with a stage, how much is done and how much there is, during index builds.

    Raises:
        ConfigError: If the strategy is unknown, an option cannot work or what is given is not of
            its kind.
        MissingExtraError: If the local model is wanted but not installed.
    """

    _latest_build: IndexBuild | None = None

    def __init__(  # noqa: PLR0913  (keyword-only options of the public API)
        self,
        *,
        strategy: Strategy = "graph",
        embedder: Embedder | str | None = None,
        normalizer: Normalizer | None = None,
        graph: GraphSource | None = None,
        options: Options | None = None,
        store: Store | None = None,
        vector_store: VectorStore | None = None,
        caches: Caches | None = None,
        clock: Clock = time.monotonic,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.options = resolved(options or Options())
        self.strategy = check_strategy(strategy)
        self.plugins = load_plugins(self.options.plugins)
        self.embedder = resolve_embedder(embedder, self.plugins.tables("register_embedders"))
        self.telemetry = Telemetry(
            tracer_provider=tracer_provider,
            meter_provider=meter_provider,
            capture_content=self.options.capture_content,
        )
        own = Caches.of(self.options.cache, clock=clock, on_event=self.telemetry.cache_event)
        self.caches = own if caches is None else caches
        self.store = storage = resolve_store(self.options, store, vectors=vector_store)
        auditor = auditor_of(self.options, storage, self.telemetry)
        super().__init__(Bridge(), storage, self.options, own=store is not None, clock=clock)
        self.gate = AccessGate(auditor, Limiter(counters_of(storage)))
        self._index = Indexer(
            registry=self._registry,
            embedder=self.embedder if strategy != "graph" else None,
            store=storage.vectors,
            graph=source_of(graph),
            options=self.options,
            entities=self._entity_registry,
            telemetry=self.telemetry,
            flights=SingleFlight[object](self._bridge.submit),
            clock=clock,
            progress=progress or (lambda *_: None),
            own_store=not (store is None and vector_store is None),
        )
        self.cached_search = self._make_search(normalizer, clock)
        for part in (self._index, self._servers, self.cached_search):
            self.telemetry.observe(part.gauges)
        self._end_watch = watch(storage, self._take_change)

    def _make_search(self, normalizer: Normalizer | None, clock: Clock) -> CachedSearch:
        usage = make_usage_log(
            self.plugins.tables("register_signals"),
            self.options.usage,
            store=self.store,
            telemetry=self.telemetry,
            clock=clock,
            submit=self._bridge.submit,
        )
        forms = self.plugins.tables("register_query_forms") if self.options.search.spelling else {}
        parts = SearchParts(
            options=self.options.search,
            strategy=self.strategy,
            embedder=self.embedder,
            normalizer=normalizer,
            correct=forms["corrected"]() if "corrected" in forms else None,
            usage=usage,
            caches=self.caches,
            submit=self._bridge.submit,
            telemetry=self.telemetry,
        )
        return cached_search(parts)

    def __repr__(self) -> str:
        """Return the strategy, the servers and, after the first build, the number of tools."""
        build, names = self._latest_build, sorted(self._registry.all().keys() - {ENTRIES})
        tools = "" if build is None else f", tools={build.report.tools}"
        return f"Gateway(strategy={self.strategy!r}, sources={reprlib.repr(names)}{tools})"

    async def search(  # noqa: PLR0913  (keyword-only, all but the query)
        self,
        query: str | None = None,
        *,
        queries: Sequence[str] = (),
        limit: int | None = None,
        context: Mapping[str, object] | None = None,
        context_summary: str = "",
        filters: Filters | None = None,
        ranking: RankingPolicy = "strategy",
        diversify: bool = False,
        display_limit: int = 0,
        caller: Caller = ANYONE,
        explain: bool | Caller = False,
        wait: bool = True,
        task: str | None = "",
    ) -> SearchResult:
        """Find tools.

        Args:
            query: What is wanted, in any language; None or blank browses the catalog by name.
            queries: Instead of *query*, one for each step of a task. They take turns in the result.
            limit: How many matches are wanted, 1 to 50; None is 5.
            context: What else is known of the task, as JSON.
            context_summary: The same, in words.
            filters: What may be found; None is enabled, active tools that need no scope.
            ranking: Weighs the evidence: the strategy, or one of `gateway.search.rank.policies`.
            diversify: Keep each kind from taking more than 0.6 of the places while others wait.
            display_limit: Choose so many of *limit*, as `gateway.search.rank.display` does, and
                return only them, with ``display_scores`` and without supplements; 0 returns
                all. Not with several queries; without a query, the first so many.
            caller: The party that it is for.
            explain: Say why in ``scoring``, ``ranks``, ``filtered``, to *caller* or the one given.
            wait: Wait until new tools are embedded, unless ``first_search`` is ``words``.
            task: As for `invoke`; None keeps it out of what is noted.

        Returns:
            A result in every case; what failed on the way is in its ``diagnostics``.

        Raises:
            InvalidRequestError: If an argument is outside what is allowed.
            ClosedError: After `aclose`.
        """
        request, notes = prepare(
            query,
            queries=queries,
            context=context,
            context_summary=context_summary,
            limit=limit,
            filters=self._servers.resolve_filters(filters),
            options=self.options.search,
            ranking=ranking,
            diversify=diversify,
            display_limit=display_limit,
            caller=caller,
            explain=explain,
        )
        wanted = bool(request.queries or request.context)
        built = await self._newest(vectors=wanted, wait=wait)
        # To browse needs no vectors.
        early = self._index.notes(built) if wanted else ()
        # Equal searches of users that may see the same have one result.
        if (shared := built.snapshot.policies.shared(request.filters)) is not request.filters:
            request = replace(request, filters=shared)
        result = await self.cached_search(built.snapshot, request, (*notes, *early), task=task)
        return self._servers.note_stale(result)

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
            snapshot,
            tools,
            query=query,
            embed=self.cached_search.search.embed,
            filters=caller.filters(self._servers.resolve_filters(filters)),
            limit=limit,
            options=self.options.search,
            usage=await self.cached_search.signals(snapshot, caller.tenant),
        )

    async def list_tools(
        self, filters: Filters | None = None, *, caller: Caller = ANYONE
    ) -> tuple[Entity, ...]:
        """Return all tools that *caller* may find, ordered by exposed name."""
        snapshot = await self.snapshot()
        return snapshot.visible(caller.filters(self._servers.resolve_filters(filters)))

    async def invoke(
        self,
        tool: str,
        arguments: JsonObject | None = None,
        *,
        call_id: str = "",
        caller: Caller = ANYONE,
        task: str = "",
        approved: bool = False,
    ) -> InvokeResult:
        """Call a tool, at most once.

        Args:
            tool: Its canonical id, its exposed name, or its own name if only one tool has it.
            arguments: Checked against its schema before anything is sent.
            call_id: The model's id of the call, for telemetry.
            caller: The party that it is for. Its tenant is noted as a digest, if calls are noted.
            task: Any label of what the call belongs to, such as one user request; noted likewise.
            approved: Whether a person, or the host, approved it, where a policy wants that.

        Returns:
            The tool's answer, without what policies hide; ``is_error`` if the tool says that it
            failed.

        Raises:
            UnknownToolError: No enabled tool of that name; near names are listed.
            InvalidArgumentsError: The arguments do not fit; nothing was sent.
            NotApprovedError: A policy wants an approval; nothing was sent.
            LimitExceededError: A policy allows no more calls for a while; nothing was sent.
            StoreError: The audit log cannot be written; nothing was sent.
            UpstreamError: The tool's source failed, or did not answer in time.
            ClosedError: After `aclose`.
        """
        return await self.calls.invoke(
            tool, arguments or {}, caller=caller, call_id=call_id, task=task, approved=approved
        )

    @property
    def calls(self) -> Calls:
        """Finds tools by their names and calls them, with the hooks of this gateway around."""
        return Calls(
            snapshot=self.snapshot,
            registry=self._registry,
            telemetry=self.telemetry,
            gate=self.gate,
            hooks=() if self.cached_search.usage is None else (self.cached_search.usage,),
        )

    @property
    def usage(self) -> Any:
        """The log of calls and searches, a `gateway.plugins.usage.history.UsageTracker`.

        Raises:
            ConfigError: The plugin ``usage`` is not loaded.
        """
        if self.cached_search.usage is None:
            raise ConfigError(NO_USAGE)
        return self.cached_search.usage

    def audience(self, caller: Caller) -> Hashable:
        """Return what callers have in common that may see the same."""
        return self._registry.audience(caller)

    async def refresh(self) -> IndexReport:
        """List every server again, rebuild the index, and report on that."""
        self._bridge.check_open()
        self._expire_listings()
        return (await self._index.refresh()).report

    async def report(self, *, wait: bool = True) -> IndexReport:
        """Report on the newest index build, with all changes and all vectors in it.

        Without *wait* it reports on what there is; ``index_building`` names what is being made.
        """
        self._bridge.check_open()
        return (await self._index.current()).report if wait else self._index.report()

    async def snapshot(self, *, vectors: bool = False) -> Snapshot:
        """Return the index as calls read it; with *vectors*, wait for those as a search does."""
        return (await self._newest(vectors=vectors)).snapshot

    async def _newest(self, *, vectors: bool, wait: bool = True) -> IndexBuild:
        self._bridge.check_open()
        self._servers.refresh_stale()
        waits = self.strategy != "auto" or (wait and self.options.search.first_search != "words")
        self._latest_build = await self._index.get(vectors=vectors, words_first=not waits)
        return self._latest_build

    @property
    def bridge(self) -> Bridge:
        """The background loop, for blocking callers."""
        return self._bridge

    @property
    def index_builds(self) -> int:
        """How many index builds there were."""
        return self._index.builds

    def close(self) -> None:
        """End every session, reap every child, stop the loop. Twice is harmless."""
        self._end_watch()
        self.telemetry.close()
        self._bridge.finish(lambda: self._index.finish(self._close_sources))
        # What waits to be written in a forked child is the parent's.
        if not self._bridge.is_left_behind:
            if self.cached_search.usage is not None:
                self.cached_search.usage.close()
            self.gate.auditor.close()
        self.store.close()

    async def aclose(self) -> None:
        """Do what `close` does without blocking the caller's loop."""
        await asyncio.to_thread(self.close)

    async def __aenter__(self) -> Self:
        """Return the gateway itself."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close it."""
        await self.aclose()

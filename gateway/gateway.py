"""`Gateway`: the wiring of all parts. It ranks and decides nothing itself.

* One gateway serves async callers on any loop and, through `SyncGateway`, blocking callers on any
  thread: sessions, builds and requests to models live on its own background loop.
* Registering is immediate and touches no network; the first search lists and builds.
"""

from __future__ import annotations

import asyncio
import reprlib
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from gateway.attention.attention import Attention
from gateway.call.calls import Calls
from gateway.call.hooks import all_hooks
from gateway.call.resources import ResourceLibrary
from gateway.catalog.catalog import Catalog
from gateway.embed.protocol import Embedder, resolve_embedder
from gateway.errors import missing_plugin
from gateway.index.graph_documents import GraphSource, source_of
from gateway.index.indexer import Indexer, Progress
from gateway.mcp.servers import server_target
from gateway.options import Options
from gateway.options.environment import resolved
from gateway.options.search import check_strategy
from gateway.plugin_manager import load_plugins
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Clock, SingleFlight
from gateway.runtime.delegation import async_call_of, call_of
from gateway.runtime.telemetry import MeterProvider, Telemetry, TracerProvider
from gateway.runtime.vectors import VectorStore
from gateway.search.cached_search import Caches, SearchParts, cached_search
from gateway.search.edges import Edges
from gateway.search.learned import make_usage_log
from gateway.search.normalize import Normalizer
from gateway.search.request import SearchArguments, prepare
from gateway.search.searches import Searches
from gateway.servers.config_files import Configured
from gateway.servers.configuration import Configuration
from gateway.servers.servers import Servers
from gateway.sources.entries import ENTRIES
from gateway.sources.protocol import Transform
from gateway.storage.protocol import Store, watch
from gateway.stores import resolve_store
from gateway.types import (
    ANYONE,
    Access,
    Caller,
    Filters,
    Hints,
    RankingPolicy,
    SearchResult,
    Strategy,
)
from gateway.types.access import NO_ACCESS_RULE


class Gateway:
    """A searchable, callable catalog of tools.

    Add tools and servers (`add_tool`, `add_server`, `add_config`), then `search` and `invoke`. End
    it with ``async with`` or `aclose`. Blocking code calls `close`, and `SyncGateway` for the rest.

    A gateway is composed of parts, such as `servers`; most of its methods are methods of a part.

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
        self.caches = self._make_caches(clock) if caches is None else caches
        self.store = resolve_store(self.options, store, vectors=vector_store)
        self.bridge = Bridge()
        own = store is not None
        tables = self.plugins.tables
        self.servers = Servers(self.bridge, self.store, self.options, tables, own=own, clock=clock)
        own = own or vector_store is not None
        index = self._make_index(source_of(graph), own, clock, progress)
        self.searches = self._make_searches(index, normalizer, clock)
        self._make_others()

    def _make_caches(self, clock: Clock) -> Caches:
        return Caches.of(self.options.cache, clock=clock, on_event=self.telemetry.cache_event)

    def _make_index(
        self, graph: GraphSource | None, own: bool, clock: Clock, progress: Progress | None
    ) -> Indexer:
        return Indexer(
            registry=self.servers.registry,
            embedder=self.embedder if self.strategy != "graph" else None,
            store=self.store.vectors,
            graph=graph,
            options=self.options,
            entities=self.servers.entities,
            telemetry=self.telemetry,
            flights=SingleFlight[object](self.bridge.submit),
            clock=clock,
            progress=progress or (lambda *_: None),
            own_store=own,
        )

    def _make_searches(
        self, index: Indexer, normalizer: Normalizer | None, clock: Clock
    ) -> Searches:
        usage = make_usage_log(
            self.plugins.tables("register_usage_log"),
            self.options.usage,
            store=self.store,
            telemetry=self.telemetry,
            clock=clock,
            submit=self.bridge.submit,
        )
        forms = self.plugins.tables("register_query_forms") if self.options.search.spelling else {}
        parts = SearchParts(
            options=self.options.search,
            strategy=self.strategy,
            embedder=self.embedder,
            normalizer=normalizer,
            correct=forms["corrected"]() if "corrected" in forms else None,
            signals=self.plugins.objects("register_signals"),
            rankings=self.plugins.tables("register_rankings"),
            usage=usage,
            caches=self.caches,
            submit=self.bridge.submit,
            telemetry=self.telemetry,
        )
        searches = Searches(index, self.servers, cached_search(parts), self.plugins.diagnostics)
        for part in (index, self.servers.pool, searches.cached):
            self.telemetry.observe(part.gauges)
        return searches

    def _make_others(self) -> None:
        """Make the parts that need a search or the index."""
        servers, snapshot, usage = self.servers, self.searches.snapshot, self.searches.cached.usage
        parts = {"options": self.options, "store": self.store, "telemetry": self.telemetry}
        hooks = self.plugins.objects("register_call_hooks", **parts)
        if usage is not None:
            hooks.append(usage)
        self.hooks = all_hooks(hooks, self.options.audit)
        self.calls = Calls(
            snapshot=snapshot, registry=servers.registry, telemetry=self.telemetry, hooks=self.hooks
        )
        self.library = ResourceLibrary(
            servers.registry, snapshot, servers.pool.capabilities, self.hooks
        )
        self.edges = Edges(snapshot, self.telemetry, self.plugins.tables("register_edge_proposals"))
        self.catalog = Catalog(
            servers.entries.store,
            snapshot,
            servers.mark_entries,
            servers.catalog_options,
            self.bridge.check_open,
            servers.pool.resolve_filters,
            self.hooks.change,
        )
        change = self.hooks.change
        self.configuration = Configuration(servers, change)
        self.attention = Attention(
            servers, self.catalog, self.plugins, self.searches.newest, change
        )
        self.user_sign_ins = servers.sign_ins
        self._end_watch = watch(self.store, servers.take_change)

    def __repr__(self) -> str:
        """Return the strategy, the servers and, after the first build, the number of tools."""
        build, names = self.searches.latest, sorted(self.servers.registry.all().keys() - {ENTRIES})
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
            ranking: Weighs the evidence: the strategy, or a policy of `gateway.search.rank`.
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
        asked = SearchArguments(
            query,
            queries=queries,
            context=context,
            context_summary=context_summary,
            limit=limit,
            filters=self.servers.pool.resolve_filters(filters),
            ranking=ranking,
            diversify=diversify,
            display_limit=display_limit,
            caller=caller,
            explain=explain,
        )
        request, notes = prepare(asked, self.options.search)
        return await self.searches.search(request, notes, wait=wait, task=task)

    def add_server(  # noqa: PLR0913  (keyword-only options of the public API)
        self,
        name: str,
        *,
        command: str | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        server: object | None = None,
        hints: Mapping[str, Hints] | None = None,
        trusted: bool = False,
        transforms: Sequence[Transform] = (),
        access: Access = NO_ACCESS_RULE,
    ) -> None:
        """Register an MCP server; it is started or called when something needs its tools.

        Give one of *command* (a child process over stdio), *url* (streamable HTTP) or *server*
        (a server object of the mcp package in this process).

        Args:
            name: How it is called here: at most 64 characters of ``[A-Za-z0-9_.-]``.
            command: The program, run without a shell.
            args: Its arguments.
            env: Added to a safe base environment.
            cwd: Its working folder.
            url: Where it listens.
            headers: Sent with every request; keep secrets in the environment.
            server: The object itself, or a `HttpServer` that signs in.
            hints: More to find its tools by, by the names that are shown.
            trusted: Whether the host stands in for what it says of its tools.
            transforms: What is shown of its tools, such as ``Filter(deny=("delete_*",))``.
            access: Whether what it has may be found, and by which callers.

        Raises:
            ConfigError: If not exactly one of the three is given, or the name is taken or
                illegal.
            ClosedError: After `close`.
        """
        reached = {"command": command, "args": args, "env": env, "cwd": cwd}
        target = server_target(name, server, {**reached, "url": url, "headers": headers})
        shown = tuple(transforms)
        entry = Configured(target=target, transforms=shown, access=access, trusted=trusted)
        self.servers.add(name, entry, hints)

    # Methods of the parts, with their arguments and docstrings.
    next_steps = async_call_of("searches", Searches.next_steps)
    list_tools = async_call_of("searches", Searches.list_tools)
    refresh = async_call_of("searches", Searches.refresh)
    report = async_call_of("searches", Searches.report)
    snapshot = async_call_of("searches", Searches.snapshot)
    invoke = async_call_of("calls", Calls.invoke)
    read = async_call_of("library", ResourceLibrary.read)
    prompt = async_call_of("library", ResourceLibrary.prompt)
    add_tool = call_of("servers", Servers.add_tool)
    remove_tool = call_of("servers", Servers.remove_tool)
    add_openapi = call_of("servers", Servers.add_openapi)
    add_virtual_server = call_of("servers", Servers.add_virtual)
    add_source = call_of("servers", Servers.add_source)
    remove_server = async_call_of("servers", Servers.remove)
    server_states = call_of("servers", Servers.states)
    set_rules = call_of("servers", Servers.set_rules)
    set_policies = call_of("servers", Servers.set_policies)
    reread_graph = call_of("servers", Servers.reread_graph)
    original = call_of("servers", Servers.original)
    audience = call_of("servers", Servers.audience)
    add_config = call_of("configuration", Configuration.add)
    reload = async_call_of("configuration", Configuration.reload)
    issues = async_call_of("attention", Attention.issues)
    pin = call_of("attention", Attention.pin)
    approve = async_call_of("attention", Attention.approve)
    accept = async_call_of("attention", Attention.accept)
    disable = async_call_of("attention", Attention.disable)
    retry = async_call_of("attention", Attention.retry)
    sign_in = async_call_of("attention", Attention.sign_in)
    graph = async_call_of("edges", Edges.graph)
    export_graph = async_call_of("edges", Edges.export)
    propose_edges = async_call_of("edges", Edges.propose)

    @property
    def usage(self) -> Any:
        """The log of calls and searches, a `gateway.plugins.usage.history.UsageTracker`.

        Raises:
            ConfigError: The plugin ``usage`` is not loaded.
        """
        if self.searches.cached.usage is None:
            raise missing_plugin("Gateway.usage", "usage")
        return self.searches.cached.usage

    @property
    def gate(self) -> Any:
        """The hook of policies, limits and the audit log: `gateway.hooks.named("access")` now."""
        warnings.warn('Gateway.gate is now hooks.named("access")', DeprecationWarning, stacklevel=2)
        return self.hooks.named("access")

    @property
    def index_builds(self) -> int:
        """How many index builds there were."""
        return self.searches.index.builds

    def close(self) -> None:
        """End every session, reap every child, stop the loop. Twice is harmless."""
        self._end_watch()
        self.telemetry.close()
        self.bridge.finish(lambda: self.searches.index.finish(self.servers.close))
        # What waits to be written in a forked child is the parent's.
        if not self.bridge.is_left_behind:
            self.hooks.close()
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

"""The class `Gateway`, which connects the parts."""

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
from gateway.embed.protocol import Embedder, choose_strategy
from gateway.errors import missing_plugin
from gateway.index.graph_documents import GraphSource, source_of
from gateway.index.indexer import Indexer, Progress
from gateway.mcp.servers import server_target
from gateway.options import Options
from gateway.options.environment import resolved
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
    """A catalog of tools that can be searched and called.

    Use it in ``async with``, or call `aclose`. Blocking code uses `SyncGateway`.

    Args:
        strategy: Ranking by ``graph`` (and words), ``embeddings`` (vectors) or ``auto`` (all). None
            is ``auto`` if *embedder* is given or the extra ``local`` is installed, else ``graph``.
        embedder: ``"local"``, a name that a plugin registers, or an `Embedder`.
        normalizer: Chat client that rewrites queries in English; None uses the original query.
        graph: Markdown-LD documents of the host: a folder, a file, documents or a function.
        store, vector_store: Storage of all data, or of vectors only; None uses *options*.
        caches: Caches shared with other gateways; None creates new ones.
        tracer_provider, meter_provider: Receivers of spans and metrics; None is the process's.
        progress: Called during index builds with the stage, the steps done and the steps in total.

    Raises:
        ConfigError: If an argument is invalid. `MissingExtraError` if a package is missing.

    Example:
        >>> gateway = Gateway()
        >>> tool_id = gateway.add_tool(lambda: "Hello", name="greet", description="Greet a person")
        >>> (await gateway.invoke(tool_id)).text
        'Hello'
        >>> await gateway.aclose()
    """

    def __init__(  # noqa: PLR0913  (keyword-only options of the public API)
        self,
        *,
        strategy: Strategy | None = None,
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
        self.plugins = load_plugins(self.options.plugins)
        embedders = self.plugins.tables("register_embedders")
        self.strategy, self.embedder, self._reason = choose_strategy(strategy, embedder, embedders)
        self.telemetry = Telemetry(
            tracer_provider=tracer_provider,
            meter_provider=meter_provider,
            capture_content=self.options.capture_content,
        )
        if caches is None:
            caches = Caches.of(self.options.cache, clock=clock, on_event=self.telemetry.cache_event)
        self.caches = caches
        self.store = resolve_store(self.options, store, vectors=vector_store)
        self.bridge = Bridge()
        tables = self.plugins.tables
        self.servers = Servers(
            self.bridge, self.store, self.options, tables, own=store is not None, clock=clock
        )
        custom = store is not None or vector_store is not None
        index = self._make_index(source_of(graph), custom, clock, progress)
        self.searches = self._make_searches(index, normalizer, clock)
        self._make_other_parts()

    def _make_index(
        self, graph: GraphSource | None, own: bool, clock: Clock, progress: Progress | None
    ) -> Indexer:
        return Indexer(
            registry=self.servers.registry,
            embedder=self.embedder if self.strategy != "graph" else None,
            store=self.store.vectors,
            graph=graph,
            options=self.options,
            edge_sources=self.plugins.objects("register_edges", options=self.options.graph),
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

    def _make_other_parts(self) -> None:
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
        build, names = self.searches.latest, sorted(self.servers.registry.all().keys() - {ENTRIES})
        tools = "" if build is None else f", tools={build.report.tools}"
        strategy = f"strategy={self.strategy!r}, reason={self._reason!r}"
        return f"Gateway({strategy}, sources={reprlib.repr(names)}{tools})"

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
        wait: bool | float = True,
        task: str | None = "",
    ) -> SearchResult:
        """Find tools. The ``diagnostics`` of the result contain the problems of optional stages.

        Args:
            query: Description of the task in any language; None or blank lists the catalog by name.
            queries: One query for each step of a task, in place of *query*; the results alternate.
            limit: Number of matches, 1 to 50; None is 5.
            context: Further facts about the task, as JSON.
            context_summary: Further facts about the task, in words.
            filters: Conditions for matches; None finds enabled tools with status active or beta.
            ranking: The gateway's strategy, or a policy of `gateway.search.rank`.
            diversify: Limit each kind to 0.6 of the matches while other kinds have candidates.
            display_limit: Number of the *limit* matches to return, without supplements; 0 is all.
            caller: The user for whom the search is made.
            explain: Fill ``scoring``, ``ranks``, ``filtered``, for *caller* or the given `Caller`.
            wait: Wait until new tools are embedded (unless ``first_search`` is ``words``); or wait
                for at most this number of seconds, if few tools are embedded.
            task: As for `invoke`; None does not record the search.

        Raises:
            InvalidRequestError, ClosedError: If an argument is invalid or the gateway is closed.

        Example:
            >>> result = await gateway.search("add numbers")
            >>> [match.name for match in result.matches]
            ['add']
        """
        arguments = SearchArguments(
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
        request, notes = prepare(arguments, self.options.search)
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
        """Register an MCP server. It is started or connected when its tools are needed.

        Args:
            name: Name of the server in the catalog: at most 64 characters of ``[A-Za-z0-9_.-]``.
            command: Program to run over stdio, without a shell; or give either *url* or *server*.
            args: Arguments of the program.
            env: Variables added to a safe base environment.
            cwd: Working folder of the program.
            url: Address of a server with streamable HTTP.
            headers: Headers of every request; keep secrets in the environment.
            server: `HttpServer`, or a server object of the mcp package in this process.
            hints: Search hints, keyed by the exposed names of tools.
            trusted: True if the host vouches for the server's statements about its tools.
            transforms: Changes to the server's tools, such as ``Filter(deny=("delete_*",))``.
            access: Visibility of the server and its tools, and required scopes.

        Raises:
            ConfigError, ClosedError: If an argument is invalid, or the gateway is closed.

        Example:
            >>> gateway.add_server("files", command="npx", args=["-y", "files-server"])
        """
        reached = {"command": command, "args": args, "env": env, "cwd": cwd}
        target = server_target(name, server, {**reached, "url": url, "headers": headers})
        transforms = tuple(transforms)
        entry = Configured(target=target, transforms=transforms, access=access, trusted=trusted)
        self.servers.add(name, entry, hints)

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
        """Log of calls and searches. Raises `ConfigError` if the plugin ``usage`` is not loaded."""
        if self.searches.cached.usage is None:
            raise missing_plugin("Gateway.usage", "usage")
        return self.searches.cached.usage

    @property
    def gate(self) -> Any:
        """Deprecated: use ``gateway.hooks.named("access")``."""
        warnings.warn('Gateway.gate is now hooks.named("access")', DeprecationWarning, stacklevel=2)
        return self.hooks.named("access")

    @property
    def index_builds(self) -> int:
        """Number of index builds so far."""
        return self.searches.index.builds

    def close(self) -> None:
        """End all sessions, child processes and the background loop. May be called twice."""
        self._end_watch()
        self.telemetry.close()
        self.bridge.finish(lambda: self.searches.index.finish(self.servers.close))
        # In a forked child, the unwritten records belong to the parent process.
        if not self.bridge.is_left_behind:
            self.hooks.close()
        self.store.close()

    async def aclose(self) -> None:
        """Close the gateway without blocking the caller's event loop."""
        await asyncio.to_thread(self.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

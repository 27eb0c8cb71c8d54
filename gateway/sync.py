"""The blocking twin of `Gateway`. Delegates; decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from gateway.catalog.catalog import Page
from gateway.catalog.entries import Entry
from gateway.gateway import Gateway
from gateway.index.graph_documents import GraphFormat
from gateway.index.tool_graph import ToolNetwork
from gateway.registration.config_reload import Reloaded
from gateway.search.expand.edge_proposals import EdgeProposals, Proposer
from gateway.types import (
    Content,
    Entity,
    Filters,
    IndexReport,
    InvokeResult,
    JsonObject,
    Kind,
    Match,
    PromptResult,
    RankingPolicy,
    SearchResult,
)


class SyncCatalog:
    """A `Catalog` for code without an event loop.

    Args:
        gateway: The gateway of the catalog.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def put(self, *entries: Entry) -> tuple[str, ...]:
        """See `Catalog.put`."""
        return self._gateway.bridge.call(lambda: self._gateway.catalog.put(*entries))

    def remove(self, key: str) -> bool:
        """See `Catalog.remove`."""
        return self._gateway.bridge.call(lambda: self._gateway.catalog.remove(key))

    def entries(self) -> Sequence[Entry]:
        """See `Catalog.entries`."""
        return self._gateway.bridge.call(self._gateway.catalog.entries)

    def get(self, key: str, filters: Filters | None = None) -> Entity | None:
        """See `Catalog.get`."""
        return self._gateway.bridge.call(lambda: self._gateway.catalog.get(key, filters))

    def list(self, filters: Filters | None = None, *, after: str = "", limit: int = 100) -> Page:
        """See `Catalog.list`."""
        return self._gateway.bridge.call(
            lambda: self._gateway.catalog.list(filters, after=after, limit=limit)
        )

    def tags(self, filters: Filters | None = None) -> Mapping[str, int]:
        """See `Catalog.tags`."""
        return self._gateway.bridge.call(lambda: self._gateway.catalog.tags(filters))


class SyncLibrary:
    """A `ResourceLibrary` for code without an event loop.

    Args:
        gateway: The gateway of the resources and prompts.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def entities(self, kind: Kind) -> tuple[Entity, ...]:
        """See `ResourceLibrary.entities`."""
        return self._gateway.bridge.call(lambda: self._gateway.library.entities(kind))

    def read(self, resource: str) -> tuple[Content, ...]:
        """See `ResourceLibrary.read`."""
        return self._gateway.bridge.call(lambda: self._gateway.library.read(resource))

    def prompt(self, prompt: str, arguments: Mapping[str, str]) -> PromptResult:
        """See `ResourceLibrary.prompt`."""
        return self._gateway.bridge.call(lambda: self._gateway.library.prompt(prompt, arguments))

    def complete(self, kind: Kind, name: str, params: JsonObject) -> JsonObject:
        """See `ResourceLibrary.complete`."""
        return self._gateway.bridge.call(lambda: self._gateway.library.complete(kind, name, params))


class SyncGateway:
    """A `Gateway` for code without an event loop, on any thread.

    Args:
        gateway: The one that does the work; it may serve async callers at the same time.

    Every method raises what its async twin raises, and RuntimeError on the gateway's own loop.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def __repr__(self) -> str:
        """Return the name of the class and its gateway."""
        return f"SyncGateway({self.gateway!r})"

    @property
    def catalog(self) -> SyncCatalog:
        """The blocking twin of `Gateway.catalog`."""
        return SyncCatalog(self.gateway)

    @property
    def library(self) -> SyncLibrary:
        """The blocking twin of `Gateway.library`."""
        return SyncLibrary(self.gateway)

    def search(  # noqa: PLR0913  (those of `Gateway.search`)
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
        tenant: str = "",
    ) -> SearchResult:
        """See `Gateway.search`."""
        return self.gateway.bridge.call(
            lambda: self.gateway.search(
                query,
                queries=queries,
                limit=limit,
                context=context,
                context_summary=context_summary,
                filters=filters,
                ranking=ranking,
                diversify=diversify,
                display_limit=display_limit,
                tenant=tenant,
            )
        )

    def next_steps(
        self,
        tools: Sequence[str],
        *,
        query: str = "",
        limit: int = 5,
        filters: Filters | None = None,
        tenant: str = "",
    ) -> tuple[Match, ...]:
        """See `Gateway.next_steps`."""
        return self.gateway.bridge.call(
            lambda: self.gateway.next_steps(
                tools, query=query, limit=limit, filters=filters, tenant=tenant
            )
        )

    def list_tools(self, filters: Filters | None = None) -> tuple[Entity, ...]:
        """See `Gateway.list_tools`."""
        return self.gateway.bridge.call(lambda: self.gateway.list_tools(filters))

    def invoke(
        self,
        tool: str,
        arguments: JsonObject | None = None,
        *,
        call_id: str = "",
        scopes: frozenset[str] = frozenset(),
        task: str = "",
        tenant: str = "",
    ) -> InvokeResult:
        """See `Gateway.invoke`."""
        return self.gateway.bridge.call(
            lambda: self.gateway.invoke(
                tool, arguments, call_id=call_id, scopes=scopes, task=task, tenant=tenant
            )
        )

    def read(self, resource: str) -> tuple[Content, ...]:
        """See `Gateway.read`."""
        return self.gateway.bridge.call(lambda: self.gateway.read(resource))

    def prompt(self, prompt: str, arguments: Mapping[str, str] | None = None) -> PromptResult:
        """See `Gateway.prompt`."""
        return self.gateway.bridge.call(lambda: self.gateway.prompt(prompt, arguments))

    def remove_server(self, name: str) -> bool:
        """See `Gateway.remove_server`."""
        return self.gateway.bridge.call(lambda: self.gateway.remove_server(name))

    def reload(self) -> Reloaded:
        """See `Gateway.reload`."""
        return self.gateway.bridge.call(self.gateway.reload)

    def refresh(self) -> IndexReport:
        """See `Gateway.refresh`."""
        return self.gateway.bridge.call(self.gateway.refresh)

    def report(self, *, wait: bool = True) -> IndexReport:
        """See `Gateway.report`."""
        return self.gateway.bridge.call(lambda: self.gateway.report(wait=wait))

    def export_graph(self, form: GraphFormat = "turtle", *, centre: str = "", hops: int = 1) -> str:
        """See `Gateway.export_graph`."""
        return self.gateway.bridge.call(
            lambda: self.gateway.export_graph(form, centre=centre, hops=hops)
        )

    def graph(self) -> ToolNetwork:
        """See `Gateway.graph`."""
        return self.gateway.bridge.call(self.gateway.graph)

    def propose_edges(self, proposer: Proposer, *, servers: Sequence[str] = ()) -> EdgeProposals:
        """See `Gateway.propose_edges`."""
        return self.gateway.bridge.call(
            lambda: self.gateway.propose_edges(proposer, servers=servers)
        )

    def close(self) -> None:
        """See `Gateway.close`."""
        self.gateway.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Close the gateway."""
        self.close()

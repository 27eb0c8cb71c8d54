"""A search-only copy of a gateway's catalog with different texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.catalog.catalog import Catalog
from gateway.embed.documents import embed_documents
from gateway.embed.protocol import Embedder
from gateway.index.compiler import SnapshotCompiler
from gateway.index.snapshot import Snapshot
from gateway.options import Options
from gateway.plugins.quality.evaluation import Searchable
from gateway.runtime.telemetry import Telemetry
from gateway.search.cached_search import CachedSearch
from gateway.search.request import SearchArguments, prepare
from gateway.search.searches import Searches
from gateway.storage.protocol import Store
from gateway.types import ANYONE, Caller, Entity, Filters, Match, SearchResult, Strategy


class Tunable(Searchable, Protocol):
    """Parts of a `Gateway` that tuning uses."""

    embedder: Embedder | None
    telemetry: Telemetry
    store: Store

    @property
    def searches(self) -> Searches:
        """Searches, whose settings a copy uses."""

    @property
    def catalog(self) -> Catalog:
        """Catalog, which stores the rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A search-only copy of a gateway with different texts."""

    gateway: Tunable
    options: Options
    strategy: Strategy
    index: Snapshot
    find: CachedSearch

    async def snapshot(self, *, vectors: bool = False) -> Snapshot:
        """Return the index of the copy."""
        del vectors
        return self.index

    async def search(
        self,
        query: str | None = None,
        *,
        limit: int | None = None,
        filters: Filters | None = None,
        caller: Caller = ANYONE,
        task: str | None = "",
    ) -> SearchResult:
        """Find tools, as the gateway does."""
        arguments = SearchArguments(query, limit=limit, filters=filters or Filters(), caller=caller)
        request, notes = prepare(arguments, self.options.search)
        return await self.find(self.index, request, notes, task=task)

    async def next_steps(
        self, tools: Sequence[str], *, query: str = "", limit: int = 5, caller: Caller = ANYONE
    ) -> tuple[Match, ...]:
        """Return the gateway's suggestions, which do not depend on the texts."""
        return await self.gateway.next_steps(tools, query=query, limit=limit, caller=caller)


async def variant_of(gateway: Tunable, snapshot: Snapshot, entities: Iterable[Entity]) -> Variant:
    """Return a copy of *gateway* that searches *entities* instead of those in *snapshot*.

    Only vectors of new texts are written to the store.
    """
    compiler = SnapshotCompiler(gateway.options.graph)
    compiler.prepare(entities)
    if gateway.embedder and snapshot.vectors is not None:
        embedding = await embed_documents(
            compiler.vectors.missing_texts,
            embedder=gateway.embedder,
            store=gateway.store.vectors,
            telemetry=gateway.telemetry,
        )
        compiler.vectors.add(embedding.rows)
    return Variant(
        gateway=gateway,
        options=gateway.options,
        strategy=gateway.strategy,
        index=compiler.compile(),
        find=gateway.searches.cached.without_normalizer(),
    )

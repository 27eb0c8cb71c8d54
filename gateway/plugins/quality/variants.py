"""A catalog in which some texts are others, to be searched beside the gateway's own."""

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
    """What is tuned: a `Gateway`."""

    embedder: Embedder | None
    telemetry: Telemetry
    store: Store

    @property
    def searches(self) -> Searches:
        """The searches of the gateway."""

    @property
    def catalog(self) -> Catalog:
        """What keeps the rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A gateway with other texts, which only searches."""

    gateway: Tunable
    options: Options
    strategy: Strategy
    index: Snapshot
    find: CachedSearch

    async def snapshot(self, *, vectors: bool = False) -> Snapshot:
        """Return the index."""
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
        """Find tools as the gateway does."""
        asked = SearchArguments(query, limit=limit, filters=filters or Filters(), caller=caller)
        request, notes = prepare(asked, self.options.search)
        return await self.find(self.index, request, notes, task=task)

    async def next_steps(
        self, tools: Sequence[str], *, query: str = "", limit: int = 5, caller: Caller = ANYONE
    ) -> tuple[Match, ...]:
        """Suggest what the gateway does: other texts change no next step."""
        return await self.gateway.next_steps(tools, query=query, limit=limit, caller=caller)


async def variant_of(gateway: Tunable, snapshot: Snapshot, entities: Iterable[Entity]) -> Variant:
    """Return *gateway* as it would search if *entities* were those of its *snapshot*.

    New texts are embedded, and their vectors kept with the others. Nothing else is written.
    """
    compiler = SnapshotCompiler(gateway.options.graph)
    compiler.prepare(entities)
    if gateway.embedder and snapshot.vectors is not None:
        found = await embed_documents(
            compiler.vectors.missing_texts,
            embedder=gateway.embedder,
            store=gateway.store.vectors,
            telemetry=gateway.telemetry,
        )
        compiler.vectors.add(found.rows)
    return Variant(
        gateway=gateway,
        options=gateway.options,
        strategy=gateway.strategy,
        index=compiler.compile(),
        find=gateway.searches.cached.without_normalizer(),
    )

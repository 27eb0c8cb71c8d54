"""Texts that wait for the embedder, and the order in which they are embedded.

* Texts of listed servers are embedded while a build lists others. The build reads their vectors
  from the store.
* Texts of the tools whose words fit a waiting search best come first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from gateway.embed.documents import DocumentVectors, embed_documents, embed_in_parts
from gateway.embed.protocol import Embedder, Preparable, is_preparing
from gateway.errors import attempt
from gateway.index.entity_rows import EntityRows, with_rows
from gateway.index.entity_vectors import texts_of
from gateway.index.snapshot import Snapshot
from gateway.runtime.cache import SingleFlight
from gateway.runtime.garbage import LARGE_CATALOG
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import VectorStore, top
from gateway.types import Diagnostic

_FIRST_TOOLS = 64
"""Maximum number of tools whose texts are embedded first for one waiting query."""
_NO_COST = DocumentVectors(rows={})


@dataclass(eq=False, repr=False, kw_only=True)
class TextQueue:
    """Embeds the texts of one catalog. Other threads may only use `waiting`."""

    embedder: Embedder | None
    store: VectorStore
    telemetry: Telemetry
    flights: SingleFlight[object]
    progress: Callable[[str, int, int], None]
    """See `gateway.index.indexer.Progress`."""
    done: tuple[int, int] = field(default=(0, 0), init=False)
    """Progress of embedding: (texts embedded, texts in total)."""
    is_listing: bool = field(default=False, init=False)
    """True while a build lists servers."""
    _queries: list[str] = field(default_factory=list, init=False)
    """Queries of the searches that wait for vectors."""
    _listed: list[str] = field(default_factory=list, init=False)
    """Texts of listed servers that are not embedded yet."""
    _early: DocumentVectors = field(default=_NO_COST, init=False)
    """Cost of the texts that were embedded during listing."""
    _refused: Mapping[str, str] = field(default_factory=dict, init=False)
    """Reasons of the texts that the service refused since the build began, keyed by text."""

    def __post_init__(self) -> None:
        self._embed = partial(embed_documents, store=self.store, telemetry=self.telemetry)

    @contextmanager
    def waiting(self, queries: Sequence[str]) -> Iterator[None]:
        """Embed the texts that fit *queries* first, while the block runs."""
        self._queries += queries
        try:
            yield
        finally:
            for query in queries:
                self._queries.remove(query)

    def start_listed(self, texts: Iterable[str]) -> None:
        """Start to embed *texts* of a listed server."""
        self._listed += texts
        self.flights.start("listed", self.embed_listed)

    async def embed_listed(self) -> None:
        """Embed and store the texts of listed servers, until the build has listed all servers."""
        await attempt(self.flights.run("prepare", self.prepare))
        while self.embedder and self.is_listing and self._listed:
            texts, self._listed = [*dict.fromkeys(self._listed)], []
            embed = partial(self._embed, embedder=self.embedder)
            cost = await embed_in_parts(
                texts, embed, _drop, lambda *_: None, lambda: not self.is_listing
            )
            # The build tries failed texts again, and reports their failures.
            self._early = self._early.followed_by(replace(cost, refused={}, diagnostics=()))
            if cost.failed or cost.store_faults:
                return

    async def embed(
        self, vectors: EntityRows, snapshot: Snapshot | None, *, limit: int | None = None
    ) -> DocumentVectors:
        """Embed the missing texts of *vectors*, or only the first ones if a search waits.

        With *limit*, which begins a build, embed nothing if more texts lack a stored vector.

        Returns:
            The cost, failures, and all texts refused since the build began, without vectors.
        """
        if self.embedder is None:
            return _NO_COST
        if is_build := limit is not None:
            self._refused, self._listed = {}, []
        if faults := await with_rows(vectors, vectors.load):
            return replace(_NO_COST, diagnostics=faults)
        missing = [text for text in vectors.missing_texts if text not in self._refused]
        total = len(missing) if is_build else max(self.done[1], len(missing))
        before, queries = total - len(missing), [*self._queries]
        # Indexing the vectors of a large catalog in parts would need the memory twice.
        is_whole = is_build or snapshot is None or len(snapshot.entities) >= LARGE_CATALOG
        dimensions = snapshot.dimensions if snapshot else None
        cost = await embed_in_parts(
            _first_of(missing, queries, snapshot) if snapshot and not is_whole else missing,
            partial(self._embed, embedder=self.embedder, dimensions=dimensions, max_new=limit),
            lambda rows: with_rows(vectors, vectors.add, rows),
            lambda done, _: self._on_embedded(before + done, total),
            lambda: not is_whole and self._queries != queries,
        )
        self.telemetry.store_failed("vectors", cost.store_faults)
        early, self._early = self._early, _NO_COST
        self._refused = {**self._refused, **cost.refused}
        return replace(early.followed_by(cost), refused=self._refused)

    def _on_embedded(self, done: int, total: int) -> None:
        before, self.done = self.done, (done, total)
        if before != self.done:
            self.progress("embeddings", done, total)

    async def wait_until_prepared(self, limit_s: float | None) -> bool:
        """Wait for the embedder's model. Return True if it is not ready after *limit_s* seconds."""
        if is_preparing(self.embedder):
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await attempt(self.flights.run("prepare", self.prepare))
        return is_preparing(self.embedder)

    async def prepare(self) -> None:
        """Prepare the embedder's model. Raises like `Preparable.prepare`."""
        if isinstance(self.embedder, Preparable) and self.embedder.preparing:
            self.progress("model", 0, 1)
            try:
                await self.embedder.prepare()
            finally:
                self.progress("model", 1, 1)


async def _drop(_rows: object) -> tuple[Diagnostic, ...]:
    return ()


def _first_of(missing: Sequence[str], queries: Sequence[str], snapshot: Snapshot) -> Sequence[str]:
    """Return the *missing* texts of the tools that fit *queries*, best tools first; or else all."""
    first: dict[str, None] = {}
    for query in queries:
        scores = snapshot.lexical.match(query).scores
        best = top(scores, _FIRST_TOOLS)
        for position in best[scores[best] > 0].tolist():
            whole, name, examples = texts_of(snapshot.entities[position])
            first |= dict.fromkeys((whole, name, *examples))
    wanted = {*missing} if first else set()
    return [text for text in first if text in wanted] or missing

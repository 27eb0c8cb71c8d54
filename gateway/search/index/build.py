"""Index builds: one at a time, whoever asks; readers keep the snapshot they have.

* A change of the registrations is awaited by the next search: what was added is found.
* What failed (a source, an embedder) is tried again after a while, in the background: a dead
  server makes nobody wait twice.
* Only new or changed texts are embedded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from gateway.cache import Clock, SingleFlight
from gateway.catalog.refresh import Catalog, Listed, Registry, list_sources
from gateway.config import GraphOptions
from gateway.embed import yardstick
from gateway.embed.cached import DocumentVectors, VectorStore, document_vectors, text_key
from gateway.embed.protocol import Embedder
from gateway.embed.yardstick import Yardstick
from gateway.search.index.documents import GraphSource, load
from gateway.search.index.kept import Texts
from gateway.search.index.snapshot import Snapshot, Snapshots
from gateway.telemetry import Telemetry
from gateway.types import Diagnostic, IndexReport
from gateway.vectors import Vector

Progress = Callable[[str, int, int], None]
"""Told a stage (``servers``, ``embeddings``), how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A snapshot and what it was made of."""

    generation: int
    snapshot: Snapshot
    listed: Mapping[str, Listed]
    report: IndexReport
    retry_at: float | None = None
    """When to try again what failed; None if nothing did."""


def _silent(_stage: str, _done: int, _total: int) -> None:
    return


class Indexer:
    """Keeps the current snapshot of one gateway."""

    def __init__(  # noqa: PLR0913  (keyword-only, wired in one place)
        self,
        registry: Registry,
        *,
        embedder: Embedder | None,
        store: VectorStore,
        graph: GraphSource | None,
        derive: GraphOptions,
        reserved: frozenset[str],
        telemetry: Telemetry,
        flights: SingleFlight[Built],
        clock: Clock,
        retry_after_s: float,
        progress: Progress | None = None,
    ) -> None:
        self._registry = registry
        self._embedder = embedder
        self._store = store
        self._graph = graph
        self._derive = derive
        self._reserved = reserved
        self._telemetry = telemetry
        self._flights = flights
        self._clock = clock
        self._retry_after_s = retry_after_s
        self._progress = progress or _silent
        self._built: Built | None = None
        self._catalog = Catalog(reserved=reserved)
        self._snapshots = Snapshots(derive)
        self._whole = True
        """Whether the last build came to its end."""
        self._measured: dict[str, Vector] = {}
        """The vectors of the texts by which the model is measured, by key."""
        self.builds = 0
        """How many builds there were."""

    async def current(self) -> Built:
        """Give the newest build; make it first if the registrations changed."""
        while True:
            built = self._built
            if built is not None and built.generation == self._registry.generation:
                if built.retry_at is not None and self._clock() >= built.retry_at:
                    self._flights.start("build", self._build)
                return built
            await self._flights.run("build", self._build)

    async def refresh(self) -> Built:
        """List every source again, build, and give the build."""
        self._registry.touch_all()
        return await self.current()

    async def _build(self) -> Built:
        began = time.perf_counter()
        labels: dict[str, str | int | float | bool] = {}
        with (
            self._telemetry.span("gateway.index.build") as span,
            self._telemetry.timed("gateway.index.build.duration", labels),
        ):
            built = await self._make()
            report = replace(built.report, duration_s=time.perf_counter() - began)
            span.set_attribute("gateway.index.entities", report.entities)
            span.set_attribute("gateway.index.embedded", report.embedded_texts)
            span.set_attribute("gateway.index.graph_edges", report.graph_edges)
        self._telemetry.record("gateway.index.entities", report.entities)
        self._built = replace(built, report=report)
        return self._built

    async def _make(self) -> Built:
        generation = self._registry.generation
        registrations = self._registry.all()
        before = self._built
        self._progress("servers", 0, len(registrations))
        listed = await list_sources(
            registrations, before.listed if before else {}, telemetry=self._telemetry
        )
        self._progress("servers", len(registrations), len(registrations))
        documents, unread = await load(self._graph)
        if not self._whole:
            # A build that ended early leaves half a change behind: begin with nothing.
            self._catalog = Catalog(reserved=self._reserved)
            self._snapshots = Snapshots(self._derive)
        self._whole = False
        turnover = self._catalog.change(registrations, listed)
        texts = self._snapshots.texts
        texts.change(turnover.gone, turnover.new)
        vectors = await self._vectors(texts)
        notes = [*_listing_notes(listed), *self._catalog.notes, *unread, *vectors.diagnostics]
        incomplete = _incomplete(texts) if self._embedder is not None else []
        notes += incomplete
        snapshot = self._snapshots.change(
            turnover,
            version=self.builds + 1,
            documents=documents,
            diagnostics=notes,
            yardstick=self._yardstick(texts),
        )
        self._whole = True
        self.builds += 1
        again = bool(incomplete) or any(each.failed for each in listed.values())
        return Built(
            generation=generation,
            snapshot=snapshot,
            listed=listed,
            report=_report(generation, snapshot, vectors),
            retry_at=self._clock() + self._retry_after_s if again else None,
        )

    async def _vectors(self, texts: Texts) -> DocumentVectors:
        if self._embedder is None or not texts.wanted:
            return DocumentVectors(rows={})
        before = self._built
        measures = {text_key(text): text for text in self._measures(texts)}
        unmeasured = (text for key, text in measures.items() if key not in self._measured)
        vectors = await document_vectors(
            sorted({*texts.wanted.values(), *unmeasured}),
            embedder=self._embedder,
            store=self._store,
            telemetry=self._telemetry,
            dimensions=before.snapshot.dimensions if before else None,
            progress=lambda done, total: self._progress("embeddings", done, total),
        )
        texts.embedded(vectors.rows)
        self._measured |= {key: vectors.rows[key] for key in measures if key in vectors.rows}
        return vectors

    def _measures(self, texts: Texts) -> tuple[str, ...]:
        """Give the texts by which the model is measured, if the catalog is worth it."""
        if self._embedder is None or texts.count < yardstick.WORTH:
            return ()
        return yardstick.texts(self._embedder.info)

    def _yardstick(self, texts: Texts) -> Yardstick | None:
        return yardstick.of(self._embedder, self._measured if self._measures(texts) else {})


def _listing_notes(listed: Mapping[str, Listed]) -> list[Diagnostic]:
    return [note for each in listed.values() for note in each.listing.diagnostics]


def _incomplete(texts: Texts) -> list[Diagnostic]:
    if not texts.wanted:
        return []
    detail = f"{len(texts.rows)} of {texts.count} texts have a vector"
    return [Diagnostic(stage="embed", code="vectors_incomplete", detail=detail)]


def _report(generation: int, snapshot: Snapshot, vectors: DocumentVectors) -> IndexReport:
    graph = snapshot.graph
    return IndexReport(
        generation=generation,
        entities=len(snapshot.entities),
        vectors=0 if snapshot.vectors is None else snapshot.vectors.mean.count,
        embedded_texts=vectors.embedded,
        tokens=vectors.tokens,
        graph_nodes=graph.index.node_count if graph else 0,
        graph_edges=graph.index.edge_count if graph else 0,
        diagnostics=snapshot.diagnostics,
    )

"""Index builds: one at a time for all callers; readers keep the snapshot they have.

* The next search waits for a change of the registrations to be built in: what was added is found.
* Only new or changed texts are embedded, in the background, after the build.
* A search waits for the vectors that are still to come as long as they come: once none came for
  ``SearchOptions.query_timeout_s``, or the embedder failed, searches go on with the vectors there
  are, until another comes. With ``first_search="words"`` a search waits for at most 64 texts.
* What failed (a source, an embedder) is tried again after a while, in the background: no caller
  waits twice for a dead server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gateway.embed.protocol import Embedder
from gateway.index.graph_documents import GraphSource, load
from gateway.index.snapshot import BuildResult, Snapshot
from gateway.options import Options
from gateway.options.environment import index_path
from gateway.runtime.cache import Clock, SingleFlight
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import VectorStore
from gateway.sources.entries import ENTRIES
from gateway.sources.registry import ListResult, Registration, Registry, list_sources
from gateway.types import Diagnostic, IndexReport
from graphs.markdown.document import Document

if TYPE_CHECKING:
    from gateway.index.builder import SnapshotBuilder
    from gateway.index.storage import IndexStore

_FEW_TEXTS = 64
"""So few texts are embedded at once: a search waits for them even with ``first_search="words"``."""
Progress = Callable[[str, int, int], None]
"""Called with a stage (``servers`` or ``embeddings``), how much of it is done, and how much there
is of it: servers, or texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBuild:
    """A snapshot and what it was built from."""

    generation: int
    """Of the registrations; see `Registry.generation`."""
    listed: Mapping[str, ListResult]
    """By server."""
    result: BuildResult
    report: IndexReport
    fingerprint: str = ""
    """Of all that the snapshot is made of; empty if snapshots are not saved."""
    retry_at: float | None = None
    """When to try again what failed, by the clock of the `Indexer`; None if nothing did."""

    @property
    def snapshot(self) -> Snapshot:
        """The index."""
        return self.result.snapshot


def _no_progress(_stage: str, _done: int, _total: int) -> None:
    return


class Indexer:
    """Keeps the current snapshot of one gateway.

    Args:
        registry: The sources.
        embedder: None for an index without vectors.
        store: Where vectors are kept.
        graph: The host's graph documents, or where they are; None for none.
        options: All options of the gateway.
        own_store: Whether the host gave a store of its own: then snapshots are saved only where
            the options say so.
        reserved: Names that no tool may have.
        telemetry: Records each build.
        flights: Runs the work of this class on the gateway's loop, each kind once at a time.
        clock: Seconds that only grow.
        progress: Called with how far a build is.
        words_first: Whether an index that lacks vectors serves until they are made.
    """

    def __init__(  # noqa: PLR0913  (keyword-only, wired in one place)
        self,
        registry: Registry,
        *,
        embedder: Embedder | None,
        store: VectorStore,
        graph: GraphSource | None,
        options: Options,
        own_store: bool,
        reserved: frozenset[str],
        telemetry: Telemetry,
        flights: SingleFlight[object],
        clock: Clock,
        progress: Progress | None = None,
        words_first: bool = False,
    ) -> None:
        self._registry = registry
        self._embedder = embedder
        self._store = store
        self._options = options
        self._folder = index_path(options, own_store=own_store)
        self._saved = ""
        """The fingerprint of the snapshot that was saved or read last."""
        self._reserved = reserved
        self._graph = graph
        self._telemetry = telemetry
        self._flights = flights
        self._clock = clock
        self._progress = progress or _no_progress
        self._words_first = words_first
        self._embedded = 0, 0
        """How many of how many new texts have a vector."""
        self._stalled_at: tuple[int, int] | None = None
        """How far the vectors were when a search gave up waiting for them, or they failed."""
        self._newest: IndexBuild | None = None
        self.builds = 0
        """How many builds there were."""

    @cached_property
    def _builder(self) -> SnapshotBuilder:
        from gateway.index.builder import SnapshotBuilder  # noqa: PLC0415  (an import needs no graph)

        return SnapshotBuilder(
            embedder=self._embedder,
            store=self._store,
            graph_options=self._options.graph,
            reserved=self._reserved,
            telemetry=self._telemetry,
            progress=self._on_embedded,
        )

    @cached_property
    def _index_store(self) -> IndexStore | None:
        from gateway.index.storage import IndexStore  # noqa: PLC0415  (an import needs no graph)

        return (
            IndexStore(folder=self._folder, options=self._options.index) if self._folder else None
        )

    async def current(self) -> IndexBuild:
        """Return the newest build with all its vectors; build it first if something changed."""
        while True:
            build = await self.get()
            if not build.result.missing:
                return build
            await self._flights.run("embed", self._embed)

    async def get(self, *, vectors: bool = False) -> IndexBuild:
        """Return the newest build; build it first if something changed.

        Args:
            vectors: Whether to wait for the vectors that it lacks, as the head of this module says.
        """
        while True:
            build = self._fresh()
            if build is None:
                await self._flights.run("build", self._build)
            elif not (vectors and build.result.missing and await self._wait_for_vectors(build)):
                return build

    async def _wait_for_vectors(self, build: IndexBuild) -> bool:
        """Return whether more vectors are there now; False once it is not worth waiting."""
        if self._words_first and build.result.missing > _FEW_TEXTS:
            return False
        while self._stalled_at != self._embedded:
            before, limit = self._embedded, asyncio.timeout(self._options.search.query_timeout_s)
            try:
                async with limit:
                    await self._flights.run("embed", self._embed)
            except TimeoutError:
                if not limit.expired():
                    raise
            else:
                return True
            if self._embedded == before:
                self._stalled_at = before
        return False

    def _fresh(self) -> IndexBuild | None:
        """Return the newest build, or None if something changed since.

        What failed in it is tried again, in the background, if it is time.
        """
        build = self._newest
        if build is None or build.generation != self._registry.generation:
            return None
        if build.retry_at is not None and self._clock() >= build.retry_at:
            self._flights.start("build", self._build)
        return build

    def notes(self, build: IndexBuild) -> tuple[Diagnostic, ...]:
        """Return how far the vectors of *build* are, if it lacks some."""
        if not build.result.missing:
            return ()
        done, total = self._embedded
        return (_building("embed", f"{done} of {total} texts have a vector"),)

    def report(self) -> IndexReport:
        """Report on what is built now. What is missing is begun, and noted as being made."""
        build = self._fresh()
        if build is not None:
            notes, report = self.notes(build), build.report
        else:
            self._flights.start("build", self._build)
            report = self._newest.report if self._newest else IndexReport(generation=0)
            detail = "the catalog changed" if self._newest else "nothing is listed yet"
            notes = (_building("catalog", detail),)
        return replace(report, diagnostics=(*notes, *report.diagnostics))

    def _on_embedded(self, done: int, total: int) -> None:
        self._embedded = done, total
        self._progress("embeddings", done, total)

    async def refresh(self) -> IndexBuild:
        """List every source again, build, and return the build with all its vectors."""
        self._registry.mark_all_dirty()
        return await self.current()

    async def _build(self) -> None:
        """List what changed and build with the vectors that are kept; then embed the others."""
        with self._recorded() as began:
            generation, registrations = self._registry.generation, self._registry.all()
            previous = self._newest.listed if self._newest else {}
            servers = len(registrations.keys() - {ENTRIES})
            self._progress("servers", 0, servers)
            listed = await list_sources(registrations, previous, telemetry=self._telemetry)
            self._progress("servers", servers, servers)
            result, fingerprint = await self._load_or_build(registrations, listed)
            self.builds += 1
            self._publish(generation, listed, result, fingerprint, began)
        if result.missing:
            self._flights.start("embed", self._embed)

    async def _load_or_build(
        self, registrations: Mapping[str, Registration], listed: Mapping[str, ListResult]
    ) -> tuple[BuildResult, str]:
        """Read the saved snapshot at the first build, if there is one; else build."""
        notes = [note for each in listed.values() for note in each.listing.diagnostics]
        documents: Sequence[Document] | None = None
        faults: Sequence[Diagnostic] = ()
        if not isinstance(self._graph, str | Path):
            documents, faults = await load(self._graph)
        fingerprint = ""
        if self._index_store is not None:
            fingerprint = self._fingerprint(registrations, listed, documents)
            if not self.builds:
                snapshot, unreadable = self._index_store.load(fingerprint)
                if snapshot is not None:
                    self._saved = fingerprint
                    return BuildResult(
                        snapshot=snapshot.with_diagnostics(notes), saved=True
                    ), fingerprint
                notes += unreadable
        if documents is None:
            documents, faults = await load(self._graph)
        result = await self._builder.build(
            registrations, listed, documents, diagnostics=[*notes, *faults]
        )
        return result, fingerprint

    def _fingerprint(
        self,
        registrations: Mapping[str, Registration],
        listed: Mapping[str, ListResult],
        documents: Sequence[Document] | None,
    ) -> str:
        from gateway.index import storage  # noqa: PLC0415  (an import needs no graph)

        graph: object = documents
        if isinstance(self._graph, str | Path):
            graph = storage.fingerprint_of_files(Path(self._graph))
        model = self._embedder.info if self._embedder else None
        settings = (model, self._options.graph, sorted(self._reserved), graph)
        return storage.fingerprint_of(registrations, listed, settings)

    async def _save(self) -> None:
        """Save the newest snapshot, unless it is saved or incomplete."""
        build, store = self._newest, self._index_store
        if build is None or store is None or build.fingerprint == self._saved:
            return
        if build.result.missing or build.result.failed:
            return
        self._saved = build.fingerprint
        notes = await asyncio.to_thread(store.save, build.fingerprint, build.snapshot)
        if notes and self._newest is build:
            result = replace(build.result, snapshot=build.snapshot.with_diagnostics(notes))
            report = replace(build.report, diagnostics=result.snapshot.diagnostics)
            self._newest = replace(build, result=result, report=report)

    async def finish(self, then: Callable[[], Awaitable[None]]) -> None:
        """Save the newest snapshot, then await *then*, in any case."""
        try:
            await self._flights.run("save", self._save)
        finally:
            await then()

    async def _embed(self) -> None:
        """Embed what the newest build lacks, and put the vectors into the newest build."""
        while self._newest and self._newest.result.missing:
            with self._recorded() as began:
                embedded = await self._builder.embed()
                build = self._newest
                if embedded.failed:
                    self._stalled_at = self._embedded
                result = self._builder.add_vectors(build.result, embedded)
                self._publish(build.generation, build.listed, result, build.fingerprint, began)

    @contextmanager
    def _recorded(self) -> Iterator[float]:
        """Trace and time a build."""
        labels: dict[str, str | int | float | bool] = {}
        with (
            self._telemetry.span("gateway.index.build") as span,
            self._telemetry.timed("gateway.index.build.duration", labels),
        ):
            yield time.perf_counter()
            if self._newest:
                report = self._newest.report
                span.set_attribute("gateway.index.entities", report.entities)
                span.set_attribute("gateway.index.embedded", report.embedded_texts)
                span.set_attribute("gateway.index.graph_edges", report.graph_edges)
                self._telemetry.record("gateway.index.entities", report.entities)

    def _publish(
        self,
        generation: int,
        listed: Mapping[str, ListResult],
        result: BuildResult,
        fingerprint: str,
        began: float,
    ) -> None:
        failed = result.failed or any(each.failed for each in listed.values())
        self._newest = IndexBuild(
            generation=generation,
            listed=listed,
            result=result,
            fingerprint=fingerprint,
            report=_report(generation, result, time.perf_counter() - began),
            retry_at=self._clock() + self._options.upstream.retry_after_s if failed else None,
        )
        if not self._saved and not result.missing:
            # Later ones are saved at the end: each costs as much as the whole.
            self._flights.start("save", self._save)


def _building(stage: Literal["catalog", "embed"], detail: str) -> Diagnostic:
    advice = f"{detail}; to wait: await gateway.report()"
    return Diagnostic(stage=stage, code="index_building", detail=advice)


def _report(generation: int, result: BuildResult, duration_s: float) -> IndexReport:
    snapshot, graph = result.snapshot, result.snapshot.graph
    return IndexReport(
        generation=generation,
        entities=len(snapshot.entities),
        tools=int(snapshot.eligibility.has("kind", "tool").sum()),
        vectors=0 if snapshot.vectors is None else snapshot.vectors.count,
        embedded_texts=result.embedded,
        tokens=result.tokens,
        graph_nodes=graph.index.node_count if graph else 0,
        graph_edges=len(graph.index.edges) if graph else 0,
        duration_s=duration_s,
        saved=result.saved,
        diagnostics=snapshot.diagnostics,
    )

"""Index builds: one at a time, whoever asks; readers keep the snapshot they have.

* The next search waits for a change of the registrations to be built in: what was added is found.
* What failed (a source, an embedder) is tried again after a while, in the background: nobody waits
  twice for a dead server.
* Only new or changed texts are embedded.
* A build is *early* if it lacks vectors because nobody was to wait for them. `Indexer.current`
  waits for all vectors, `soonest` as the options say, `listed` for none, and `searched` as long as
  vectors keep coming.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gateway.embed.protocol import Embedder
from gateway.index.graph_documents import GraphSource, load
from gateway.index.keeping import Ground, Keeper
from gateway.index.made import Made, Make
from gateway.index.shelf import Found, Shelf, mark_of_files
from gateway.index.snapshot import Snapshot
from gateway.options import Options
from gateway.options.environment import index_path
from gateway.runtime.cache import Clock, SingleFlight
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import VectorStore
from gateway.sources.entries import ENTRIES
from gateway.sources.registry import ListResult, Registration, Registry, list_sources
from gateway.types import Diagnostic, IndexReport

_SOON = 64
"""So few texts are embedded at once: a search waits for them even where an early index serves."""
Progress = Callable[[str, int, int], None]
"""Called with a stage (``servers`` or ``embeddings``), how much of it is done, and how much there
is of it: servers, or texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A snapshot and what it was made of."""

    generation: int
    """Of the registrations; see `Registry.generation`."""
    snapshot: Snapshot
    listed: Mapping[str, ListResult]
    """By server."""
    report: IndexReport
    retry_at: float | None = None
    """When to try again what failed, by the clock of the `Indexer`; None if nothing did."""
    early: bool = False
    """Whether it lacks vectors because nobody was to wait for them."""
    few: bool = False
    """Whether it lacks so few that a search waits for them even so."""

    def settled(self, generation: int) -> Snapshot | None:
        """Give the snapshot, if it is that of *generation* and nothing in it is still to come."""
        whole = not self.early and self.retry_at is None
        return self.snapshot if whole and self.generation == generation else None


def _silent(_stage: str, _done: int, _total: int) -> None:
    return


class Indexer:
    """Keeps the current snapshot of one gateway.

    Args:
        registry: The sources.
        embedder: None for an index without vectors.
        store: Where vectors are kept.
        graph: The host's graph documents, or where they are; None for none.
        options: All options of the gateway.
        own_store: Whether the host gave a store of its own: then the index is saved only where the
            options say so.
        reserved: Names that no tool may have.
        telemetry: Told of each build.
        flights: Runs the work of this class on the gateway's loop, each kind once at a time.
        clock: Seconds that only grow.
        progress: Told how far a build is.
        early: Whether an index that lacks vectors serves until they are made.
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
        early: bool = False,
    ) -> None:
        self._registry = registry
        self._embedder = embedder
        self._store = store
        self._graph = graph
        self._options = options
        folder = index_path(options, own_store=own_store)
        shelf = Shelf(folder=folder, options=options.index) if folder else None
        info = embedder.info if embedder else None
        self._keeper = Keeper(shelf, info, options.graph, sorted(reserved)) if shelf else None
        self._reserved = reserved
        self._telemetry = telemetry
        self._flights = flights
        self._clock = clock
        self._progress = progress or _silent
        self._early = early
        self._hurried = asyncio.Event()
        """Set when somebody cannot wait for vectors: the build under way goes on without them."""
        self._patience = options.search.query_timeout_s
        self._listing = False
        """Whether sources are being listed: no vector can come meanwhile."""
        self._stalled: object = None
        """How far the vectors were when a search gave up waiting. While they are no further, the
        next search does not wait."""
        self._embedded = 0, 0
        """How many texts of how many new ones are embedded."""
        self._built: Built | None = None
        self._make_next: Make | None = None
        self.builds = 0
        """How many builds there were."""

    async def current(self) -> Built:
        """Give the newest build with all its vectors; make it first if something changed."""
        while True:
            built = self._fresh()
            if built is None:
                await self._flights.run("build", self._build)
            elif built.early:
                await self._flights.run("embed", self._embed)
            else:
                return built

    async def soonest(self) -> Built:
        """Give the newest build, also one that lacks vectors: they are then being made."""
        if not self._early:
            return await self.current()
        while (built := self._fresh()) is None or built.few:
            if built is None:
                await self._flights.run("build", self._build)
            else:
                await self._flights.run("embed", self._embed)
        if built.early:
            self._flights.start("embed", self._embed)
        return built

    async def listed(self) -> Built:
        """Give the newest build, and wait for no vectors; those it lacks are being made."""
        while (built := self._fresh()) is None:
            self._flights.start("hurry", self._hurry)
            await self._flights.run("build", self._build)
        if built.early:
            self._flights.start("embed", self._embed)
        return built

    async def searched(self) -> Built:
        """Give what a search may use: as `soonest`, or as `listed` once no vector comes any more.

        It waits for `SearchOptions.query_timeout_s`, and again as long as sources are being listed
        or vectors came meanwhile.
        """
        whole = self._fresh()
        if whole is not None and not whole.early:
            # Not under a timeout: that costs as much as a search that is remembered.
            self._stalled = None
            return whole
        while self._stalled != self._embedded:
            before, limit = self._embedded, asyncio.timeout(self._patience)
            try:
                async with limit:
                    return await self.soonest()
            except TimeoutError:
                if not limit.expired():
                    raise
            if not self._listing and self._embedded == before:
                break
        built = await self.listed()
        self._stalled = self._embedded if built.early else None
        return built

    async def _hurry(self) -> None:
        self._hurried.set()

    def _fresh(self) -> Built | None:
        """Give the newest build, or None if something changed since.

        What failed in it is tried again, in the background, if it is time.
        """
        built = self._built
        if built is None or built.generation != self._registry.generation:
            return None
        if built.retry_at is not None and self._clock() >= built.retry_at:
            self._flights.start("build", self._build)
        return built

    def notes(self, built: Built) -> tuple[Diagnostic, ...]:
        """Say how far its vectors are, if *built* lacks some."""
        if not built.early:
            return ()
        done, total = self._embedded
        return (_building("embed", f"{done} of {total} texts have a vector"),)

    def reported(self) -> IndexReport:
        """Report what is known now. What is missing is begun, and noted as being made."""
        built = self._fresh()
        if built is None:
            self._flights.start("build", self._build)
            report = self._built.report if self._built else IndexReport(generation=0)
            told = "the catalog changed" if self._built else "nothing is listed yet"
            notes: tuple[Diagnostic, ...] = (_building("catalog", told),)
        else:
            if built.early:
                self._flights.start("embed", self._embed)
            report, notes = built.report, self.notes(built)
        return replace(report, diagnostics=(*notes, *report.diagnostics))

    async def _embed(self) -> None:
        """Embed what is new, while early builds serve, then build with all of it.

        What was registered meanwhile, if it is too much for that build, takes another round.
        """
        while True:
            await self._making().embed()
            await self._flights.run("build", self._build)
            if self._built is not None and not self._built.early:
                return

    def _told(self, done: int, total: int) -> None:
        self._embedded = done, total
        self._progress("embeddings", done, total)

    async def refresh(self) -> Built:
        """List every source again, build, and give the build with all its vectors."""
        self._registry.mark_all_dirty()
        return await self.current()

    async def _build(self) -> Built:
        began = time.perf_counter()
        labels: dict[str, str | int | float | bool] = {}
        with (
            self._telemetry.span("gateway.index.build") as span,
            self._telemetry.timed("gateway.index.build.duration", labels),
        ):
            try:
                built = await self._make()
            finally:
                self._hurried.clear()
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
        servers = len(registrations.keys() - {ENTRIES})
        self._progress("servers", 0, servers)
        self._listing = True
        try:
            listed = await list_sources(
                registrations, before.listed if before else {}, telemetry=self._telemetry
            )
        finally:
            self._listing = False
        self._progress("servers", servers, servers)
        made, listed = await self._made(registrations, listed)
        self.builds += 1
        done, total = self._embedded
        unlisted = any(each.failed for each in listed.values())
        again = unlisted or not (made.complete or made.early)
        return Built(
            generation=generation,
            snapshot=made.snapshot,
            listed=listed,
            report=_report(generation, made),
            retry_at=self._clock() + self._options.upstream.retry_after_s if again else None,
            early=made.early,
            few=made.early and total - done <= _SOON,
        )

    async def _made(
        self, registrations: Mapping[str, Registration], listed: Mapping[str, ListResult]
    ) -> tuple[Made, Mapping[str, ListResult]]:
        """Read the saved index, if this is the first build and there is one; else make it.

        Returns:
            The index, and the listings it was made of, which were read again if need be.
        """
        read = None
        told: object = None
        if isinstance(self._graph, str | Path):
            told = mark_of_files(Path(self._graph))
        else:
            read = told = await load(self._graph)
        ground = Ground(registrations=registrations, listed=listed, documents=told)
        found = Found()
        if self._keeper and not self.builds:
            found = self._keeper.find(ground, version=1)
        if found.snapshot is not None:
            return Made(snapshot=found.snapshot, saved=True), listed
        whole = self._make_next is None or (self._built is not None and self._built.early)
        documents, unread = read or await load(self._graph)
        made = await self._making()(
            registrations,
            listed,
            documents,
            version=self.builds + 1,
            diagnostics=[*ground.notes, *found.diagnostics, *unread],
            most=_SOON if self._early else None,
        )
        if self._keeper and made.complete:
            self._keeper.made(ground, made.snapshot)
            if whole:
                self._flights.start("keep", self._keep)
        return made, listed

    async def _keep(self) -> None:
        """Save the index, where nobody waits for it."""
        if self._keeper:
            notes = await asyncio.to_thread(self._keeper.keep)
            if notes and self._built:
                snapshot = self._built.snapshot.told(notes)
                report = replace(self._built.report, diagnostics=snapshot.diagnostics)
                self._built = replace(self._built, snapshot=snapshot, report=report)

    async def finish(self, then: Callable[[], Awaitable[None]]) -> None:
        """Save the index if it changed since it was saved, then await *then*, in any case."""
        try:
            await self._flights.run("keep", self._keep)
        finally:
            await then()

    def _making(self) -> Make:
        if self._make_next is None:
            from gateway.index.builder import Making  # noqa: PLC0415  (a warm start needs none of it)

            self._make_next = Making(
                embedder=self._embedder,
                store=self._store,
                derive=self._options.graph,
                reserved=self._reserved,
                telemetry=self._telemetry,
                progress=self._told,
                hurried=self._hurried,
            )
        return self._make_next


def _building(stage: Literal["catalog", "embed"], told: str) -> Diagnostic:
    detail = f"{told}; to wait: await gateway.report()"
    return Diagnostic(stage=stage, code="index_building", detail=detail)


def _report(generation: int, made: Made) -> IndexReport:
    snapshot, graph = made.snapshot, made.snapshot.graph
    return IndexReport(
        generation=generation,
        entities=len(snapshot.entities),
        tools=int(snapshot.eligibility.has("kind", "tool").sum()),
        vectors=0 if snapshot.vectors is None else snapshot.vectors.mean.count,
        embedded_texts=made.embedded,
        tokens=made.tokens,
        graph_nodes=graph.index.node_count if graph else 0,
        graph_edges=graph.index.edge_count if graph else 0,
        saved=made.saved,
        diagnostics=snapshot.diagnostics,
    )

"""Builder of the index. Builds run one at a time, and running searches keep their snapshot.

* After a source changes, the next search waits for a new build.
* Only new or changed texts are embedded, in the background, once their server is listed.
* A search waits for missing vectors until none arrives for ``SearchOptions.query_timeout_s`` or the
  embedder fails. A search that words may answer waits for at most 64 texts. A search of a model
  waits for at most ``SearchOptions.first_search_wait_s``.
* Failed sources and embedders are retried later, in the background.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

from gateway.embed.documents import DocumentVectors
from gateway.embed.protocol import Embedder
from gateway.errors import Failed, attempt
from gateway.index.compiler import SnapshotCompiler
from gateway.index.edge_sources import EdgeSource
from gateway.index.entity_rows import load_rows, with_rows
from gateway.index.graph_documents import GraphSource, HostDocuments, files_digest
from gateway.index.snapshot import IndexBuild, Snapshot
from gateway.index.storage import IndexStore
from gateway.index.text_queue import TextQueue
from gateway.options import Options
from gateway.options.environment import index_path
from gateway.runtime.cache import Clock, SingleFlight
from gateway.runtime.garbage import LARGE_CATALOG, collection_paused, release_memory
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import VectorStore
from gateway.sources.entity_registry import EntityRegistry
from gateway.sources.registry import ListResult, Registry, list_sources
from gateway.types import Diagnostic, IndexReport
from gateway.types.access import access_key

_COUNTS = ("gateway.index.entities", "gateway.index.embedded", "gateway.index.graph_edges")
_FEW_TEXTS = 64
"""Maximum number of missing texts for which a search waits if words may answer it."""
_LOADING_S = 2.0
"""Maximum time, in seconds, that a search waits for a model to load if words may answer it."""
Progress = Callable[[str, int, int], None]
"""Called with a stage, the number of finished items and the total number. The stages are
``servers``, ``model`` and ``embeddings``, and their items servers, models and texts."""


@dataclass(eq=False, repr=False, kw_only=True)
class Indexer:
    """Builds and stores the current snapshot of one gateway."""

    registry: Registry
    embedder: Embedder | None
    """Embedder of texts. If None, the index has no vectors."""
    store: VectorStore
    graph: GraphSource | None
    options: Options
    own_store: bool
    """True if the host gave its own store. Snapshots are then saved only if options require it."""
    edge_sources: Sequence[EdgeSource]
    entities: EntityRegistry
    """Entities of the sources under their exposed names; filled by builds."""
    telemetry: Telemetry
    flights: SingleFlight[object]
    """Runs the work of this class on the gateway's loop, each kind once at a time."""
    clock: Clock
    progress: Progress
    builds: int = field(default=0, init=False)
    _stalled_at: tuple[int, int] | None = field(default=None, init=False)
    """Value of `TextQueue.done` when a search stopped waiting, or when embedding failed."""
    _newest: IndexBuild | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._folder = index_path(self.options, own_store=self.own_store)
        self._rows = load_rows(self.options, self.store, self.embedder)
        patience_s = self.options.search.query_timeout_s
        self._documents = HostDocuments(self.graph, patience_s=patience_s, flights=self.flights)
        self._texts = TextQueue(
            embedder=self.embedder,
            store=self.store,
            telemetry=self.telemetry,
            flights=self.flights,
            progress=self.progress,
        )

    @cached_property
    def _compiler(self) -> SnapshotCompiler:
        return SnapshotCompiler(self.options.graph, self._rows, self.edge_sources)

    @cached_property
    def _index_store(self) -> IndexStore | None:
        return IndexStore(self._folder, self.options.index) if self._folder else None

    async def current(self) -> IndexBuild:
        """Return the newest build with all its vectors; build first if a source or option changed.

        If the embedder's model cannot be prepared, a diagnostic says why.
        """
        preparing = self.flights.start("prepare", self._texts.prepare)
        while True:
            build = await self.get()
            if not build.missing:
                failed = await attempt(asyncio.shield(asyncio.wrap_future(preparing)))
                return build.without_model(failed) if isinstance(failed, Failed) else build
            await self.flights.run("embed", self._embed)

    async def get(
        self, *, vectors: bool = False, wait: bool | float = True, queries: Sequence[str] = ()
    ) -> IndexBuild:
        """Return the newest build; build first if a source or option changed.

        Args:
            vectors: True to wait for missing vectors, as described at the top of this module.
            wait: False if words may answer until the vectors are ready. A positive number of
                seconds if they may do so after this time.
            queries: Queries of a search that waits for a number of seconds. Texts that fit them are
                embedded first.
        """
        if vectors and wait and not isinstance(wait, bool):
            if not (await self.get()).snapshot.ranks_by_vectors():
                return await self._get_within(wait, queries)
            wait = False
        while True:
            build = self._current_or_none()
            if build is None:
                await self.flights.run("build", self._build)
            elif not (vectors and await self._wait_for_vectors(build, not wait)):
                return build

    async def _get_within(self, limit_s: float, queries: Sequence[str]) -> IndexBuild:
        with self._texts.waiting(queries), suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                return await self.get(vectors=True)
        return await self.get()

    async def _wait_for_vectors(self, build: IndexBuild, words_first: bool) -> bool:
        """Wait for more vectors. Return False if further waiting is not worthwhile."""
        has_many_missing = words_first and build.missing > _FEW_TEXTS
        # A loaded model is useless as long as the catalog lacks vectors.
        is_useless = has_many_missing and not build.snapshot.ranks_by_vectors()
        limit_s = _LOADING_S if words_first else None
        if (
            is_useless
            or await self._texts.wait_until_prepared(limit_s)
            or has_many_missing
            or not build.missing
        ):
            return False
        while self._stalled_at != self._texts.done:
            before, limit = self._texts.done, asyncio.timeout(self.options.search.query_timeout_s)
            try:
                async with limit:
                    await self.flights.run("embed", self._embed)
            except TimeoutError:
                if not limit.expired():
                    raise
            else:
                return True
            if self._texts.done == before:
                self._stalled_at = before
        return False

    def _current_or_none(self) -> IndexBuild | None:
        """Return the newest build, or None if it is outdated. Start a retry that is due."""
        build = self._newest
        if build is None or build.generation != self.registry.generation:
            return None
        is_due = build.retry_at is not None and self.clock() >= build.retry_at
        if is_due or self._has_gaps:
            self.flights.start("build", self._build)
        return build

    @property
    def _has_gaps(self) -> bool:
        return self._rows is not None and self._rows.has_gaps

    def notes(self, build: IndexBuild) -> tuple[Diagnostic, ...]:
        """Return a diagnostic with the progress of embedding, if *build* lacks vectors."""
        if not build.missing:
            return ()
        done, total = self._texts.done
        return (_building("embed", f"{done} of {total} texts have a vector"),)

    def report(self) -> IndexReport:
        """Return the report of the current build. If outdated, start a build and say so."""
        build = self._current_or_none()
        if build is not None:
            notes, report = self.notes(build), build.report
        else:
            self.flights.start("build", self._build)
            report = self._newest.report if self._newest else IndexReport(generation=0)
            detail = "the catalog changed" if self._newest else "nothing is listed yet"
            notes = (_building("catalog", detail),)
        return replace(report, diagnostics=(*notes, *report.diagnostics))

    async def refresh(self) -> IndexBuild:
        """List every source again and build. Return the build with all its vectors."""
        self.registry.mark_all_dirty()
        return await self.current()

    async def _build(self) -> None:
        """List changed sources and build with the stored vectors; then embed the missing texts."""
        with self._recorded("build") as began:
            generation, registrations = self.registry.generation, self.registry.all()
            build = self._newest
            self._texts.is_listing = True
            listed = await list_sources(
                registrations,
                build.listed if build else {},
                telemetry=self.telemetry,
                progress=partial(self.progress, "servers"),
                on_listed=self._embed_early,
            )
            self._texts.is_listing, build = False, self._newest
            made_of = build and not build.failed and (build.generation, build.listed)
            # If the same sources failed again, keep the index, so that cached results stay valid.
            if not build or self._has_gaps or made_of != (generation, listed):
                build = await self._load_or_compile(generation, listed)
                self.builds += 1
            self._publish(build, began)
        if build.missing:
            self.flights.start("embed", self._embed)

    def _embed_early(self, result: ListResult) -> None:
        """Embed the texts of a server while others are listed.

        Documents of the host may change any text, vectors in a database need no stored texts, and
        the texts of the last build may be in the embedder.
        """
        is_busy = self._newest is not None and self._newest.missing > 0
        if self.embedder and self.graph is None and self._rows is None and not is_busy:
            entities = self.entities.preview(result, self.registry.rules)
            self._texts.start_listed(self._compiler.texts(entities))

    async def _load_or_compile(
        self, generation: int, listed: Mapping[str, ListResult]
    ) -> IndexBuild:
        """Build from *listed*. The first build loads the saved snapshot if it exists."""
        notes = [note for result in listed.values() for note in result.listing.diagnostics]
        notes += self.entities.load_names(listed)
        path, store = self._documents.path, self._index_store
        rules = self.registry.rules.followed_by(
            *(result.listing.rules for result in listed.values())
        )
        documents, faults = ((), ()) if path else await self._documents.load()
        settings = (
            self.embedder and self.embedder.info,
            (self.options.graph, self.registry.visibility.hiding),
            [(source.name, source.version) for source in self.edge_sources],
            [(key, access_key(rule)) for key, rule in rules.rules],
            files_digest(path) if store and path else documents,
        )
        build = partial(IndexBuild, generation=generation, listed=listed)
        if store and not self.builds:
            saved, unreadable = store.load(listed, (*settings, *self.entities.naming))
            if saved is not None:
                return build(snapshot=saved.with_diagnostics(notes), saved=True)
            notes += unreadable
            self.telemetry.store_failed("index", [note.code for note in unreadable])
        if path:
            documents, faults = await self._documents.load()
        with collection_paused():
            self.entities.update(listed, rules, self.registry.visibility)
            self._compiler.prepare(self.entities.entities.values(), documents)
        vectors = self._compiler.vectors
        stored = await self._texts.embed(vectors, self._snapshot, limit=0)
        with collection_paused():
            notes += (*faults, *self.entities.notes, *dict.fromkeys(stored.diagnostics))
            snapshot = self._compiler.compile(documents=documents, diagnostics=notes)
        missing = vectors.missing if self.embedder else 0
        # Only saved snapshots need the naming, which contains all names of entities.
        naming = self.entities.naming if store else ()
        build = partial(build, settings=(*settings, *naming), failed=self._documents.is_late)
        cost = {"embedded": stored.embedded, "tokens": stored.tokens}
        return build(snapshot=snapshot, missing=missing, **cost)

    async def _embed(self) -> None:
        # The embedder may still have texts from the time of listing.
        await attempt(self.flights.run("listed", self._texts.embed_listed))
        while self._newest and self._newest.missing:
            with self._recorded("embed") as began:
                vectors = await self._texts.embed(self._compiler.vectors, self._snapshot)
                if vectors.failed:
                    self._stalled_at = self._texts.done
                self._publish(self._with_vectors(self._newest, vectors), began)

    @property
    def _snapshot(self) -> Snapshot | None:
        return self._newest.snapshot if self._newest else None

    def _with_vectors(self, build: IndexBuild, vectors: DocumentVectors) -> IndexBuild:
        rows, refused = self._compiler.vectors, vectors.refused
        missing = rows.missing - len(refused.keys() & rows.missing_texts)
        notes = [*build.snapshot.diagnostics, *vectors.diagnostics]
        notes += self._compiler.refusal_notes(refused)
        if missing and vectors.failed:
            done, total = self._texts.done
            detail = f"{done} of {total} texts have a vector"
            notes.append(Diagnostic(stage="embed", code="vectors_incomplete", detail=detail))
        return replace(
            build,
            snapshot=self._compiler.with_vectors(build.snapshot, tuple(dict.fromkeys(notes))),
            missing=0 if vectors.failed else missing,
            failed=build.failed or (vectors.failed and missing > 0),
            embedded=build.embedded + vectors.embedded,
            tokens=build.tokens + vectors.tokens,
        )

    @contextmanager
    def _recorded(self, step: Literal["build", "embed"]) -> Iterator[float]:
        name = f"gateway.index.{step}"
        operation = self.telemetry.operation(name, metric=f"{name}.duration", labels={})
        with operation.within():
            yield time.perf_counter()
            if self._newest:
                report = self._newest.report
                counts = report.entities, report.embedded_texts, report.graph_edges
                operation.describe(dict(zip(_COUNTS, counts, strict=True)))

    def _publish(self, build: IndexBuild, began: float) -> None:
        failed = build.failed or any(result.failed for result in build.listed.values())
        now, spent_s = self.clock(), time.perf_counter() - began
        retry_at = now + self.options.upstream.retry_after_s if failed else None
        build = build.under(self.registry.visibility)
        self._newest = replace(build, duration_s=spent_s, built_at=now, retry_at=retry_at)
        if len(build.snapshot.entities) >= LARGE_CATALOG:
            self.flights.start("release", partial(asyncio.to_thread, release_memory))
        if self._rows is not None and not build.missing:
            self.flights.start("rows", partial(with_rows, self._rows, self._rows.maintain))
        if self._index_store and not self._index_store.newest and not build.missing:
            # Later builds are only saved when the gateway closes, because saving is slow.
            self.flights.start("save", self._save)

    async def _save(self) -> None:
        build, store = self._newest, self._index_store
        if build is None or store is None or build.saved or build.missing or build.failed:
            return
        save = partial(store.save, build.listed, build.settings, build.snapshot)
        notes = await asyncio.to_thread(save)
        self.telemetry.store_failed("index", [note.code for note in notes])
        if notes and self._newest is build:
            self._newest = replace(build, snapshot=build.snapshot.with_diagnostics(notes))

    def gauges(self) -> Mapping[str, Mapping[str, float]]:
        """Return gauges of the newest build; see `Telemetry.observe`."""
        if (build := self._newest) is None:
            return {}
        done, total = self._texts.done
        return {
            **build.snapshot.gauges(),
            "gateway.index.age": {"": self.clock() - build.built_at},
            "gateway.embedding.queue": {"document": total - done if build.missing else 0},
        }

    async def finish(self, then: Callable[[], Awaitable[None]]) -> None:
        """Save the newest snapshot, then await *then*, even if saving fails."""
        try:
            await self.flights.run("save", self._save)
        finally:
            await then()


def _building(stage: Literal["catalog", "embed"], detail: str) -> Diagnostic:
    advice = f"{detail}; to wait: await gateway.report()"
    return Diagnostic(stage=stage, code="index_building", detail=advice)

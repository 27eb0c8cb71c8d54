"""Builds snapshots of what sources listed. Only new or changed texts are embedded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gateway.embed.cache import DocumentVectors, embed_documents
from gateway.embed.protocol import Embedder
from gateway.index.compiler import SnapshotCompiler
from gateway.index.snapshot import BuildResult
from gateway.options import GraphOptions
from gateway.runtime.garbage import collection_paused
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import VectorStore
from gateway.sources.registry import EntityRegistry, ListResult, Registration
from gateway.types import Diagnostic
from graphs.markdown.document import Document


class SnapshotBuilder:
    """Builds each snapshot of one catalog. Not for two builds at once.

    Args:
        embedder: None for an index without vectors.
        store: Where vectors persist.
        graph_options: Which edges are derived.
        reserved: Names that no tool may have.
        telemetry: Records the requests to the embedder.
        progress: Called with how many of how many new texts have a vector.
    """

    def __init__(
        self,
        *,
        embedder: Embedder | None,
        store: VectorStore,
        graph_options: GraphOptions,
        reserved: frozenset[str],
        telemetry: Telemetry,
        progress: Callable[[int, int], None],
    ) -> None:
        self._embedder = embedder
        self._store = store
        self._telemetry = telemetry
        self._progress = progress
        self._registry = EntityRegistry(reserved=reserved)
        self._compiler = SnapshotCompiler(graph_options)
        self._dimensions: int | None = None
        self._version = 0

    async def build(
        self,
        registrations: Mapping[str, Registration],
        listed: Mapping[str, ListResult],
        documents: Sequence[Document],
        *,
        diagnostics: Sequence[Diagnostic],
    ) -> BuildResult:
        """Build the next snapshot, with the vectors that are in memory or in the store.

        Args:
            registrations: The sources.
            listed: What each of them listed.
            documents: The host's own graph documents.
            diagnostics: What is known to be wrong so far.
        """
        with collection_paused():
            self._registry.update(registrations, listed)
            self._compiler.prepare(self._registry.entities.values())
        stored = await self._vectors(limit=0)
        with collection_paused():
            self._compiler.add_vectors(stored.rows)
            snapshot = self._compiler.compile(
                version=self._next_version(),
                documents=documents,
                diagnostics=[*diagnostics, *self._registry.notes, *stored.diagnostics],
            )
        self._dimensions = snapshot.dimensions
        missing = len(self._compiler.missing_texts) if self._embedder else 0
        return BuildResult(snapshot=snapshot, missing=missing)

    async def embed(self) -> DocumentVectors:
        """Embed the texts that have no vector, and keep the vectors for `add_vectors`."""
        vectors = await self._vectors()
        self._compiler.add_vectors(vectors.rows)
        return vectors

    def add_vectors(self, result: BuildResult, embedded: DocumentVectors) -> BuildResult:
        """Return *result* with the vectors that there are now.

        Args:
            result: Of the newest build.
            embedded: What `embed` returned.
        """
        missing = len(self._compiler.missing_texts)
        notes = [*result.snapshot.diagnostics, *embedded.diagnostics]
        if missing and embedded.failed:
            total = self._compiler.text_count
            detail = f"{total - missing} of {total} texts have a vector"
            notes.append(Diagnostic(stage="embed", code="vectors_incomplete", detail=detail))
        snapshot = self._compiler.with_vectors(
            result.snapshot, version=self._next_version(), diagnostics=tuple(dict.fromkeys(notes))
        )
        self._dimensions = snapshot.dimensions
        return replace(
            result,
            snapshot=snapshot,
            missing=0 if embedded.failed else missing,
            failed=result.failed or (embedded.failed and missing > 0),
            embedded=result.embedded + embedded.embedded,
            tokens=result.tokens + embedded.tokens,
        )

    def _next_version(self) -> int:
        self._version += 1
        return self._version

    async def _vectors(self, limit: int | None = None) -> DocumentVectors:
        texts = self._compiler.missing_texts
        if self._embedder is None or not texts:
            return DocumentVectors(rows={})
        return await embed_documents(
            sorted(texts),
            embedder=self._embedder,
            store=self._store,
            telemetry=self._telemetry,
            dimensions=self._dimensions,
            progress=self._progress,
            max_new=limit,
        )

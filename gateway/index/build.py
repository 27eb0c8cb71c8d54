"""What one index build made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.errors import Failed
from gateway.index.snapshot import Snapshot
from gateway.sources.registry import ListResult
from gateway.types import Diagnostic, IndexReport


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBuild:
    """A snapshot, what it was built from, and what it cost."""

    generation: int
    """Of the registrations; see `Registry.generation`."""
    listed: Mapping[str, ListResult]
    """By server."""
    settings: tuple[object, ...] = ()
    """What else the snapshot depends on; see `gateway.index.storage.IndexStore`."""
    snapshot: Snapshot
    saved: bool = False
    """Whether the snapshot was read as an earlier process saved it."""
    missing: int = 0
    """How many texts are still to be embedded."""
    failed: bool = False
    """Whether texts could not be embedded, or documents are late: try again after a while."""
    embedded: int = 0
    """How many texts were sent to the embedder."""
    tokens: int = 0
    """What the embedder reported for them."""
    duration_s: float = 0.0
    built_at: float = 0.0
    """By the clock of the `Indexer`."""
    retry_at: float | None = None
    """When to try again what failed, by the clock of the `Indexer`; None if nothing did."""

    @property
    def report(self) -> IndexReport:
        """What the build did."""
        snapshot, graph = self.snapshot, self.snapshot.graph
        has = snapshot.eligibility.has
        return IndexReport(
            generation=self.generation,
            entities=len(snapshot.entities),
            tools=int((has("kind", "tool") & has("described", False)).sum()),
            vectors=0 if snapshot.vectors is None else snapshot.vectors.count,
            embedded_texts=self.embedded,
            tokens=self.tokens,
            graph_nodes=graph.index.node_count if graph else 0,
            graph_edges=graph.edge_count if graph else 0,
            duration_s=self.duration_s,
            saved=self.saved,
            diagnostics=snapshot.diagnostics,
        )

    def without_model(self, failed: Failed) -> IndexBuild:
        """Return the same build with a diagnostic that says why the model is not ready."""
        note = Diagnostic(stage="embed", code="embedding_failed", detail=failed.reason)
        notes = tuple(dict.fromkeys((*self.snapshot.diagnostics, note)))
        return replace(self, snapshot=replace(self.snapshot, diagnostics=notes))

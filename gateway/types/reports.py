"""Reports on work on the catalog."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.types.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """What one index build did."""

    generation: int
    """Counts catalog changes; equal generations mean equal catalogs."""
    entities: int = 0
    tools: int = 0
    """How many of them are tools."""
    vectors: int = 0
    embedded_texts: int = 0
    """How many texts were sent to the embedder; the others came from the store."""
    tokens: int = 0
    graph_nodes: int = 0
    graph_edges: int = 0
    duration_s: float = 0.0
    saved: bool = False
    """Whether the index was read as an earlier process saved it, instead of made."""
    diagnostics: tuple[Diagnostic, ...] = ()

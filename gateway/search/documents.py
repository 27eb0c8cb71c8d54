"""The host's own graph documents, wherever they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from gateway.errors import ConfigError, Failed, attempt
from gateway.search.toolgraph import ToolGraph
from gateway.types import Diagnostic
from graphs import Document, GraphError, json_ld, read, turtle

GraphSource: TypeAlias = str | Path | Sequence[Document] | Callable[[], Sequence[Document]]
"""A folder, a file or a bundle on disk; documents; or a function that gives them at each build."""
GraphFormat = Literal["turtle", "json-ld"]


def export(graph: ToolGraph | None, form: GraphFormat) -> str:
    """Write *graph* as RDF; an empty catalog gives an empty graph.

    Raises:
        ConfigError: If *form* is neither ``turtle`` nor ``json-ld``.
    """
    facts = graph.facts if graph else ()
    if form == "turtle":
        return turtle(facts)
    if form == "json-ld":
        return json_ld(facts)
    raise ConfigError(f"unknown graph format {form!r}; it is turtle or json-ld")


async def load(source: GraphSource | None) -> tuple[tuple[Document, ...], tuple[Diagnostic, ...]]:
    """Read the documents of *source*; what cannot be read is a diagnostic, never an error."""
    if source is None:
        return (), ()
    found = await attempt(_load(source))
    if isinstance(found, Failed):
        told = isinstance(found.error, GraphError)
        detail = str(found.error) if told else found.reason
        return (), (Diagnostic(stage="graph", code="graph_document_invalid", detail=detail),)
    return found, ()


async def _load(source: GraphSource) -> tuple[Document, ...]:
    if isinstance(source, str | Path):
        return read(Path(source))
    return tuple(source() if callable(source) else source)

"""Graph documents of the host: loading from any source, and export of the graph."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import graphs
from gateway.errors import ConfigError, Failed, GatewayError, attempt, attempt_within
from gateway.index.snapshot import Snapshot, resolve
from gateway.index.tool_graph import ToolGraph
from gateway.options.validation import field_faults
from gateway.runtime.background_loop import in_thread
from gateway.runtime.cache import SingleFlight
from gateway.runtime.text import digest
from gateway.types import Caller, Diagnostic
from gateway.types.caller import filters_for
from graphs.errors import GraphError, Notice

GraphSource: TypeAlias = (
    "str | Path | Sequence[graphs.Document] | Callable[[], Sequence[graphs.Document]]"
)
"""Source of the host's graph documents: the path of a folder, file or bundle; a list of documents;
or a function that returns the documents and is called in each build."""
LoadedDocuments: TypeAlias = "tuple[tuple[graphs.Document, ...], tuple[Diagnostic, ...]]"
"""Documents that were read, and diagnostics about unreadable ones."""
PROPOSED = "proposed"
"""Name of the subfolder with proposed documents, which have no effect until a person accepts
them."""
RDF_FORMATS = ("turtle", "json-ld", "n-triples")
DIAGRAM_FORMATS = ("mermaid", "dot")
GraphFormat = Literal["turtle", "json-ld", "n-triples", "mermaid", "dot"]


def export(
    snapshot: Snapshot,
    form: GraphFormat,
    *,
    centre: str = "",
    hops: int = 1,
    caller: Caller | None = None,
) -> str:
    """Return the graph of *snapshot* as RDF or as a diagram.

    Args:
        snapshot: The index that contains the graph.
        form: ``turtle``, ``json-ld`` or ``n-triples`` for RDF; ``mermaid`` or ``dot`` for a
            diagram.
        centre: Tool in the centre of a diagram; empty for the whole graph.
        hops: Maximum distance from the centre, in edges.
        caller: Only entities visible to this caller are included. None: all entities.

    Raises:
        ConfigError: If *form* is unknown, or RDF is requested with a centre.
        UnknownToolError: If *centre* is not a tool.
    """
    graph = graph_of(snapshot, caller)
    if form in RDF_FORMATS:
        if centre:
            raise ConfigError(f"{form} has no centre: draw one with {', '.join(DIAGRAM_FORMATS)}")
        writers = {"turtle": graphs.to_turtle, "json-ld": graphs.to_json_ld}
        return writers.get(form, graphs.to_n_triples)(graph.facts)
    if form in DIAGRAM_FORMATS:
        node = node_named(snapshot, graph, centre, caller) if centre else None
        draw = graphs.to_mermaid if form == "mermaid" else graphs.to_dot
        return draw(graph.index, centre=node, hops=hops)
    forms = ", ".join((*RDF_FORMATS, *DIAGRAM_FORMATS))
    raise ConfigError(f"unknown graph format {form!r}; it is one of {forms}")


def graph_of(snapshot: Snapshot, caller: Caller | None = None) -> ToolGraph:
    """Return the part of the graph that is visible to *caller*; with None, the whole graph.

    An empty catalog has an empty graph.
    """
    graph = snapshot.graph or ToolGraph.of(graphs.compile_facts(()))
    if caller is None or snapshot.graph is None:
        return graph
    kinds = frozenset(entity.kind for entity in snapshot.entities)
    return graph.visible(snapshot.mask(filters_for(caller, kinds)))


def node_named(
    snapshot: Snapshot, graph: ToolGraph, tool: str, caller: Caller | None = None
) -> str:
    """Return the graph node of *tool*, an id or a name. Raises like `resolve`."""
    return graph.nodes[snapshot.position(resolve(snapshot, tool, filters_for(caller)).id)]


def source_of(source: GraphSource | None) -> GraphSource | None:
    """Return *source* after a check. Raise `ConfigError` if it has the wrong type."""
    if source is None or isinstance(source, str | Path) or callable(source):
        return source
    kind = type(source).__name__
    if isinstance(source, Sequence):
        others = [item for item in source if not isinstance(item, graphs.Document)]
        if not others:
            return source
        kind = f"a {kind} with {type(others[0]).__name__}"
    raise ConfigError(
        "graph must be a path, a Sequence of graphs.Document or a function that gives one, "
        f"got {kind}"
    )


class HostDocuments:
    """The host's graph documents, loaded again in each build.

    A build waits at most *patience_s* seconds for a source function.
    """

    def __init__(
        self, source: GraphSource | None, *, patience_s: float, flights: SingleFlight[Any]
    ) -> None:
        self.path = source if isinstance(source, str | Path) else None
        """File or folder of the documents; None if they are not on disk."""
        self._source = source
        self._patience_s = patience_s
        self._flights = flights
        self._pending: Future[LoadedDocuments] | None = None

    @property
    def is_late(self) -> bool:
        """True if the source function is still running. A later build will use its documents."""
        return self._pending is not None

    async def load(self) -> LoadedDocuments:
        """Read the documents. A diagnostic reports a source function that takes too long."""
        if not callable(self._source):
            return await load(self._source)
        if self._pending is None:
            self._pending = self._flights.start("documents", partial(load, self._source))
        timeout = GatewayError(
            f"the function that returns graph documents took longer than {self._patience_s} s "
            "(SearchOptions.query_timeout_s): searches go on without them until it is done"
        )
        answer = asyncio.shield(asyncio.wrap_future(self._pending))
        loaded = await attempt_within(answer, self._patience_s, timeout)
        if isinstance(loaded, Failed):
            return (), (_invalid_document(loaded.reason),)
        self._pending = None
        return loaded


async def load(source: GraphSource | None) -> LoadedDocuments:
    """Read the documents of *source*.

    Unreadable sources, documents and rules become diagnostics. All others are used.
    """
    if source is None:
        return (), ()
    loaded = await attempt(_load_source(source))
    if isinstance(loaded, Failed):
        detail = f"the source of graph documents failed ({loaded.reason}): it must return documents"
        is_ours = isinstance(loaded.error, GraphError)
        return (), (_invalid_document(str(loaded.error) if is_ours else detail),)
    documents, details = loaded
    return documents, tuple(map(_invalid_document, details))


async def _load_source(source: GraphSource) -> tuple[tuple[graphs.Document, ...], list[str]]:
    if isinstance(source, str | Path):
        collected, notices = graphs.collect(Path(source))
        documents = tuple(item for item in collected if not item.path.startswith(f"{PROPOSED}/"))
        return documents, _notice_lines(notices)
    read = await in_thread(lambda: tuple(source())) if callable(source) else source
    checked = [(item, field_faults(item)) for item in read]
    documents = tuple(item for item, faults in checked if not faults)
    notices = tuple(notice for document in documents for notice in document.notices)
    refusals = [f"document {item.id!r}: {'; '.join(faults)}" for item, faults in checked if faults]
    return documents, [*refusals, *_notice_lines(notices)]


def load_proposals(folder: Path | None) -> tuple[graphs.Document, ...]:
    """Read the proposed documents in a subfolder of *folder*; empty without a folder.

    Unreadable ones are skipped, because the build of the graph reports them.
    """
    if folder is None or not (folder / PROPOSED).is_dir():
        return ()
    documents, _ = graphs.collect(folder / PROPOSED)
    return tuple(replace(document, path=f"{PROPOSED}/{document.path}") for document in documents)


def _notice_lines(notices: Sequence[Notice]) -> list[str]:
    return [f"{notice.path}:{notice.line}: {notice.detail}" for notice in notices]


def files_digest(path: str | Path) -> str:
    """Return the digest of a file, or of all files in a folder; empty if it is unreadable."""
    try:
        files = sorted(Path(path).rglob("*")) if Path(path).is_dir() else [Path(path)]
        return digest(repr([(str(file), file.read_bytes()) for file in files if file.is_file()]))
    except OSError:
        return ""


def _invalid_document(detail: str) -> Diagnostic:
    return Diagnostic(stage="graph", code="graph_document_invalid", detail=detail)

"""The host's own graph documents, wherever they come from."""

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
"""A folder, a file or a bundle on disk; documents; or a function that gives them at each build."""
LoadedDocuments: TypeAlias = "tuple[tuple[graphs.Document, ...], tuple[Diagnostic, ...]]"
"""Documents, and what could not be read."""
PROPOSED = "proposed"
"""The part of a folder whose documents count for nothing: edges that wait for a decision."""
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
    """Write the graph of *snapshot* as RDF (``turtle``, ``json-ld``, ``n-triples``), or draw it.

    Args:
        snapshot: The index that holds the graph.
        form: Or ``mermaid``, ``dot``: a diagram.
        centre: For a diagram: the tool in its middle; empty draws everything.
        hops: How far from the centre, in edges.
        caller: The party that it is for; None is the host, which sees all.

    Raises:
        ConfigError: If there is no such form, or it has no centre.
        UnknownToolError: If *centre* is no tool.
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
    """Return what *caller* may see of the graph of *snapshot*; None is the host, which sees all.

    An empty catalog has an empty one.
    """
    graph = snapshot.graph or ToolGraph.of(graphs.compile_facts(()))
    if caller is None or snapshot.graph is None:
        return graph
    kinds = frozenset(entity.kind for entity in snapshot.entities)
    return graph.visible(snapshot.mask(filters_for(caller, kinds)))


def node_named(
    snapshot: Snapshot, graph: ToolGraph, tool: str, caller: Caller | None = None
) -> str:
    """Return the node of the one tool that *tool* names, as a call would name it.

    Raises:
        InvalidRequestError: If no tool, or more than one, has this name.
    """
    return graph.nodes[snapshot.position(resolve(snapshot, tool, filters_for(caller)).id)]


def source_of(source: GraphSource | None) -> GraphSource | None:
    """Return *source*, checked.

    Raises:
        ConfigError: It is no source of documents.
    """
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
    """The host's own graph documents, for builds that follow each other.

    Args:
        source: Where they are; None for none.
        patience_s: Seconds for which a build waits for a function that gives them.
        flights: Runs that function.
    """

    def __init__(
        self, source: GraphSource | None, *, patience_s: float, flights: SingleFlight[Any]
    ) -> None:
        self.path = source if isinstance(source, str | Path) else None
        """The file or folder, if they are in one."""
        self._source = source
        self._patience_s = patience_s
        self._flights = flights
        self._pending: Future[LoadedDocuments] | None = None

    @property
    def is_late(self) -> bool:
        """Whether the function is still at work: its documents are for a later build."""
        return self._pending is not None

    async def load(self) -> LoadedDocuments:
        """Read the documents; see `load`. A diagnostic says if the function takes too long."""
        if not callable(self._source):
            return await load(self._source)
        if self._pending is None:
            self._pending = self._flights.start("documents", partial(load, self._source))
        timeout = GatewayError(
            f"the function that gives graph documents took longer than {self._patience_s} s "
            "(SearchOptions.query_timeout_s): searches go on without them until it is done"
        )
        answer = asyncio.shield(asyncio.wrap_future(self._pending))
        found = await attempt_within(answer, self._patience_s, timeout)
        if isinstance(found, Failed):
            return (), (_invalid(found.reason),)
        self._pending = None
        return found


async def load(source: GraphSource | None) -> LoadedDocuments:
    """Read the documents of *source*.

    What cannot be read, a whole source, a document or a rule in it, is a diagnostic that says
    where; the rest is used.
    """
    if source is None:
        return (), ()
    found = await attempt(_load(source))
    if isinstance(found, Failed):
        detail = f"the source of graph documents failed ({found.reason}): it must give documents"
        is_ours = isinstance(found.error, GraphError)
        return (), (_invalid(str(found.error) if is_ours else detail),)
    documents, details = found
    return documents, tuple(map(_invalid, details))


async def _load(source: GraphSource) -> tuple[tuple[graphs.Document, ...], list[str]]:
    if isinstance(source, str | Path):
        found, notices = graphs.collect(Path(source))
        documents = tuple(each for each in found if not each.path.startswith(f"{PROPOSED}/"))
        return documents, _details(notices)
    read = await in_thread(lambda: tuple(source())) if callable(source) else source
    checked = [(each, field_faults(each)) for each in read]
    documents = tuple(each for each, faults in checked if not faults)
    notices = tuple(notice for document in documents for notice in document.notices)
    refusals = [f"document {each.id!r}: {'; '.join(faults)}" for each, faults in checked if faults]
    return documents, [*refusals, *_details(notices)]


def load_proposals(folder: Path | None) -> tuple[graphs.Document, ...]:
    """Read the documents of *folder* that are only proposed; none without a folder.

    Their paths begin as their folder is called. What cannot be read is left out: the build of the
    graph tells of it.
    """
    if folder is None or not (folder / PROPOSED).is_dir():
        return ()
    documents, _ = graphs.collect(folder / PROPOSED)
    return tuple(replace(each, path=f"{PROPOSED}/{each.path}") for each in documents)


def _details(notices: Sequence[Notice]) -> list[str]:
    return [f"{notice.path}:{notice.line}: {notice.detail}" for notice in notices]


def files_digest(path: str | Path) -> str:
    """Return the digest of a file, or of all files in a folder; empty if they cannot be read."""
    try:
        files = sorted(Path(path).rglob("*")) if Path(path).is_dir() else [Path(path)]
        return digest(repr([(str(file), file.read_bytes()) for file in files if file.is_file()]))
    except OSError:
        return ""


def _invalid(detail: str) -> Diagnostic:
    return Diagnostic(stage="graph", code="graph_document_invalid", detail=detail)

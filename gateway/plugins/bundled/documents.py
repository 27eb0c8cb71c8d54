"""The bundled documents, and the edges that they declare in a catalog.

* A document lists the tools by which it recognizes its server, as ``graph_entities``. It applies to
  each server that lists all of them. Therefore a server with a similar name gets nothing.
* If several documents apply to a server, the one that names most of its tools is used.
* Edges connect tools of one server only. Edges to missing tools are ignored, so that a document
  fits several versions of its server.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, KeysView, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import graphs
from gateway.index.edge_sources import ToolEdge
from gateway.runtime.text import digest
from gateway.types import Entity

FOLDER = Path(__file__).with_name("documents")
WEIGHT = 0.9
"""Certainty of bundled edges, so that equally strong edges of the host come first."""
_FINGERPRINT = re.compile(r"^graph_entities: *\[(.*)\]$", re.MULTILINE)


@dataclass(frozen=True)
class ServerDocument:
    """One bundled document.

    Args:
        name: Name of the file.
        text: Content of the file.
    """

    name: str
    text: str

    @cached_property
    def fingerprint(self) -> frozenset[str]:
        """Names of the tools by which the document recognizes its server."""
        # Only documents that apply are parsed as a whole, because parsing all takes 100 ms.
        found = _FINGERPRINT.search(self.text)
        return frozenset(re.split(r",\s*", found[1])) if found else frozenset()

    @cached_property
    def edges(self) -> tuple[graphs.Edge, ...]:
        """Edges between names of tools."""
        return graphs.parse(self.text, path=self.name).edges

    @cached_property
    def tools(self) -> frozenset[str]:
        """Names of all tools in the document."""
        ends = {end for edge in self.edges for end in (edge.subject, edge.object)}
        return self.fingerprint | ends


def document_about(names: Collection[str]) -> Path | None:
    """Return the file of the document about a server with tools of these *names*.

    Unlike in a search, half of the fingerprint is enough, so that a document can be checked against
    a server that renamed tools. None if no document fits.
    """
    fitting = [
        document
        for document in bundled_documents()
        if 2 * len(document.fingerprint.intersection(names)) >= len(document.fingerprint)
    ]
    best = max(fitting, key=lambda document: len(document.tools.intersection(names)), default=None)
    return FOLDER / best.name if best else None


@cache
def bundled_documents() -> tuple[ServerDocument, ...]:
    """Read all bundled documents, sorted by name."""
    return tuple(
        ServerDocument(path.name, path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.md"))
    )


class BundledEdges:
    """The `EdgeSource` of the bundled documents."""

    name = "bundled"
    order = 0

    @property
    def version(self) -> str:
        """Digest of all documents."""
        return digest("\0".join(document.text for document in bundled_documents()))

    def edges(self, tools: Sequence[Entity]) -> Iterator[ToolEdge]:
        """Yield the edges of the document that applies to each server, if there is one."""
        servers: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for tool in tools:
            if tool.kind == "tool":
                servers[tool.server].setdefault(tool.name, tool.id)
        for ids in servers.values():
            if document := _document_for(ids.keys()):
                for edge in document.edges:
                    if edge.subject in ids and edge.object in ids:
                        yield ToolEdge(
                            subject=ids[edge.subject],
                            predicate=edge.predicate,
                            object=ids[edge.object],
                            weight=WEIGHT * edge.weight,
                            path=document.name,
                            line=edge.line,
                        )


def _document_for(names: KeysView[str]) -> ServerDocument | None:
    """Return the document that applies to a server with tools of these *names*."""
    fitting = (document for document in bundled_documents() if document.fingerprint <= names)
    return max(fitting, key=lambda document: len(document.tools & names), default=None)

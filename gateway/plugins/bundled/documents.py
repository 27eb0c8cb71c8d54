"""The bundled documents: edges and example requests for the tools of well-known servers.

* A document lists the tools by which it recognizes its server, as ``graph_entities``. It applies to
  each server that has all of them, if it names at least half of the server's tools. Therefore a
  server with a similar name gets nothing.
* If several documents apply to a server, the one that names most of its tools is used.
* Edges connect tools of one server only. Edges to missing tools are ignored, so that a document
  fits several versions of its server.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import graphs
from gateway.index.added_texts import EXAMPLE_PREDICATE
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
    def statements(self) -> tuple[graphs.Edge, ...]:
        """Edges between names of tools, and example requests for names of tools."""
        return graphs.parse(self.text, path=self.name).edges

    @cached_property
    def tools(self) -> frozenset[str]:
        """Names of all tools in the document."""
        edges = [edge for edge in self.statements if edge.predicate != EXAMPLE_PREDICATE]
        ends = (statement.subject for statement in self.statements)
        return self.fingerprint.union(ends, (edge.object for edge in edges))

    def is_about(self, names: KeysView[str]) -> bool:
        """Return whether the document applies to a server with tools of these *names*."""
        return self.fingerprint <= names and 2 * len(names & self.tools) >= len(names)


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


class BundledKnowledge:
    """The `EdgeSource` of the bundled documents."""

    name = "bundled"
    order = 0

    @cached_property
    def version(self) -> str:
        """Digest of all documents."""
        return digest("\0".join(document.text for document in bundled_documents()))

    def edges(self, tools: Sequence[Entity]) -> Iterator[ToolEdge]:
        """Yield the edges of the document that applies to each server, if there is one."""
        for document, ids in _recognized_servers(tools):
            for edge in document.statements:
                if edge.subject in ids and edge.object in ids:
                    yield ToolEdge(
                        subject=ids[edge.subject],
                        predicate=edge.predicate,
                        object=ids[edge.object],
                        weight=WEIGHT * edge.weight,
                        path=document.name,
                        line=edge.line,
                    )

    def examples(self, tools: Sequence[Entity]) -> Mapping[str, Sequence[str]]:
        """Return the example requests in the document that applies to each server."""
        examples: defaultdict[str, list[str]] = defaultdict(list)
        for document, ids in _recognized_servers(tools):
            for statement in document.statements:
                if statement.predicate == EXAMPLE_PREDICATE and statement.subject in ids:
                    examples[ids[statement.subject]].append(statement.object)
        return examples


def _recognized_servers(
    tools: Sequence[Entity],
) -> Iterator[tuple[ServerDocument, Mapping[str, str]]]:
    """Yield the document of each known server, and the ids of its tools, keyed by name."""
    servers: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for tool in tools:
        if tool.kind == "tool":
            servers[tool.server].setdefault(tool.name, tool.id)
    for ids in servers.values():
        names = ids.keys()
        fitting = [document for document in bundled_documents() if document.is_about(names)]
        if fitting:
            yield max(fitting, key=lambda each: len(each.tools & names)), ids

"""Markdown-LD graphs: documents, facts, focused search and typed neighbours."""

from graphs.body import Edge, Section
from graphs.build import Fact, facts
from graphs.document import Document, parse, render
from graphs.errors import DocumentError, GraphError
from graphs.expand import Expansion, Neighbour, Role, Step, expand
from graphs.export import dot, json_ld, mermaid, n_triples, turtle
from graphs.fields import Link
from graphs.files import read, write
from graphs.index import GraphIndex
from graphs.postings import Hits, Postings, WordMatch
from graphs.rank import Ranked, focused

__all__ = [
    "Document",
    "DocumentError",
    "Edge",
    "Expansion",
    "Fact",
    "GraphError",
    "GraphIndex",
    "Hits",
    "Link",
    "Neighbour",
    "Postings",
    "Ranked",
    "Role",
    "Section",
    "Step",
    "WordMatch",
    "dot",
    "expand",
    "facts",
    "focused",
    "json_ld",
    "mermaid",
    "n_triples",
    "parse",
    "read",
    "render",
    "turtle",
    "write",
]

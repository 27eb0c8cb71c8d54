"""Markdown-LD graphs: documents, facts, search and typed neighbours."""

from graphs.adjacency import Role
from graphs.answer import Answer, Term
from graphs.ask import Sparql
from graphs.build import Builder, facts
from graphs.compiler import Compiler
from graphs.document import Document, parse
from graphs.errors import (
    DocumentError,
    ExtraError,
    GraphError,
    Notice,
    QueryError,
    QueryTimeoutError,
    StateError,
)
from graphs.expand import expand
from graphs.export import json_ld, n_triples, turtle
from graphs.fact import Fact
from graphs.files import collect, read, write
from graphs.hits import Hits, WordMatch
from graphs.imports import from_json_ld, from_turtle
from graphs.index import GraphIndex
from graphs.neighbour import Expansion, Neighbour, Step
from graphs.parts import Edge, Link, Section, Text
from graphs.picture import dot, mermaid, svg
from graphs.postings import Postings
from graphs.profile import Follow, Profile, Relation, TextRule
from graphs.rank import Ranked, focused
from graphs.render import render
from graphs.schema import Followed, SchemaMatch, SchemaResult, TextEvidence
from graphs.search import Finding, Found, Mode, find
from graphs.shapes import Fault, validate
from graphs.state import load, save

__all__ = [
    "Answer",
    "Builder",
    "Compiler",
    "Document",
    "DocumentError",
    "Edge",
    "Expansion",
    "ExtraError",
    "Fact",
    "Fault",
    "Finding",
    "Follow",
    "Followed",
    "Found",
    "GraphError",
    "GraphIndex",
    "Hits",
    "Link",
    "Mode",
    "Neighbour",
    "Notice",
    "Postings",
    "Profile",
    "QueryError",
    "QueryTimeoutError",
    "Ranked",
    "Relation",
    "Role",
    "SchemaMatch",
    "SchemaResult",
    "Section",
    "Sparql",
    "StateError",
    "Step",
    "Term",
    "Text",
    "TextEvidence",
    "TextRule",
    "WordMatch",
    "collect",
    "dot",
    "expand",
    "facts",
    "find",
    "focused",
    "from_json_ld",
    "from_turtle",
    "json_ld",
    "load",
    "mermaid",
    "n_triples",
    "parse",
    "read",
    "render",
    "save",
    "svg",
    "turtle",
    "validate",
    "write",
]

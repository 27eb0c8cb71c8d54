# The front door for type checkers: the names and modules of `__init__.py`.
from graphs.diagrams import to_dot as to_dot
from graphs.diagrams import to_mermaid as to_mermaid
from graphs.errors import DocumentError as DocumentError
from graphs.errors import ExtraError as ExtraError
from graphs.errors import GraphError as GraphError
from graphs.errors import Notice as Notice
from graphs.errors import QueryError as QueryError
from graphs.errors import QueryTimeoutError as QueryTimeoutError
from graphs.expansion import Expansion as Expansion
from graphs.expansion import Neighbour as Neighbour
from graphs.expansion import Role as Role
from graphs.expansion import expand as expand
from graphs.facts.extraction import extract_facts as extract_facts
from graphs.facts.fact import Fact as Fact
from graphs.graph import GraphIndex as GraphIndex
from graphs.graph_builder import GraphBuilder as GraphBuilder
from graphs.graph_builder import compile_facts as compile_facts
from graphs.lexical.bm25_index import BM25Index as BM25Index
from graphs.lexical.query import AnalyzedQuery as AnalyzedQuery
from graphs.lexical.query import Hits as Hits
from graphs.markdown.dialect import add_edge as add_edge
from graphs.markdown.dialect import collect as collect
from graphs.markdown.dialect import parse as parse
from graphs.markdown.dialect import read as read
from graphs.markdown.dialect import render as render
from graphs.markdown.dialect import write as write
from graphs.markdown.document import Document as Document
from graphs.markdown.document import Edge as Edge
from graphs.markdown.document import Link as Link
from graphs.markdown.document import Section as Section
from graphs.markdown.document import Text as Text
from graphs.paths import prerequisite_cycles as prerequisite_cycles
from graphs.paths import shortest_paths as shortest_paths
from graphs.paths import topological_groups as topological_groups
from graphs.rdf.serialization import from_json_ld as from_json_ld
from graphs.rdf.serialization import from_turtle as from_turtle
from graphs.rdf.serialization import to_json_ld as to_json_ld
from graphs.rdf.serialization import to_n_triples as to_n_triples
from graphs.rdf.serialization import to_turtle as to_turtle
from graphs.rdf.shapes import ShapeViolation as ShapeViolation
from graphs.rdf.shapes import validate as validate
from graphs.rdf.sparql import Answer as Answer
from graphs.rdf.sparql import Term as Term
from graphs.rdf.sparql import query_sparql as query_sparql
from graphs.text_search import FindMode as FindMode
from graphs.text_search import FoundNode as FoundNode
from graphs.text_search import TextEvidence as TextEvidence
from graphs.text_search import TextMatch as TextMatch
from graphs.text_search import find as find
from graphs.text_search import search_text as search_text

__all__ = [
    "AnalyzedQuery",
    "Answer",
    "BM25Index",
    "Document",
    "DocumentError",
    "Edge",
    "Expansion",
    "ExtraError",
    "Fact",
    "FindMode",
    "FoundNode",
    "GraphBuilder",
    "GraphError",
    "GraphIndex",
    "Hits",
    "Link",
    "Neighbour",
    "Notice",
    "QueryError",
    "QueryTimeoutError",
    "Role",
    "Section",
    "ShapeViolation",
    "Term",
    "Text",
    "TextEvidence",
    "TextMatch",
    "add_edge",
    "collect",
    "compile_facts",
    "expand",
    "extract_facts",
    "find",
    "from_json_ld",
    "from_turtle",
    "parse",
    "prerequisite_cycles",
    "query_sparql",
    "read",
    "render",
    "search_text",
    "shortest_paths",
    "to_dot",
    "to_json_ld",
    "to_mermaid",
    "to_n_triples",
    "to_turtle",
    "topological_groups",
    "validate",
    "write",
]

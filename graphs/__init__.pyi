from graphs.adjacency import Role as Role
from graphs.compiler import Compiler as Compiler
from graphs.diagrams import dot as dot
from graphs.diagrams import mermaid as mermaid
from graphs.diagrams import svg as svg
from graphs.errors import DocumentError as DocumentError
from graphs.errors import ExtraError as ExtraError
from graphs.errors import GraphError as GraphError
from graphs.errors import Notice as Notice
from graphs.errors import QueryError as QueryError
from graphs.errors import QueryTimeoutError as QueryTimeoutError
from graphs.errors import StateError as StateError
from graphs.expansion import expand as expand
from graphs.facts.build import Builder as Builder
from graphs.facts.build import extract_facts as extract_facts
from graphs.facts.fact import Fact as Fact
from graphs.graph import GraphIndex as GraphIndex
from graphs.lexical.bm25_index import Postings as Postings
from graphs.lexical.explain import Hits as Hits
from graphs.lexical.explain import WordMatch as WordMatch
from graphs.markdown.document import Document as Document
from graphs.markdown.document import parse as parse
from graphs.markdown.files import collect as collect
from graphs.markdown.files import read as read
from graphs.markdown.files import write as write
from graphs.markdown.parts import Edge as Edge
from graphs.markdown.parts import Link as Link
from graphs.markdown.parts import Section as Section
from graphs.markdown.parts import Text as Text
from graphs.markdown.writer import render as render
from graphs.neighbour import Expansion as Expansion
from graphs.neighbour import Neighbour as Neighbour
from graphs.neighbour import Step as Step
from graphs.rdf.answer import Answer as Answer
from graphs.rdf.answer import Term as Term
from graphs.rdf.exporter import json_ld as json_ld
from graphs.rdf.exporter import n_triples as n_triples
from graphs.rdf.exporter import turtle as turtle
from graphs.rdf.faults import Fault as Fault
from graphs.rdf.importer import from_json_ld as from_json_ld
from graphs.rdf.importer import from_turtle as from_turtle
from graphs.rdf.profile import Follow as Follow
from graphs.rdf.profile import Profile as Profile
from graphs.rdf.profile import Relation as Relation
from graphs.rdf.profile import TextRule as TextRule
from graphs.rdf.schema_search import Followed as Followed
from graphs.rdf.schema_search import SchemaMatch as SchemaMatch
from graphs.rdf.schema_search import SchemaResult as SchemaResult
from graphs.rdf.schema_search import TextEvidence as TextEvidence
from graphs.rdf.shapes import validate as validate
from graphs.rdf.sparql_process import Sparql as Sparql
from graphs.search import Finding as Finding
from graphs.search import Found as Found
from graphs.search import Mode as Mode
from graphs.search import find as find
from graphs.state import load as load
from graphs.state import save as save
from graphs.text_search import Ranked as Ranked
from graphs.text_search import focused as focused

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
    "extract_facts",
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

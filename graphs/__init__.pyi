from graphs.adjacency import Role as Role
from graphs.answer import Answer as Answer
from graphs.answer import Term as Term
from graphs.ask import Sparql as Sparql
from graphs.build import Builder as Builder
from graphs.build import facts as facts
from graphs.compiler import Compiler as Compiler
from graphs.document import Document as Document
from graphs.document import parse as parse
from graphs.errors import DocumentError as DocumentError
from graphs.errors import ExtraError as ExtraError
from graphs.errors import GraphError as GraphError
from graphs.errors import Notice as Notice
from graphs.errors import QueryError as QueryError
from graphs.errors import QueryTimeoutError as QueryTimeoutError
from graphs.errors import StateError as StateError
from graphs.expansion import expand as expand
from graphs.export import json_ld as json_ld
from graphs.export import n_triples as n_triples
from graphs.export import turtle as turtle
from graphs.fact import Fact as Fact
from graphs.faults import Fault as Fault
from graphs.files import collect as collect
from graphs.files import read as read
from graphs.files import write as write
from graphs.hits import Hits as Hits
from graphs.hits import WordMatch as WordMatch
from graphs.imports import from_json_ld as from_json_ld
from graphs.imports import from_turtle as from_turtle
from graphs.index import GraphIndex as GraphIndex
from graphs.neighbour import Expansion as Expansion
from graphs.neighbour import Neighbour as Neighbour
from graphs.neighbour import Step as Step
from graphs.parts import Edge as Edge
from graphs.parts import Link as Link
from graphs.parts import Section as Section
from graphs.parts import Text as Text
from graphs.picture import dot as dot
from graphs.picture import mermaid as mermaid
from graphs.picture import svg as svg
from graphs.postings import Postings as Postings
from graphs.profile import Follow as Follow
from graphs.profile import Profile as Profile
from graphs.profile import Relation as Relation
from graphs.profile import TextRule as TextRule
from graphs.rank import Ranked as Ranked
from graphs.rank import focused as focused
from graphs.schema import Followed as Followed
from graphs.schema import SchemaMatch as SchemaMatch
from graphs.schema import SchemaResult as SchemaResult
from graphs.schema import TextEvidence as TextEvidence
from graphs.search import Finding as Finding
from graphs.search import Found as Found
from graphs.search import Mode as Mode
from graphs.search import find as find
from graphs.shapes import validate as validate
from graphs.state import load as load
from graphs.state import save as save
from graphs.writing import render as render

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

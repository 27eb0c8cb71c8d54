"""RDF: SPARQL, SHACL, federation, import and export."""

from graphs.rdf.serialization import SCHEME as SCHEME
from graphs.rdf.serialization import from_json_ld as from_json_ld
from graphs.rdf.serialization import from_turtle as from_turtle
from graphs.rdf.serialization import to_json_ld as to_json_ld
from graphs.rdf.serialization import to_n_triples as to_n_triples
from graphs.rdf.serialization import to_rdf as to_rdf
from graphs.rdf.serialization import to_turtle as to_turtle
from graphs.rdf.shapes import validate as validate
from graphs.rdf.sparql import Term as Term
from graphs.rdf.sparql import answer as answer
from graphs.rdf.sparql import query_sparql as query_sparql
from graphs.rdf.sparql import serve as serve

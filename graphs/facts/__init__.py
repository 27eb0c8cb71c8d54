"""Facts: statements of documents, with vocabulary and provenance."""

from graphs.facts.extraction import extract_facts as extract_facts
from graphs.facts.fact import Fact as Fact
from graphs.facts.vocabulary import CONCEPT_BASE as CONCEPT_BASE
from graphs.facts.vocabulary import CONTEXT_IRI as CONTEXT_IRI
from graphs.facts.vocabulary import FILE_BASE as FILE_BASE
from graphs.facts.vocabulary import NAMESPACES as NAMESPACES
from graphs.facts.vocabulary import PREDICATES as PREDICATES
from graphs.facts.vocabulary import context as context
from graphs.facts.vocabulary import iri as iri
from graphs.facts.vocabulary import is_iri as is_iri
from graphs.facts.vocabulary import resolve as resolve
from graphs.facts.vocabulary import role as role

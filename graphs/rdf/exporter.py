"""The graph, written for others as RDF. The same facts, the same text.

* Groups, topics and kinds of data become SKOS concepts of one scheme, whose top concepts are those
  that none is broader than. What was read from a file is said to be derived from it.
* A statement that is weighed, or that a rule derived, is said once plainly and once more as an
  ``rdf:Statement`` with its weight, its rule, its file and its line. Such a node has the name of
  its statement, so that equal graphs stay equal texts.
* Ids that are no IRIs get the base of documents.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, TypeAlias
from urllib.parse import quote

from rdflib import PROV, RDF, SKOS, XSD, Graph, Literal, URIRef
from rdflib.plugins.serializers.jsonld import Converter
from rdflib.plugins.shared.jsonld.context import Context

from graphs.facts.fact import Fact
from graphs.facts.vocabulary import (
    ABOUT_STATEMENTS,
    CONCEPT_TYPE,
    DOCUMENT_BASE,
    FILE_BASE,
    NAMESPACES,
    STATEMENT_BASE,
    context,
    iri,
    is_iri,
    is_language,
)

SCHEME = URIRef(NAMESPACES["tg"] + "concepts")
"""The SKOS scheme that every group, topic and kind of data is in."""
Triple: TypeAlias = tuple[URIRef, URIRef, URIRef | Literal]
_NODE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")
_LONE = re.compile("[\ud800-\udfff]")


def to_turtle(facts: Iterable[Fact]) -> str:
    """Write *facts* as Turtle."""
    return to_rdf(facts).serialize(format="turtle")


def to_n_triples(facts: Iterable[Fact]) -> str:
    """Write *facts* as N-Triples, sorted; empty without facts."""
    lines = sorted(filter(None, to_rdf(facts).serialize(format="nt").split("\n")))
    return "".join(f"{line}\n" for line in lines)


def to_json_ld(facts: Iterable[Fact]) -> str:
    """Write *facts* as JSON-LD with the context of the vocabulary inside."""
    converter = _LosslessConverter(Context(context()), use_native_types=False, use_rdf_type=False)
    converter.use_native_types = False  # A context alone switches it on.
    found = converter.convert(to_rdf(facts))
    document = {"@graph": found} if isinstance(found, list) else found
    text = _ordered({**document, "@context": context()})
    return json.dumps(text, ensure_ascii=False, indent=2) + "\n"


def to_rdf(facts: Iterable[Fact]) -> Graph:
    """Build an RDF graph of *facts*."""
    graph = Graph()
    for prefix, namespace in NAMESPACES.items():
        graph.bind(prefix, namespace, replace=True)
    for fact in facts:
        for triple in _triples(fact):
            graph.add(triple)
    narrower = {*graph.subjects(SKOS.broader), *graph.objects(None, SKOS.narrower)}
    for concept in set(graph.subjects(SKOS.inScheme, SCHEME)) - narrower:
        graph.add((SCHEME, SKOS.hasTopConcept, concept))
    return graph


def _triples(fact: Fact) -> Iterator[Triple]:
    subject = _iri(fact.subject)
    triple = subject, URIRef(iri(fact.predicate)), _object(fact)
    yield triple
    if not fact.literal and (fact.weight != 1 or fact.origin):
        yield from _reify(fact, triple)
    if fact.predicate != "type":
        return
    if fact.object == CONCEPT_TYPE:
        yield SCHEME, RDF.type, SKOS.ConceptScheme
        yield subject, SKOS.inScheme, SCHEME
    elif fact.path:
        yield subject, PROV.wasDerivedFrom, _file(fact)


def _reify(fact: Fact, triple: Triple) -> Iterator[Triple]:
    """Yield the triples about the *triple* that *fact* is."""
    weight, origin, line = (URIRef(ABOUT_STATEMENTS[name]) for name in ("weight", "origin", "line"))
    name = hashlib.sha256(" ".join(part.n3() for part in triple).encode()).hexdigest()[:32]
    node = URIRef(STATEMENT_BASE + name)
    yield node, RDF.type, RDF.Statement
    for predicate, part in zip((RDF.subject, RDF.predicate, RDF.object), triple, strict=True):
        yield node, predicate, part
    # A decimal keeps every digit in every form; a double would be rounded in Turtle.
    digits = format(Decimal(repr(fact.weight)), "f")
    yield node, weight, Literal(digits, datatype=XSD.decimal, normalize=False)
    if fact.origin:
        yield node, origin, Literal(fact.origin.encode("utf-8", "replace").decode())
    if fact.path:
        yield node, PROV.wasDerivedFrom, _file(fact)
    if fact.line:
        yield node, line, Literal(str(fact.line), datatype=XSD.integer, normalize=False)


def _file(fact: Fact) -> URIRef:
    return URIRef(FILE_BASE + quote(fact.path, errors="replace"))


def _object(fact: Fact) -> URIRef | Literal:
    if not fact.literal:
        return _iri(fact.object)
    text = _LONE.sub("\ufffd", fact.object)
    if fact.datatype and is_iri(fact.datatype):
        # As it was written: rdflib would rewrite `01` as `1`.
        return Literal(text, datatype=URIRef(fact.datatype), normalize=False)
    return Literal(text, lang=fact.language if is_language(fact.language) else None)


def _iri(node: str) -> URIRef:
    if _NODE.fullmatch(node) or is_iri(node):
        return URIRef(_LONE.sub("\ufffd", node))
    return URIRef(DOCUMENT_BASE + quote(node, errors="replace"))


class _LosslessConverter(Converter):
    """The converter that keeps empty texts beside others."""

    def add_to_node(
        self, graph: Any, s: Any, p: Any, o: Any, s_node: dict[str, Any], nodemap: Any
    ) -> None:
        """Add the value *o* of the predicate *p* to what is written of the node *s*."""
        nothings = [(key, value) for key, value in s_node.items() if not value]
        super().add_to_node(graph, s, p, o, s_node, nodemap)
        for key, value in nothings:
            if s_node[key] is not value:
                s_node[key] = [value, s_node[key]]


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return sorted(map(_ordered, value), key=_sort_key)
    return value


_sort_key: Callable[[object], str] = json.JSONEncoder(sort_keys=True).encode

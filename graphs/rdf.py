"""Facts as an rdflib graph: the public face of the graph, built when somebody asks.

Nothing in `graphs` imports this file at its head: rdflib is heavy, and a warm start does not
need it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from rdflib import RDF, SKOS, Graph, Literal, Namespace, URIRef

from graphs.build import Fact
from graphs.vocabulary import (
    CONCEPT_TYPE,
    DOCUMENT_BASE,
    FILE_BASE,
    NAMESPACES,
    context,
    iri,
    is_iri,
)

SCHEME = URIRef(NAMESPACES["tg"] + "concepts")
"""The SKOS scheme that every group, topic and kind of data is in."""

_PROV = Namespace(NAMESPACES["prov"])
_NODE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
_LONE = re.compile("[\ud800-\udfff]")

_Triple = tuple[URIRef, URIRef, URIRef | Literal]


def to_rdf(stated: Iterable[Fact]) -> Graph:
    """Build an RDF graph of *stated*.

    Groups, topics and kinds of data become SKOS concepts of one scheme, and what was read from
    a file is said to be derived from it. Ids that are no IRIs get the base of documents.
    """
    graph = Graph()
    for prefix, namespace in NAMESPACES.items():
        graph.bind(prefix, namespace, replace=True)
    for fact in stated:
        for triple in _triples(fact):
            graph.add(triple)
    return graph


def serialize(stated: Iterable[Fact], form: str) -> str:
    """Write *stated* in one of rdflib's forms: ``turtle``, ``nt`` or ``json-ld``."""
    graph = to_rdf(stated)
    if form == "json-ld":
        return graph.serialize(format=form, context=context(), auto_compact=True)
    return graph.serialize(format=form)


def _triples(fact: Fact) -> Iterator[_Triple]:
    subject = _iri(fact.subject)
    yield subject, URIRef(iri(fact.predicate)), _object(fact)
    if fact.predicate != "type":
        return
    if fact.object == CONCEPT_TYPE:
        yield SCHEME, RDF.type, SKOS.ConceptScheme
        yield subject, SKOS.inScheme, SCHEME
    elif fact.path:
        source = FILE_BASE + quote(fact.path, errors="replace")
        yield subject, _PROV.wasDerivedFrom, URIRef(source)


def _object(fact: Fact) -> URIRef | Literal:
    if not fact.literal:
        return _iri(fact.object)
    language = fact.language if _LANGUAGE.fullmatch(fact.language) else None
    return Literal(_LONE.sub("\ufffd", fact.object), lang=language)


def _iri(node: str) -> URIRef:
    if _NODE.fullmatch(node) or is_iri(node):
        return URIRef(_LONE.sub("\ufffd", node))
    return URIRef(DOCUMENT_BASE + quote(node, errors="replace"))

"""Facts as an rdflib graph: the public form of the graph, built on demand.

Nothing in `graphs` imports this file at its head: rdflib is heavy, and a warm start does not
need it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from rdflib import RDF, SKOS, BNode, Graph, Literal, Namespace, URIRef
from rdflib.plugins.parsers.notation3 import BadSyntax
from rdflib.plugins.serializers.jsonld import Converter
from rdflib.plugins.shared.jsonld.context import Context
from rdflib.plugins.shared.jsonld.errors import JSONLDException
from rdflib.plugins.stores.memory import Memory
from rdflib.store import Store

from graphs.errors import DocumentError
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import (
    BLANK_BASE,
    CONCEPT_TYPE,
    DOCUMENT_BASE,
    FILE_BASE,
    NAMESPACES,
    context,
    iri,
    is_iri,
    resolve,
)
from graphs.markdown.fields import is_language
from graphs.rdf.reification import Triple, apply_reification, reify

SCHEME = URIRef(NAMESPACES["tg"] + "concepts")
"""The SKOS scheme that every group, topic and kind of data is in."""

_PROV = Namespace(NAMESPACES["prov"])
_NODE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")
_LONE = re.compile("[\ud800-\udfff]")

_FAULTS = (JSONLDException, ValueError, TypeError, LookupError, AttributeError, AssertionError)
"""What rdflib raises over a text that makes no sense."""


def to_rdf(stated: Iterable[Fact]) -> Graph:
    """Build an RDF graph of *stated*.

    Groups, topics and kinds of data become SKOS concepts of one scheme, whose top concepts are
    those that none is broader than; what was read from a file is said to be derived from it, and
    what is weighed or derived by a rule is told of too. Ids that are no IRIs get the base of
    documents.
    """
    graph = Graph()
    for prefix, namespace in NAMESPACES.items():
        graph.bind(prefix, namespace, replace=True)
    for fact in stated:
        for triple in _triples(fact):
            graph.add(triple)
    narrower = {*graph.subjects(SKOS.broader), *graph.objects(None, SKOS.narrower)}
    for concept in set(graph.subjects(SKOS.inScheme, SCHEME)) - narrower:
        graph.add((SCHEME, SKOS.hasTopConcept, concept))
    return graph


def serialize(stated: Iterable[Fact], form: str) -> str:
    """Write *stated* in one of rdflib's forms: ``turtle``, ``nt`` or ``json-ld``."""
    graph = to_rdf(stated)
    if form == "json-ld":
        return _compacted_json_ld(graph, context())
    return graph.serialize(format=form)


def read_facts(text: str, form: str, *, path: str, declared: bool) -> tuple[Fact, ...]:
    """Read *text* as facts, in its order; the form and the errors are those of `parse_rdf`.

    What nodes about statements say stands in the facts, as it was before an export.
    """
    store = _Ordered()
    parse_rdf(text, form, path=path, store=store)
    names: dict[BNode, str] = {}
    return apply_reification(_fact(triple, names, path, declared) for triple in store.order)


def parse_rdf(text: str, form: str, *, path: str, store: Store | None = None) -> Graph:
    """Parse *text* in one of rdflib's forms: ``turtle``, or ``json-ld`` without named contexts.

    Raises:
        DocumentError: The text cannot be read.
    """
    graph = Graph(store=Memory() if store is None else store, bind_namespaces="none")
    try:
        graph.parse(data=text, format=form, publicID=DOCUMENT_BASE)
    except BadSyntax as error:
        raise DocumentError("no Turtle", path=path, line=error.lines + 1) from error
    except RecursionError as error:
        raise DocumentError("nested too deeply: flatten it", path=path) from error
    except _FAULTS as error:
        raise DocumentError(f"no {form}: {error}", path=path) from error
    return graph


class _Ordered(Memory):
    """A store that remembers the order in which its triples came."""

    def __init__(self) -> None:
        super().__init__()
        self.order: dict[Any, None] = {}

    def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
        """Add a triple."""
        super().add(triple, context, quoted)
        self.order[triple] = None


def _fact(triple: Any, names: dict[BNode, str], path: str, declared: bool) -> Fact:
    subject, predicate, target = triple
    literal = isinstance(target, Literal)
    return Fact(
        subject=_node(subject, names),
        predicate=resolve(str(predicate)) or str(predicate),
        object=str(target) if literal else _node(target, names),
        literal=literal,
        language=(target.language or "") if literal else "",
        datatype=str(target.datatype or "") if literal else "",
        path=path,
        declared=declared,
    )


def _node(node: Any, names: dict[BNode, str]) -> str:
    if isinstance(node, BNode):
        return names.setdefault(node, f"{BLANK_BASE}{len(names)}")
    return str(node)


def _triples(fact: Fact) -> Iterator[Triple]:
    subject = _iri(fact.subject)
    triple = subject, URIRef(iri(fact.predicate)), _object(fact)
    yield triple
    yield from reify(fact, triple)
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
    text = _LONE.sub("\ufffd", fact.object)
    if fact.datatype and is_iri(fact.datatype):
        # As it was written: rdflib would rewrite `01` as `1`.
        return Literal(text, datatype=URIRef(fact.datatype), normalize=False)
    return Literal(text, lang=fact.language if is_language(fact.language) else None)


def _iri(node: str) -> URIRef:
    if _NODE.fullmatch(node) or is_iri(node):
        return URIRef(_LONE.sub("\ufffd", node))
    return URIRef(DOCUMENT_BASE + quote(node, errors="replace"))


def _compacted_json_ld(graph: Graph, context: Mapping[str, object]) -> str:
    """Write *graph* as JSON-LD under *context*, which stands in the text."""
    terms = dict(context)
    converter = _LosslessConverter(Context(terms), use_native_types=False, use_rdf_type=False)
    converter.use_native_types = False  # A context alone switches it on.
    found = converter.convert(graph)
    document = {"@graph": found} if isinstance(found, list) else found
    return json.dumps({**document, "@context": terms}, ensure_ascii=False)


class _LosslessConverter(Converter):
    """The converter that loses nothing."""

    def add_to_node(
        self, graph: Any, s: Any, p: Any, o: Any, s_node: dict[str, Any], nodemap: Any
    ) -> None:
        """Add the value *o* of the predicate *p* to what is written of the node *s*."""
        nothings = [(key, value) for key, value in s_node.items() if not value]
        super().add_to_node(graph, s, p, o, s_node, nodemap)
        for key, value in nothings:
            if s_node[key] is not value:
                s_node[key] = [value, s_node[key]]

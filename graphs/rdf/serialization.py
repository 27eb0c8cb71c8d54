"""Import and export of the graph as RDF text. Nothing is fetched.

* Groups, topics and kinds of data become SKOS concepts of one scheme.
* A statement with a weight or a rule is also written as an ``rdf:Statement`` with weight, rule,
  file and line.
* Ids that are not IRIs get the base IRI of documents.
* JSON-LD may name no context but the vocabulary's.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from rdflib import PROV, RDF, SKOS, XSD, BNode, Graph, Literal, URIRef
from rdflib.plugins.parsers.notation3 import BadSyntax
from rdflib.plugins.serializers.jsonld import Converter
from rdflib.plugins.shared.jsonld.context import Context
from rdflib.plugins.shared.jsonld.errors import JSONLDException
from rdflib.plugins.stores.memory import Memory
from rdflib.term import Node

from graphs.errors import DocumentError
from graphs.facts import vocabulary
from graphs.facts.fact import Fact
from graphs.parameters import MAX_RDF_CHARS, MAX_RDF_DEPTH

SCHEME = URIRef(vocabulary.NAMESPACES["tg"] + "concepts")
"""SKOS scheme of all groups, topics and kinds of data."""
Triple: TypeAlias = tuple[URIRef, URIRef, URIRef | Literal]
_WEIGHT, _ORIGIN, _LINE = (
    URIRef(vocabulary.ABOUT_STATEMENTS[name]) for name in ("weight", "origin", "line")
)
_NODE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_RDFLIB_ERRORS = (
    JSONLDException,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
)


def to_turtle(facts: Iterable[Fact]) -> str:
    """Write *facts* as Turtle."""
    graph = to_rdf(facts)
    # Sorted, so that namespaces without a prefix get the same numbers each time.
    for predicate in sorted(map(str, graph.predicates(unique=True))):
        with suppress(ValueError):
            graph.compute_qname(predicate)
    return graph.serialize(format="turtle")


def to_n_triples(facts: Iterable[Fact]) -> str:
    """Write *facts* as sorted N-Triples; empty without facts."""
    lines = to_rdf(facts).serialize(format="nt").split("\n")
    return "".join(f"{line}\n" for line in sorted(lines) if line)


def to_json_ld(facts: Iterable[Fact]) -> str:
    """Write *facts* as JSON-LD that includes the context of the vocabulary."""
    context = vocabulary.context()
    converter = _LosslessConverter(Context(context), use_native_types=False, use_rdf_type=False)
    converter.use_native_types = False  # The context alone would turn it on.
    converted = converter.convert(to_rdf(facts))
    document = {"@graph": converted} if isinstance(converted, list) else converted
    text = _with_sorted_lists({**document, "@context": context})
    return json.dumps(text, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def to_rdf(facts: Iterable[Fact]) -> Graph:
    """Convert *facts* to an RDF graph."""
    graph = Graph()
    for prefix, namespace in vocabulary.NAMESPACES.items():
        graph.bind(prefix, namespace, replace=True)
    for fact in facts:
        for triple in _triples(fact):
            graph.add(triple)
    narrower = {*graph.subjects(SKOS.broader), *graph.objects(None, SKOS.narrower)}
    for concept in set(graph.subjects(SKOS.inScheme, SCHEME)) - narrower:
        graph.add((SCHEME, SKOS.hasTopConcept, concept))
    return graph


def from_turtle(text: str, *, path: str = "", declared: bool = True) -> tuple[Fact, ...]:
    """Read Turtle or N-Triples as facts, in the order of the text.

    *path* is used in errors and facts. *declared* means that the host is the author of the text.

    Raises:
        DocumentError: If the text cannot be read.
    """
    _check_size(text, path)
    return _read_facts(text, "turtle", path=path, declared=declared)


def from_json_ld(text: str, *, path: str = "", declared: bool = True) -> tuple[Fact, ...]:
    """Read JSON-LD as facts. The arguments are as in `from_turtle`.

    Raises:
        DocumentError: If the text cannot be read, or names a context that would have to be fetched.
    """
    _check_size(text, path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        raise DocumentError("not JSON, or nested too deeply", path=path, line=line) from error
    safe = json.dumps(_with_written_contexts(document, path))
    return _read_facts(safe, "json-ld", path=path, declared=declared)


def _triples(fact: Fact) -> Iterator[Triple]:
    subject = _iri(fact.subject)
    triple = subject, URIRef(vocabulary.iri(fact.predicate)), _object(fact)
    yield triple
    if not fact.literal and (fact.weight != 1 or fact.origin):
        yield from _reify(fact, triple)
    if fact.predicate != "type":
        return
    if fact.object == vocabulary.CONCEPT_TYPE:
        yield SCHEME, RDF.type, SKOS.ConceptScheme
        yield subject, SKOS.inScheme, SCHEME
    elif fact.path:
        yield subject, PROV.wasDerivedFrom, _file_iri(fact)


def _reify(fact: Fact, triple: Triple) -> Iterator[Triple]:
    name = hashlib.sha256(" ".join(part.n3() for part in triple).encode()).hexdigest()[:32]
    node = URIRef(vocabulary.STATEMENT_BASE + name)
    yield node, RDF.type, RDF.Statement
    for predicate, part in zip((RDF.subject, RDF.predicate, RDF.object), triple, strict=True):
        yield node, predicate, part
    # A decimal keeps every digit in every format; Turtle would round a double.
    digits = format(Decimal(repr(fact.weight)), "f")
    yield node, _WEIGHT, Literal(digits, datatype=XSD.decimal, normalize=False)
    if fact.origin:
        yield node, _ORIGIN, Literal(fact.origin.encode("utf-8", "replace").decode())
    if fact.path:
        yield node, PROV.wasDerivedFrom, _file_iri(fact)
    if fact.line:
        yield node, _LINE, Literal(str(fact.line), datatype=XSD.integer, normalize=False)


def _file_iri(fact: Fact) -> URIRef:
    return URIRef(vocabulary.FILE_BASE + quote(fact.path, errors="replace"))


def _object(fact: Fact) -> URIRef | Literal:
    if not fact.literal:
        return _iri(fact.object)
    text = _LONE_SURROGATE.sub("\ufffd", fact.object)
    if fact.datatype and vocabulary.is_iri(fact.datatype):
        # Unchanged, because rdflib would rewrite `01` as `1`.
        return Literal(text, datatype=URIRef(fact.datatype), normalize=False)
    return Literal(text, lang=fact.language if vocabulary.is_language(fact.language) else None)


def _iri(node: str) -> URIRef:
    if _NODE.fullmatch(node) or vocabulary.is_iri(node):
        return URIRef(_LONE_SURROGATE.sub("\ufffd", node))
    return URIRef(vocabulary.DOCUMENT_BASE + quote(node, errors="replace"))


class _LosslessConverter(Converter):
    """An rdflib converter that also keeps empty texts next to other values."""

    def add_to_node(
        self, graph: Any, s: Any, p: Any, o: Any, s_node: dict[str, Any], nodemap: Any
    ) -> None:
        nothings = [(key, value) for key, value in s_node.items() if not value]
        super().add_to_node(graph, s, p, o, s_node, nodemap)
        for key, value in nothings:
            if s_node[key] is not value:
                s_node[key] = [value, s_node[key]]


def _with_sorted_lists(value: object) -> object:
    if isinstance(value, dict):
        return {key: _with_sorted_lists(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(map(_with_sorted_lists, value), key=json.JSONEncoder(sort_keys=True).encode)
    return value


def _check_size(text: str, path: str) -> None:
    if len(text) > MAX_RDF_CHARS:
        raise DocumentError("more than 64 MB: split the graph", path=path)


def _with_written_contexts(
    value: Any, path: str, *, depth: int = 0, is_context: bool = False
) -> Any:
    """Return the JSON *value* with the vocabulary's context inserted where it is named.

    Raises:
        DocumentError: If another context is named, or *value* is nested too deeply.
    """
    if depth > MAX_RDF_DEPTH:
        raise DocumentError(f"nested deeper than {MAX_RDF_DEPTH}: flatten it", path=path)
    if isinstance(value, list):
        return [
            _with_written_contexts(item, path, depth=depth + 1, is_context=is_context)
            for item in value
        ]
    if isinstance(value, dict):
        if "@import" in value:
            raise DocumentError("'@import' names a context: write it out", path=path)
        return {
            key: _with_written_contexts(item, path, depth=depth + 1, is_context=key == "@context")
            for key, item in value.items()
        }
    if not is_context or value is None:
        return value
    if value != vocabulary.CONTEXT_IRI:
        detail = f"the context {value!r} would have to be fetched: write it out, or use"
        raise DocumentError(f"{detail} {vocabulary.CONTEXT_IRI}", path=path)
    return vocabulary.context()


class _OrderedStore(Memory):
    """An rdflib store that returns triples in insertion order."""

    def __init__(self) -> None:
        super().__init__()
        self.order: dict[Any, None] = {}

    def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
        super().add(triple, context, quoted)
        self.order[triple] = None


def _read_facts(text: str, form: str, *, path: str, declared: bool) -> tuple[Fact, ...]:
    store = _OrderedStore()
    graph = Graph(store=store, bind_namespaces="none")
    try:
        graph.parse(data=text, format=form, publicID=vocabulary.DOCUMENT_BASE)
    except BadSyntax as error:
        raise DocumentError("not Turtle", path=path, line=error.lines + 1) from error
    except RecursionError as error:
        raise DocumentError("nested too deeply: flatten it", path=path) from error
    except _RDFLIB_ERRORS as error:
        raise DocumentError(f"not {form}: {error}", path=path) from error
    # A node about a statement is ignored if the text does not make that statement.
    nodes = {
        tuple(graph.value(node, part) for part in (RDF.subject, RDF.predicate, RDF.object)): node
        for node in graph.subjects(RDF.type, RDF.Statement)
        if _is_statement(node)
    }
    names: dict[BNode, str] = {}
    facts: list[Fact] = []
    for triple in store.order:
        if not _is_statement(triple[0]):
            fact = _fact(triple, names, path, declared)
            node = None if fact.literal else nodes.get(triple)
            facts.append(fact if node is None else _with_statement(fact, graph, node))
    return tuple(facts)


def _is_statement(node: Node) -> bool:
    return str(node).startswith(vocabulary.STATEMENT_BASE)


def _fact(triple: Any, names: dict[BNode, str], path: str, declared: bool) -> Fact:
    subject, predicate, target = triple
    literal = isinstance(target, Literal)
    return Fact(
        subject=_node(subject, names),
        predicate=vocabulary.resolve(str(predicate)) or str(predicate),
        object=str(target) if literal else _node(target, names),
        literal=literal,
        language=(target.language or "") if literal else "",
        datatype=str(target.datatype or "") if literal else "",
        path=path,
        declared=declared,
    )


def _node(node: Any, names: dict[BNode, str]) -> str:
    if isinstance(node, BNode):
        return names.setdefault(node, f"{vocabulary.BLANK_BASE}{len(names)}")
    return str(node)


def _with_statement(fact: Fact, graph: Graph, node: Node) -> Fact:
    """Return *fact* with the weight, rule, file and line that *node* states.

    A fact derived by a rule is never declared.
    """
    weight, origin, line, source = (
        str(graph.value(node, predicate) or "")
        for predicate in (_WEIGHT, _ORIGIN, _LINE, PROV.wasDerivedFrom)
    )
    return replace(
        fact,
        weight=vocabulary.read_weight(weight) or 1.0,
        origin=origin,
        declared=fact.declared and not origin,
        path=unquote(source.removeprefix(vocabulary.FILE_BASE)) if source else fact.path,
        line=int(line) if line.isdecimal() and len(line) < 10 else 0,
    )

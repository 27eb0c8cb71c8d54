"""Turtle and JSON-LD from elsewhere, read as facts. Nothing is ever fetched.

* JSON-LD is looked through before it is parsed: a context that is named instead of written out is
  refused in every place and shape, but for our own, which the vocabulary stands for.
* Sizes and depths are bounded; a fault is a `DocumentError`.
* What nodes about statements say stands in the facts, as it was before an export.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import unquote

from rdflib import RDF, BNode, Graph, Literal
from rdflib.plugins.parsers.notation3 import BadSyntax
from rdflib.plugins.shared.jsonld.errors import JSONLDException
from rdflib.plugins.stores.memory import Memory
from rdflib.store import Store

from graphs.errors import DocumentError
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import (
    ABOUT_STATEMENTS,
    BLANK_BASE,
    CONTEXT_IRI,
    DOCUMENT_BASE,
    FILE_BASE,
    STATEMENT_BASE,
    context,
    resolve,
)
from graphs.parameters import MAX_RDF_CHARS, MAX_RDF_DEPTH

_FAULTS = (JSONLDException, ValueError, TypeError, LookupError, AttributeError, AssertionError)
"""What rdflib raises over a text that makes no sense."""
_Json: TypeAlias = "dict[str, _Json] | list[_Json] | str | float | bool | None"


def from_turtle(text: str, *, path: str = "", declared: bool = True) -> tuple[Fact, ...]:
    """Read Turtle (or N-Triples) as facts, in the order of the text.

    Args:
        text: Turtle; blank nodes are numbered in the order of the text.
        path: Where it was read; it names the text in errors and in the facts.
        declared: Whether the host stands for the text.

    Raises:
        DocumentError: The text cannot be read.
    """
    _check_size(text, path)
    return _read_facts(text, "turtle", path=path, declared=declared)


def from_json_ld(text: str, *, path: str = "", declared: bool = True) -> tuple[Fact, ...]:
    """Read JSON-LD as facts; the arguments are those of `from_turtle`.

    Raises:
        DocumentError: The text cannot be read, or names a context that would have to be fetched.
    """
    _check_size(text, path)
    try:
        document: _Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        raise DocumentError("no JSON, or nested too deeply", path=path, line=line) from error
    safe = json.dumps(_with_written_contexts(document, path, depth=0))
    return _read_facts(safe, "json-ld", path=path, declared=declared)


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


def _check_size(text: str, path: str) -> None:
    if len(text) > MAX_RDF_CHARS:
        raise DocumentError("more than 64 MB: split the graph", path=path)


def _with_written_contexts(value: _Json, path: str, *, depth: int) -> _Json:
    """Return *value* with our own context written out; refuse whatever else has to be fetched."""
    if depth > MAX_RDF_DEPTH:
        raise DocumentError(f"nested deeper than {MAX_RDF_DEPTH}: flatten it", path=path)
    if isinstance(value, list):
        return [_with_written_contexts(item, path, depth=depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if "@import" in value:
        raise DocumentError("'@import' names a context: write it out", path=path)
    if "@context" in value:
        value = {**value, "@context": _written_context(value["@context"], path)}
    return {key: _with_written_contexts(item, path, depth=depth + 1) for key, item in value.items()}


def _written_context(named: _Json, path: str) -> _Json:
    if isinstance(named, list):
        return [_written_context(item, path) for item in named]
    if named is None or isinstance(named, dict):
        return named
    if not isinstance(named, str):
        raise DocumentError(f"{named!r} is no context: write a mapping", path=path)
    if named != CONTEXT_IRI:
        detail = f"the context {named!r} would have to be fetched: write it out, or use"
        raise DocumentError(f"{detail} {CONTEXT_IRI}", path=path)
    ours: _Json = json.loads(json.dumps(context()))
    return ours


class _Ordered(Memory):
    """A store that remembers the order in which its triples came."""

    def __init__(self) -> None:
        super().__init__()
        self.order: dict[Any, None] = {}

    def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
        """Add a triple."""
        super().add(triple, context, quoted)
        self.order[triple] = None


def _read_facts(text: str, form: str, *, path: str, declared: bool) -> tuple[Fact, ...]:
    store = _Ordered()
    parse_rdf(text, form, path=path, store=store)
    names: dict[BNode, str] = {}
    return _apply_reification(_fact(triple, names, path, declared) for triple in store.order)


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


def _apply_reification(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Put what nodes about statements say into the statements, and leave those nodes out.

    A node about a statement that is not made says nothing. What a rule derived is never declared.
    """
    about: defaultdict[str, dict[str, str]] = defaultdict(dict)
    stated: list[Fact] = []
    for fact in facts:
        if fact.subject.startswith(STATEMENT_BASE):
            about[fact.subject][fact.predicate] = fact.object
        else:
            stated.append(fact)
    reified = {
        (
            node.get(str(RDF.subject), ""),
            resolve(node.get(str(RDF.predicate), "")) or node.get(str(RDF.predicate), ""),
            node.get(str(RDF.object), ""),
        ): node
        for node in about.values()
        if node.get("type") == str(RDF.Statement)
    }
    return tuple(
        _with_statement(fact, reified.get((fact.subject, fact.predicate, fact.object), {}))
        for fact in stated
    )


def _with_statement(fact: Fact, about: Mapping[str, str]) -> Fact:
    if not about or fact.literal:
        return fact
    origin = about.get(ABOUT_STATEMENTS["origin"], "")
    line = about.get(ABOUT_STATEMENTS["line"], "")
    source = about.get("wasDerivedFrom", "")
    return replace(
        fact,
        weight=_weight(about.get(ABOUT_STATEMENTS["weight"], "1")),
        origin=origin,
        declared=fact.declared and not origin,
        path=unquote(source.removeprefix(FILE_BASE)) if source else fact.path,
        line=int(line) if line.isdecimal() and len(line) < 10 else 0,
    )


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 0 < weight <= 1 else 1.0

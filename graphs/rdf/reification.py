"""What a fact says of itself, as RDF: a node about the statement, read back into the fact.

* A statement that is weighed, or that a rule derived, is said once plainly and once more as an
  ``rdf:Statement`` with its weight, its rule, its file and its line.
* Such a node has the name of its statement, so that equal graphs stay equal texts.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TypeAlias
from urllib.parse import quote, unquote

from rdflib import PROV, RDF, XSD, Literal, URIRef

from graphs.facts.fact import Fact
from graphs.facts.vocabulary import ABOUT_STATEMENTS, FILE_BASE, STATEMENT_BASE, resolve

Triple: TypeAlias = tuple[URIRef, URIRef, URIRef | Literal]
_Row: TypeAlias = tuple[str, str, str]
_STATEMENT = str(RDF.Statement)
_WEIGHT, _ORIGIN, _LINE = (URIRef(ABOUT_STATEMENTS[name]) for name in ("weight", "origin", "line"))
_FURTHEST = 1 << 31


def reify(fact: Fact, triple: Triple) -> Iterator[Triple]:
    """Yield the triples about the *triple* that *fact* is; none for what one triple says whole."""
    if fact.literal or (fact.weight == 1 and not fact.origin):
        return
    name = hashlib.sha256(" ".join(part.n3() for part in triple).encode()).hexdigest()[:32]
    node = URIRef(STATEMENT_BASE + name)
    yield node, RDF.type, RDF.Statement
    for predicate, part in zip((RDF.subject, RDF.predicate, RDF.object), triple, strict=True):
        yield node, predicate, part
    # A decimal keeps every digit in every form; a double would be rounded in Turtle.
    weight = format(Decimal(repr(fact.weight)), "f")
    yield node, _WEIGHT, Literal(weight, datatype=XSD.decimal, normalize=False)
    if fact.origin:
        yield node, _ORIGIN, Literal(fact.origin.encode("utf-8", "replace").decode())
    if fact.path:
        yield node, PROV.wasDerivedFrom, URIRef(FILE_BASE + quote(fact.path, errors="replace"))
    if fact.line:
        yield node, _LINE, Literal(str(fact.line), datatype=XSD.integer, normalize=False)


def apply_reification(facts: Iterable[Fact]) -> tuple[Fact, ...]:
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
    reified = {_row(node): node for node in about.values() if node.get("type") == _STATEMENT}
    if not reified:
        return tuple(stated)
    return tuple(
        _with(fact, reified.get((fact.subject, fact.predicate, fact.object), {})) for fact in stated
    )


def _row(about: Mapping[str, str]) -> _Row:
    subject, predicate, target = (
        about.get(str(node), "") for node in (RDF.subject, RDF.predicate, RDF.object)
    )
    return subject, resolve(predicate) or predicate, target


def _with(fact: Fact, about: Mapping[str, str]) -> Fact:
    if not about or fact.literal:
        return fact
    origin = about.get(str(_ORIGIN), "")
    source = about.get("wasDerivedFrom", "")
    return replace(
        fact,
        weight=_weight(about.get(str(_WEIGHT), "1")),
        origin=origin,
        declared=fact.declared and not origin,
        path=unquote(source.removeprefix(FILE_BASE)) if source else fact.path,
        line=_line(about.get(str(_LINE), "0")),
    )


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 0 < weight <= 1 else 1.0


def _line(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 and int(text) < _FURTHEST else 0

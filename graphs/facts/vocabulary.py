"""Vocabulary of the graph, as one table of predicates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

NAMESPACES: Mapping[str, str] = {
    "dcterms": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "https://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "tg": "https://w3id.org/tool-gateway/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
DOCUMENT_BASE = "urn:tool-gateway:doc:"
CONCEPT_BASE = "urn:tool-gateway:concept:"
FILE_BASE = "urn:tool-gateway:file:"
BLANK_BASE = "urn:tool-gateway:blank:"
"""Prefix of the ids of imported blank nodes."""
STATEMENT_BASE = "urn:tool-gateway:statement:"
"""Prefix of the ids of RDF nodes that describe a statement."""
CONTEXT_IRI = "https://w3id.org/tool-gateway/context/v1"
"""IRI of the JSON-LD context, whose contents are in the packaged ``context.jsonld``."""
DOCUMENT_TYPE = NAMESPACES["tg"] + "Document"
PERSON_TYPE = NAMESPACES["schema"] + "Person"
CONCEPT_TYPE = NAMESPACES["skos"] + "Concept"
ABOUT_STATEMENTS: Mapping[str, str] = {
    name: NAMESPACES["tg"] + name for name in ("weight", "origin", "line")
}
"""RDF properties of a statement: its certainty, the rule that derived it, and the line of its
file."""

NO_PREFIXES: Mapping[str, str] = {}
NO_NAMES: Mapping[str, str] = {}

PredicateRole = Literal[
    "text", "member", "related", "next_step", "prerequisite", "consumes", "produces", "fact"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A predicate between two nodes, or between a node and a text."""

    name: str
    """Name of the predicate in documents and facts."""
    iri: str
    """Absolute IRI of the predicate in RDF."""
    role: PredicateRole
    """Use of the predicate in search and expansion; facts with the role ``fact`` are only
    stored."""
    weight: float
    """Strength of an edge with this predicate, in (0, 1]; unused for texts."""
    both_ways: bool = False
    """True if edges with this predicate are also followed from object to subject."""


def _table(*rows: tuple[str, str, PredicateRole, float]) -> Mapping[str, Predicate]:
    return {
        name: Predicate(
            name=name,
            iri=NAMESPACES[prefixed.partition(":")[0]] + prefixed.partition(":")[2],
            role=role,
            weight=weight,
            both_ways=role in {"member", "related"},
        )
        for name, prefixed, role, weight in rows
    }


PREDICATES: Mapping[str, Predicate] = _table(
    ("type", "rdf:type", "fact", 1.0),
    ("name", "schema:name", "text", 1.0),
    ("prefLabel", "skos:prefLabel", "text", 1.0),
    ("altLabel", "skos:altLabel", "text", 1.0),
    ("keywords", "schema:keywords", "text", 1.0),
    ("description", "schema:description", "text", 1.0),
    ("text", "schema:text", "text", 1.0),
    ("example", "skos:example", "text", 1.0),
    ("datePublished", "schema:datePublished", "text", 1.0),
    ("dateModified", "schema:dateModified", "text", 1.0),
    ("sourceProject", "tg:sourceProject", "text", 1.0),
    ("about", "schema:about", "member", 0.5),
    ("memberOf", "tg:memberOf", "member", 0.7),
    ("relatedTo", "tg:relatedTo", "related", 0.9),
    ("mentions", "schema:mentions", "related", 0.35),
    ("hasPart", "schema:hasPart", "related", 0.25),
    ("nextStep", "tg:nextStep", "next_step", 0.8),
    ("requires", "dcterms:requires", "prerequisite", 0.9),
    ("consumes", "schema:object", "consumes", 0.8),
    ("produces", "schema:result", "produces", 0.8),
    ("author", "schema:author", "fact", 1.0),
    ("creator", "schema:creator", "fact", 1.0),
    ("provider", "schema:provider", "fact", 1.0),
    ("url", "schema:url", "fact", 1.0),
    ("sameAs", "schema:sameAs", "fact", 1.0),
    ("broader", "skos:broader", "fact", 1.0),
    ("narrower", "skos:narrower", "fact", 1.0),
    ("inScheme", "skos:inScheme", "fact", 1.0),
    ("hasTopConcept", "skos:hasTopConcept", "fact", 1.0),
    ("wasDerivedFrom", "prov:wasDerivedFrom", "fact", 1.0),
)
"""Known predicates, keyed by name."""
PREDICATE_NAMES = ", ".join(sorted(PREDICATES))
"""Names of all predicates, separated by commas, for error messages."""

_SYNONYMS: Mapping[str, str] = {
    "alias": "altLabel",
    "inputs": "consumes",
    "next": "nextStep",
    "outputs": "produces",
    "related": "relatedTo",
}
_ABSOLUTE = re.compile(r"(?:https?://|urn:[a-zA-Z0-9])[^\s<>\"{}|\\^`]+")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
_DATE = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"(T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-][01]\d:[0-5]\d)?)?"
)


def _fold(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


_BY_WORD: Mapping[str, str] = {**{_fold(name): name for name in PREDICATES}, **_SYNONYMS}
_BY_IRI: Mapping[str, str] = {row.iri: row.name for row in PREDICATES.values()}


def is_iri(text: str) -> bool:
    """Return whether *text* is an absolute ``http(s):`` or ``urn:`` IRI."""
    return _ABSOLUTE.fullmatch(text) is not None


def is_language(tag: str) -> bool:
    """Return whether *tag* has the form of a BCP 47 language tag."""
    return _LANGUAGE.fullmatch(tag) is not None


def is_date(text: str) -> bool:
    """Return whether *text* is an ISO 8601 date or time."""
    return _DATE.fullmatch(text) is not None


def read_weight(text: str) -> float | None:
    """Parse the weight of a statement; None if *text* is not a number in (0, 1]."""
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 < weight <= 1 else None


def resolve(word: str, prefixes: Mapping[str, str] = NO_PREFIXES) -> str | None:
    """Find the predicate that *word* refers to.

    Args:
        word: A name in any case (``next_step``, ``nextStep``), a prefixed name, or an IRI.
        prefixes: Namespaces in addition to those of the vocabulary, keyed by prefix.

    Returns:
        A name in `PREDICATES`, or another absolute IRI, or None for anything else.
    """
    if name := _BY_WORD.get(_fold(word)):
        return name
    expanded = absolute(word, prefixes)
    return _BY_IRI.get(expanded, expanded) if is_iri(expanded) else None


def absolute(word: str, prefixes: Mapping[str, str] = NO_PREFIXES) -> str:
    """Expand a prefixed name to an IRI. Other texts are returned unchanged."""
    prefix, _, local = word.partition(":")
    base = NAMESPACES.get(prefix) or prefixes.get(prefix)
    expanded = base + local if base and local else word
    return expanded if is_iri(expanded) else word


def iri(name: str) -> str:
    """Return the IRI of a predicate name. An IRI is returned unchanged."""
    return PREDICATES[name].iri if name in PREDICATES else name


def role(name: str) -> PredicateRole:
    """Return the role of the predicate *name*; ``fact`` for an IRI outside the vocabulary."""
    return PREDICATES[name].role if name in PREDICATES else "fact"


def context() -> dict[str, object]:
    """Return the JSON-LD context: namespaces, predicates and properties of statements."""
    terms: dict[str, object] = {"id": "@id", "type": "@type", **NAMESPACES}
    for row in PREDICATES.values():
        if row.name != "type":
            terms[row.name] = row.iri if row.role == "text" else {"@id": row.iri, "@type": "@id"}
    for name, datatype in (("weight", "decimal"), ("line", "integer")):
        terms[name] = {"@id": ABOUT_STATEMENTS[name], "@type": NAMESPACES["xsd"] + datatype}
    terms["origin"] = ABOUT_STATEMENTS["origin"]
    return terms

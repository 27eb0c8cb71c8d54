"""The words of the graph, as one table.

A predicate has one name here, one IRI, and one role; everything else is derived from the table.
"""

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
"""What the blank nodes of an import are named with."""
STATEMENT_BASE = "urn:tool-gateway:statement:"
"""What the nodes about statements are named with in RDF."""
CONTEXT_IRI = "https://w3id.org/tool-gateway/context/v1"
"""The name of our JSON-LD context; the packaged ``context.jsonld`` stands for it."""
DOCUMENT_TYPE = NAMESPACES["tg"] + "Document"
PERSON_TYPE = NAMESPACES["schema"] + "Person"
CONCEPT_TYPE = NAMESPACES["skos"] + "Concept"
ABOUT_STATEMENTS: Mapping[str, str] = {
    name: NAMESPACES["tg"] + name for name in ("weight", "origin", "line")
}
"""What RDF says of a statement: how sure it is, the rule that derived it, the line of its file."""

NO_PREFIXES: Mapping[str, str] = {}
NO_NAMES: Mapping[str, str] = {}

PredicateRole = Literal[
    "text", "member", "related", "next_step", "prerequisite", "consumes", "produces", "fact"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """One word that can stand between two nodes, or between a node and a text."""

    name: str
    """The name in documents and facts."""
    iri: str
    """The absolute IRI in RDF."""
    role: PredicateRole
    """What search and expansion do with it; ``fact`` is only stored."""
    weight: float
    """How strongly one such edge ties its ends, in (0, 1]; for texts, unused."""
    both_ways: bool = False
    """Whether the edge is also followed from its object to its subject."""


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
"""Every predicate that the library understands, by name."""
PREDICATE_NAMES = ", ".join(sorted(PREDICATES))
"""For messages."""

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
    """Return whether *tag* is shaped like a BCP 47 language tag."""
    return _LANGUAGE.fullmatch(tag) is not None


def is_date(text: str) -> bool:
    """Return whether *text* is an ISO 8601 date or time."""
    return _DATE.fullmatch(text) is not None


def read_weight(text: str) -> float | None:
    """Return the weight that *text* is; None if it is no number in (0, 1]."""
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 < weight <= 1 else None


def resolve(word: str, prefixes: Mapping[str, str] = NO_PREFIXES) -> str | None:
    """Find the predicate that *word* means.

    Args:
        word: A name in any case (``next_step``, ``nextStep``), a prefixed name, or an IRI.
        prefixes: Further namespaces by their prefix.

    Returns:
        The name in `PREDICATES`, or an absolute IRI that is not ours, or None if it is neither.
    """
    if name := _BY_WORD.get(_fold(word)):
        return name
    found = absolute(word, prefixes)
    return _BY_IRI.get(found, found) if is_iri(found) else None


def absolute(word: str, prefixes: Mapping[str, str] = NO_PREFIXES) -> str:
    """Write a prefixed name out as an IRI; everything else stays what it is."""
    prefix, _, local = word.partition(":")
    base = NAMESPACES.get(prefix) or prefixes.get(prefix)
    found = base + local if base and local else word
    return found if is_iri(found) else word


def iri(name: str) -> str:
    """Return the IRI of a predicate name; an IRI stays what it is."""
    return PREDICATES[name].iri if name in PREDICATES else name


def role(name: str) -> PredicateRole:
    """Return the role of a predicate name; ``fact`` for every other IRI."""
    return PREDICATES[name].role if name in PREDICATES else "fact"


def context() -> dict[str, object]:
    """Build the JSON-LD context: the namespaces, each predicate, what is said of statements."""
    terms: dict[str, object] = {"id": "@id", "type": "@type", **NAMESPACES}
    for row in PREDICATES.values():
        if row.name != "type":
            terms[row.name] = row.iri if row.role == "text" else {"@id": row.iri, "@type": "@id"}
    for name, datatype in (("weight", "decimal"), ("line", "integer")):
        terms[name] = {"@id": ABOUT_STATEMENTS[name], "@type": NAMESPACES["xsd"] + datatype}
    terms["origin"] = ABOUT_STATEMENTS["origin"]
    return terms

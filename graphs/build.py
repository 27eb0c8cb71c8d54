"""Documents become facts, and facts become RDF when somebody asks.

* A label is looked up among the host's names, then among the documents; what is left is a concept.
* Ambiguity is silence: a label that two documents share points to neither.
* A fact keeps the file and the line it was read from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from graphs.body import Edge
from graphs.document import Document
from graphs.text import fold, slug
from graphs.vocabulary import (
    CONCEPT_BASE,
    CONCEPT_TYPE,
    DOCUMENT_TYPE,
    NAMESPACES,
    is_iri,
    role,
)

_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_LINKS = (
    ("related", "relatedTo"),
    ("next_steps", "nextStep"),
    ("requires", "requires"),
    ("groups", "memberOf"),
    ("consumes", "consumes"),
    ("produces", "produces"),
)
_OF_CONCEPTS = frozenset({"about", "memberOf", "consumes", "produces"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One statement of the graph, and where it comes from."""

    subject: str
    """A node id."""
    predicate: str
    """A name of the vocabulary, or an absolute IRI."""
    object: str
    """A node id, or a text if `literal`."""
    literal: bool
    """Whether the object is a text."""
    weight: float = 1.0
    """How sure the statement is, in (0, 1]; the predicate's own weight comes on top."""
    language: str = ""
    """The BCP 47 language of a text; empty if unknown."""
    path: str = ""
    """The file it was read from; empty if from none."""
    line: int = 0
    """The line of the file, counted from 1; 0 if unknown."""
    declared: bool
    """Whether the host stands for it."""


def facts(
    documents: Iterable[Document], *, names: Mapping[str, str] = _NO_NAMES
) -> tuple[Fact, ...]:
    """Turn *documents* into facts.

    Args:
        documents: In any order; of equal facts the declared one stays, else the first.
        names: Node ids by the names a text may use for them. Compared exactly first, then
            without regard to case, spaces, ``_`` and ``-``. A document with such an id, title
            or file name speaks about that node.

    Returns:
        Each fact once, in the order of the documents; empty without documents.
    """
    given = tuple(documents)
    names_of = _Names.of(given, names)
    merged: dict[tuple[str, str, str, bool, str], Fact] = {}
    for document in given:
        for fact in _Source(document=document, names=names_of).said():
            key = (fact.subject, fact.predicate, fact.object, fact.literal, fact.language)
            known = merged.get(key)
            merged[key] = _merged(known, fact) if known else fact
    return tuple(merged.values())


def _merged(known: Fact, new: Fact) -> Fact:
    kept = new if new.declared and not known.declared else known
    strongest = max(known.weight, new.weight)
    return kept if kept.weight == strongest else replace(kept, weight=strongest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    exact: Mapping[str, str]
    folded: Mapping[str, str]
    ids: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, documents: Sequence[Document], names: Mapping[str, str]) -> _Names:
        host = cls(exact=names, folded=_folded(names.items()), ids=frozenset(names.values()))
        nodes = [(document, host.node(document)) for document in documents]
        said = [(name, node) for document, node in nodes for name in _names_of(document)]
        ids = {document.id: node for document, node in nodes}
        return cls(
            exact=_unique(said) | ids | {node: node for node in host.ids} | dict(names),
            folded=_folded(said) | dict(host.folded),
            ids=host.ids,
        )

    def node(self, document: Document) -> str:
        """Give the node that *document* speaks about."""
        if document.id in self.ids:
            return document.id
        stem = document.path.rpartition("/")[2].removesuffix(".md")
        found = (self.find(name) for name in (document.id, document.title, stem) if name)
        return next(filter(None, found), document.id)

    def find(self, label: str) -> str:
        """Give the node that *label* means; empty if there is none, or more than one."""
        return self.exact.get(label) or self.folded.get(fold(label), "")


def _names_of(document: Document) -> Iterator[str]:
    yield from filter(None, (document.title, document.path, document.path.removesuffix(".md")))


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, node in pairs:
        if found.setdefault(name, node) != node:
            found[name] = ""
    return found


def _folded(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    return _unique((fold(name), node) for name, node in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A document that states facts; it stamps each with where it comes from."""

    document: Document
    names: _Names

    def said(self) -> Iterator[Fact]:
        """Give every fact of the document, as often as it is said."""
        subject = self.names.exact.get(self.document.id, self.document.id)
        yield self._edge(subject, "type", DOCUMENT_TYPE)
        for kind in self.document.types:
            yield self._edge(subject, "type", _type(kind))
        yield from self._texts(subject)
        for attribute, predicate in _LINKS:
            for link in getattr(self.document, attribute):
                yield from self._to(subject, predicate, link.target, link.label, link.line)
        for edge in self.document.edges:
            yield from self._stated(edge)

    def _texts(self, subject: str) -> Iterator[Fact]:
        document = self.document
        for predicate, values in (
            ("name", (document.title,)),
            ("description", (document.summary,)),
            ("keywords", (*document.tags, *document.keywords)),
            ("altLabel", document.aliases),
        ):
            for value in filter(None, values):
                yield self._text(subject, predicate, value)
        for section in document.sections:
            words = f"{section.heading}\n{section.text}".strip()
            if words:
                yield self._text(subject, "text", words, section.line)

    def _stated(self, edge: Edge) -> Iterator[Fact]:
        node, label = self._node(edge.subject, concept=False)
        if label:
            yield from self._concept(node, label, edge.line)
        if role(edge.predicate) == "text":
            yield self._text(node, edge.predicate, edge.object, edge.line)
        else:
            yield from self._to(node, edge.predicate, edge.object, "", edge.line)

    def _to(
        self, subject: str, predicate: str, target: str, label: str, line: int
    ) -> Iterator[Fact]:
        node, name = self._node(target, concept=predicate in _OF_CONCEPTS)
        yield self._edge(subject, predicate, node, line)
        if name:
            yield from self._concept(node, label or name, line)

    def _node(self, target: str, *, concept: bool) -> tuple[str, str]:
        """Give a node's id, and what to call it if it is a concept."""
        known = "" if concept else self.names.find(target)
        if known or is_iri(target):
            return known or target, ""
        return CONCEPT_BASE + slug(target), target

    def _concept(self, node: str, label: str, line: int) -> Iterator[Fact]:
        yield self._edge(node, "type", CONCEPT_TYPE, line)
        yield self._text(node, "prefLabel", label, line)

    def _edge(self, subject: str, predicate: str, target: str, line: int = 0) -> Fact:
        return Fact(
            subject=subject,
            predicate=predicate,
            object=target,
            literal=False,
            path=self.document.path,
            line=line,
            declared=self.document.declared,
        )

    def _text(self, subject: str, predicate: str, value: str, line: int = 0) -> Fact:
        return Fact(
            subject=subject,
            predicate=predicate,
            object=value,
            literal=True,
            language=self.document.language,
            path=self.document.path,
            line=line,
            declared=self.document.declared,
        )


def _type(kind: str) -> str:
    if is_iri(kind):
        return kind
    return NAMESPACES["schema"] + "".join(word[:1].upper() + word[1:] for word in kind.split())

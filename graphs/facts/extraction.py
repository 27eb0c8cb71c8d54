"""What one document says, as facts.

* A label is looked up among the names; what is left is a concept.
* A fact keeps the file and the line it was read from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphs.facts.fact import Fact
from graphs.facts.labels import Names
from graphs.facts.vocabulary import (
    CONCEPT_BASE,
    CONCEPT_TYPE,
    DOCUMENT_TYPE,
    NAMESPACES,
    PERSON_TYPE,
    absolute,
    is_iri,
    role,
)
from graphs.lexical.analysis import slug
from graphs.markdown.document import Document
from graphs.markdown.fields import is_date
from graphs.markdown.parts import Edge, Link

_LINKS = (
    ("authors", "author"),
    ("about", "about"),
    ("hints", "mentions"),
    ("related", "relatedTo"),
    ("next_steps", "nextStep"),
    ("requires", "requires"),
    ("groups", "memberOf"),
    ("consumes", "consumes"),
    ("produces", "produces"),
)
_OF_CONCEPTS = frozenset({"author", "about", "memberOf", "consumes", "produces"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A document that states facts; it stamps each with where it comes from."""

    document: Document
    names: Names
    looked_up: dict[str, str]
    """Takes each label that was looked up, and the node it means."""

    def facts(self) -> Iterator[Fact]:
        """Give every fact of the document, as often as it is said."""
        document = self.document
        subject = self.names.subject(document)
        yield self._edge(subject, "type", DOCUMENT_TYPE)
        for kind in document.types:
            yield self._edge(subject, "type", self._type(kind))
        yield from self._texts(subject)
        yield from self._properties(subject)
        for attribute, predicate in _LINKS:
            for link in getattr(document, attribute):
                yield from self._to(subject, predicate, link)
        for link in document.entities:
            node, name = self._node(link.target, concept=False)
            yield from self._described(node, name, link, CONCEPT_TYPE)
        for edge in document.edges:
            yield from self._stated(edge)

    def ban(self, edge: Edge) -> tuple[str, str, str]:
        """Give the subject, predicate and object of an edge that nobody may derive."""
        concept = edge.predicate in _OF_CONCEPTS
        subject, _ = self._node(edge.subject, concept=False)
        target, _ = self._node(edge.object, concept=concept)
        return subject, edge.predicate, target

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
        if document.source_project:
            yield self._literal(subject, "sourceProject", document.source_project)
        for section in document.sections:
            words = f"{section.heading}\n{section.text}".strip()
            if words:
                yield self._text(subject, "text", words, section.line)

    def _properties(self, subject: str) -> Iterator[Fact]:
        document = self.document
        if document.url:
            yield self._edge(subject, "url", self._absolute(document.url))
        for predicate, date in (
            ("datePublished", document.published),
            ("dateModified", document.modified),
        ):
            if date:
                yield self._literal(subject, predicate, date, "", _datatype(date))
        for text in document.texts:
            datatype = self._absolute(text.datatype) if text.datatype else ""
            yield self._literal(
                subject, text.predicate, text.value, text.language, datatype, text.line
            )

    def _stated(self, edge: Edge) -> Iterator[Fact]:
        node, label = self._node(edge.subject, concept=False)
        if label:
            yield from self._concept(node, label, CONCEPT_TYPE, edge.line)
        if role(edge.predicate) == "text":
            yield self._text(node, edge.predicate, edge.object, edge.line)
        else:
            link = Link(target=edge.object, line=edge.line)
            yield from self._to(node, edge.predicate, link, edge.weight)

    def _to(self, subject: str, predicate: str, link: Link, weight: float = 1.0) -> Iterator[Fact]:
        node, name = self._node(link.target, concept=predicate in _OF_CONCEPTS)
        yield self._edge(subject, predicate, node, link.line, weight)
        kind = PERSON_TYPE if predicate == "author" else CONCEPT_TYPE
        yield from self._described(node, name, link, kind)

    def _described(self, node: str, name: str, link: Link, kind: str) -> Iterator[Fact]:
        """Give what *link* says of its node besides that it is there."""
        if name and not link.types:
            yield from self._concept(node, link.label or name, kind, link.line)
        elif name or link.label:
            yield self._text(node, "prefLabel", link.label or name, link.line)
        for each in link.types:
            yield self._edge(node, "type", self._type(each), link.line)
        for each in link.same_as:
            yield self._edge(node, "sameAs", self._absolute(each), link.line)

    def _node(self, target: str, *, concept: bool) -> tuple[str, str]:
        """Give a node's id, and what to call it if it is a concept."""
        if not concept:
            known = self.names.find(target)
            self.looked_up[target] = known
            if known:
                return known, ""
        node = self._absolute(target)
        return (node, "") if is_iri(node) else (CONCEPT_BASE + slug(target), target)

    def _absolute(self, word: str) -> str:
        return absolute(word, dict(self.document.prefixes))

    def _type(self, kind: str) -> str:
        found = self._absolute(kind)
        if is_iri(found):
            return found
        words = (word[:1].upper() + word[1:] for word in kind.split())
        return NAMESPACES["schema"] + "".join(words)

    def _concept(self, node: str, label: str, kind: str, line: int) -> Iterator[Fact]:
        yield self._edge(node, "type", kind, line)
        yield self._text(node, "prefLabel", label, line)

    def _edge(
        self, subject: str, predicate: str, target: str, line: int = 0, weight: float = 1.0
    ) -> Fact:
        return Fact(
            subject=subject,
            predicate=predicate,
            object=target,
            literal=False,
            weight=weight,
            path=self.document.path,
            line=line,
            declared=self.document.declared,
        )

    def _text(self, subject: str, predicate: str, value: str, line: int = 0) -> Fact:
        return self._literal(subject, predicate, value, self.document.language, "", line)

    def _literal(
        self,
        subject: str,
        predicate: str,
        value: str,
        language: str = "",
        datatype: str = "",
        line: int = 0,
    ) -> Fact:
        return Fact(
            subject=subject,
            predicate=predicate,
            object=value,
            literal=True,
            language=language,
            datatype=datatype,
            path=self.document.path,
            line=line,
            declared=self.document.declared,
        )


def _datatype(date: str) -> str:
    if not is_date(date):
        return ""
    return NAMESPACES["xsd"] + ("dateTime" if "T" in date else "date")

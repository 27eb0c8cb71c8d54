"""Extraction of facts from documents.

A label is looked up among the host's names first, then among the documents. An unknown label
becomes a concept. An ambiguous label, such as the title of two documents, refers to neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from graphs.facts.fact import Fact, Triple, merge_facts
from graphs.facts.vocabulary import (
    CONCEPT_BASE,
    CONCEPT_TYPE,
    DOCUMENT_TYPE,
    NAMESPACES,
    NO_NAMES,
    PERSON_TYPE,
    absolute,
    is_date,
    is_iri,
    role,
)
from graphs.lexical.analysis import fold, slug
from graphs.markdown.document import Document, Edge, Link

_LINKS = (
    ("authors", "author"), ("about", "about"), ("hints", "mentions"), ("related", "relatedTo"),
    ("next_steps", "nextStep"), ("requires", "requires"), ("groups", "memberOf"),
    ("consumes", "consumes"), ("produces", "produces"),
)  # fmt: skip
OF_CONCEPTS = frozenset({"author", "about", "memberOf", "consumes", "produces"})
"""Predicates whose objects are always concepts, never documents."""
fold_label = lru_cache(maxsize=1 << 17)(fold)


class LabelResolver:
    """Finds the node that a label in a text refers to.

    *names* are the host's names of nodes. *others* are ids and titles of further nodes.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        names: Mapping[str, str],
        others: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._names = names
        self._others = list(others)
        self._folded_names = _unique_nodes((fold_label(name), node) for name, node in names.items())
        self._host_nodes = {node: node for node in names.values()}
        self._documents = list(documents)
        self._nodes = [self._described_node(document) for document in self._documents]
        nodes = zip(self._documents, self._nodes, strict=True)
        ids = _unique_nodes(
            [
                *((document.id, node) for document, node in nodes),
                *((node, node) for node, _ in self._others),
            ]
        )
        self._exact = {**_unique_nodes(self._titles()), **ids, **self._host_nodes, **names}

    @cached_property
    def _folded(self) -> Mapping[str, str]:
        titles = _unique_nodes((fold_label(title), node) for title, node in self._titles())
        return titles | self._folded_names

    def _titles(self) -> Iterator[tuple[str, str]]:
        for document, node in zip(self._documents, self._nodes, strict=True):
            for title in (document.title, document.path, document.path.removesuffix(".md")):
                if title:
                    yield title, node
        yield from ((title, node) for node, title in self._others if title)

    def _described_node(self, document: Document) -> str:
        """Return the node that *document* describes: one named by the host, or its own."""
        if not self._names or document.id in self._host_nodes:
            return document.id
        stem = document.path.rpartition("/")[2].removesuffix(".md")
        labels = filter(None, (document.id, document.title, stem))
        named = (
            self._names.get(label) or self._folded_names.get(fold_label(label)) for label in labels
        )
        return next(filter(None, named), document.id)

    def subject(self, document: Document) -> str:
        """Return the id of the node that is the subject of the facts of *document*."""
        if document.id in self._host_nodes:
            return document.id
        return self._exact.get(document.id) or document.id

    def find(self, label: str) -> str:
        """Return the id of the node that *label* refers to; empty if unknown or ambiguous."""
        return self._exact.get(label) or self._folded.get(fold_label(label)) or ""


def _unique_nodes(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return node ids, keyed by name. A name of several nodes gets an empty id."""
    node_by_name: dict[str, str] = {}
    for name, node in pairs:
        if node_by_name.setdefault(name, node) != node:
            node_by_name[name] = ""
    return node_by_name


@dataclass(frozen=True, slots=True, kw_only=True)
class FactExtractor:
    """Reads the facts of one document, with their file and line."""

    document: Document
    labels: LabelResolver
    meanings: dict[str, str] = field(default_factory=dict)
    """Ids of the nodes of the labels looked up so far, keyed by label; empty for an unknown or
    ambiguous label."""

    def facts(self) -> Iterator[Fact]:
        """Yield the facts of the document, including duplicates."""
        document = self.document
        subject = self.labels.subject(document)
        yield self._edge(subject, "type", DOCUMENT_TYPE)
        for kind in document.types:
            yield self._edge(subject, "type", self._type(kind))
        yield from self._texts(subject)
        yield from self._properties(subject)
        for attribute, predicate in _LINKS:
            for link in getattr(document, attribute):
                yield from self._link_facts(subject, predicate, link)
        for link in document.entities:
            node, name = self._node(link.target, concept=False)
            yield from self._description_facts(node, name, link, CONCEPT_TYPE)
        for edge in document.edges:
            yield from self._edge_facts(edge)

    def ban(self, edge: Edge) -> tuple[str, str, str]:
        """Return the subject, predicate and object of *edge*, which the document forbids."""
        subject, _ = self._node(edge.subject, concept=False)
        target, _ = self._node(edge.object, concept=edge.predicate in OF_CONCEPTS)
        return subject, edge.predicate, target

    def _texts(self, subject: str) -> Iterator[Fact]:
        document = self.document
        texts = {
            "name": (document.title,),
            "description": (document.summary,),
            "keywords": (*document.tags, *document.keywords),
            "altLabel": document.aliases,
        }
        for predicate, values in texts.items():
            for value in filter(None, values):
                yield self._text(subject, predicate, value)
        if document.source_project:
            yield self._fact(subject, "sourceProject", document.source_project, literal=True)
        for section in document.sections:
            if words := f"{section.heading}\n{section.text}".strip():
                yield self._text(subject, "text", words, section.line)

    def _properties(self, subject: str) -> Iterator[Fact]:
        document = self.document
        if document.url:
            yield self._edge(subject, "url", self._absolute(document.url))
        dates = {"datePublished": document.published, "dateModified": document.modified}
        for predicate, date in dates.items():
            if date:
                kind = "dateTime" if "T" in date else "date"
                datatype = NAMESPACES["xsd"] + kind if is_date(date) else ""
                yield self._fact(subject, predicate, date, literal=True, datatype=datatype)
        for text in document.texts:
            yield self._fact(
                subject,
                text.predicate,
                text.value,
                text.line,
                literal=True,
                language=text.language,
                datatype=self._absolute(text.datatype),
            )

    def _edge_facts(self, edge: Edge) -> Iterator[Fact]:
        node, label = self._node(edge.subject, concept=False)
        if label:
            yield from self._concept(node, label, CONCEPT_TYPE, edge.line)
        if role(edge.predicate) == "text":
            yield self._text(node, edge.predicate, edge.object, edge.line)
        else:
            link = Link(target=edge.object, line=edge.line)
            yield from self._link_facts(node, edge.predicate, link, edge.weight)

    def _link_facts(
        self, subject: str, predicate: str, link: Link, weight: float = 1.0
    ) -> Iterator[Fact]:
        node, name = self._node(link.target, concept=predicate in OF_CONCEPTS)
        yield self._edge(subject, predicate, node, link.line, weight)
        kind = PERSON_TYPE if predicate == "author" else CONCEPT_TYPE
        yield from self._description_facts(node, name, link, kind)

    def _description_facts(self, node: str, name: str, link: Link, kind: str) -> Iterator[Fact]:
        if name and not link.types:
            yield from self._concept(node, link.label or name, kind, link.line)
        elif name or link.label:
            yield self._text(node, "prefLabel", link.label or name, link.line)
        for type_name in link.types:
            yield self._edge(node, "type", self._type(type_name), link.line)
        for iri in link.same_as:
            yield self._edge(node, "sameAs", self._absolute(iri), link.line)

    def _node(self, target: str, *, concept: bool) -> tuple[str, str]:
        """Return the id of the node named *target*, and its label if the node is a concept."""
        if not concept:
            node_id = self.meanings[target] = self.labels.find(target)
            if node_id:
                return node_id, ""
        node = self._absolute(target)
        return (node, "") if is_iri(node) else (CONCEPT_BASE + slug(target), target)

    def _absolute(self, word: str) -> str:
        return absolute(word, dict(self.document.prefixes))

    def _type(self, kind: str) -> str:
        type_iri = self._absolute(kind)
        if is_iri(type_iri):
            return type_iri
        words = (word[:1].upper() + word[1:] for word in kind.split())
        return NAMESPACES["schema"] + "".join(words)

    def _concept(self, node: str, label: str, kind: str, line: int) -> Iterator[Fact]:
        yield self._edge(node, "type", kind, line)
        yield self._text(node, "prefLabel", label, line)

    def _edge(
        self, subject: str, predicate: str, target: str, line: int = 0, weight: float = 1.0
    ) -> Fact:
        return self._fact(subject, predicate, target, line, literal=False, weight=weight)

    def _text(self, subject: str, predicate: str, value: str, line: int = 0) -> Fact:
        language = self.document.language
        return self._fact(subject, predicate, value, line, literal=True, language=language)

    def _fact(
        self, subject: str, predicate: str, target: str, line: int = 0, **further: Any
    ) -> Fact:
        return Fact(
            subject=subject,
            predicate=predicate,
            object=target,
            path=self.document.path,
            line=line,
            declared=self.document.declared,
            **further,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Facts of one document, valid while its labels refer to the same nodes."""

    document: Document
    subject: str
    meanings: Mapping[str, str]
    facts: tuple[Fact, ...]
    bans: frozenset[Triple]

    @classmethod
    def of(cls, document: Document, labels: LabelResolver) -> _Reading:
        extractor = FactExtractor(document=document, labels=labels)
        return cls(
            document=document,
            subject=labels.subject(document),
            facts=merge_facts([extractor.facts()]),
            bans=frozenset(map(extractor.ban, document.forbidden if document.declared else ())),
            meanings=extractor.meanings,
        )

    def is_valid(self, labels: LabelResolver) -> bool:
        return self.subject == labels.subject(self.document) and all(
            labels.find(label) == node for label, node in self.meanings.items()
        )


class DocumentReader:
    """Extracts the facts of documents and caches them. Not thread-safe.

    Facts are extracted again only if the document is a new object, or one of its labels refers to
    another node.
    """

    def __init__(self) -> None:
        self._readings: dict[int, _Reading] = {}
        """Cached facts, keyed by `id()` of the document. A value keeps its document alive, so that
        the key stays unique."""
        self._named: tuple[Sequence[tuple[str, ...]], Mapping[str, str]] = (), NO_NAMES
        self._labels = LabelResolver((), NO_NAMES)

    def read(
        self,
        documents: Iterable[Document],
        names: Mapping[str, str] = NO_NAMES,
        others: Iterable[tuple[str, str]] = (),
    ) -> tuple[list[tuple[Fact, ...]], frozenset[Triple]]:
        """Return the facts of each document without duplicates, and the forbidden edges.

        *names* are as in `extract_facts`. *others* are ids and titles of further nodes that labels
        may refer to.
        """
        all_documents, other_nodes = list(documents), list(others)
        titles = [
            *((document.id, document.title, document.path) for document in all_documents),
            *other_nodes,
        ]
        if self._named != (titles, names):
            self._named = titles, names
            self._labels = labels = LabelResolver(all_documents, names, other_nodes)
            self._readings = {
                key: reading for key, reading in self._readings.items() if reading.is_valid(labels)
            }
        before, labels = self._readings, self._labels
        readings = [
            before.get(id(document)) or _Reading.of(document, labels) for document in all_documents
        ]
        self._readings = {id(reading.document): reading for reading in readings}
        bans = frozenset[Triple]().union(*(reading.bans for reading in readings))
        return [reading.facts for reading in readings], bans


def extract_facts(
    documents: Iterable[Document],
    *,
    names: Mapping[str, str] = NO_NAMES,
    derived: Iterable[Fact] = (),
) -> tuple[Fact, ...]:
    """Extract the facts of *documents*. Equal facts are merged as in `merge_facts`.

    Args:
        documents: Documents in any order.
        names: Node ids, keyed by the names that texts may use. An exact match is tried first, then
            one without case, spaces, ``_`` and ``-``. A document with such an id, title or file
            name describes that node.
        derived: Facts derived by the host's own rules, with their ``origin``.

    Returns:
        Facts of the documents in order, then derived facts that no declared document forbids.
    """
    stated, bans = DocumentReader().read(documents, names)
    return merge_facts([*stated, derived], bans)

"""Documents and derived facts -> a compiled graph, again and again.

What is dear is kept for each source of facts: its edges as numbers, its labels; and for each node
its tokens. Every build makes the arrays anew from these, so that it gives what a first build gives.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from graphs.facts.extraction import DocumentReader
from graphs.facts.fact import Fact
from graphs.facts.provenance import Triple, is_banned, stronger
from graphs.facts.vocabulary import CONCEPT_BASE, DOCUMENT_TYPE, NO_NAMES
from graphs.graph import EDGE_PREDICATES, EdgeData, GraphIndex
from graphs.lexical.analysis import DocumentTokens, Fields, Phrase, Vocabulary
from graphs.lexical.bm25_index import BM25Index
from graphs.markdown.document import Document
from graphs.parameters import FIELD_WEIGHTS, MAX_UNUSED

FIELDS: Mapping[str, str] = {
    "name": "name",
    "prefLabel": "name",
    "altLabel": "hints",
    "keywords": "hints",
    "description": "description",
    "text": "text",
}
"""The field of each predicate whose text is searched."""
_KINDS = "", "other", "concept", "group", "document"
_NO_NODES = np.zeros(0, dtype=np.int32)
_ATTRIBUTES = "predicate", "weight", "declared", "origin", "path", "line"
_attributes_of = attrgetter(*_ATTRIBUTES)
_LabelOrder: TypeAlias = tuple[bool, bool, str, int, str, str]
"""As names are ordered, the best first; the fifth part is the name."""
_Added: TypeAlias = tuple[str, Phrase]
"""The field of a text, and the text."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Source:
    """What one source states; nodes are numbers of one builder."""

    facts: Iterable[Fact]
    edges: np.ndarray
    """Subject, object and attributes of each edge, int32, shape (edges, 3)."""
    documents: np.ndarray
    """Int32."""
    labels: Mapping[int, _LabelOrder]
    """The best name of each node, if the host states any of it."""
    derived_labels: tuple[np.ndarray, Sequence[str]]
    """Else the nodes, int32, and their best names."""
    texts: Mapping[str, list[_Added]]
    """The texts of each node, by its id, if they are needed."""
    members: Sequence[tuple[str, int]]
    """The id of each member that the host declares, and its group."""
    declared: bool
    """Whether the host states any of it."""


class GraphBuilder:
    """Compiles a graph that changes. Not for two threads at once; its graphs are immutable.

    Args:
        weights: Weight of each text field; see `graphs.parameters.FIELD_WEIGHTS`.
        fields: Returns the texts of one of the rows that `build` gets.
    """

    def __init__(
        self,
        *,
        weights: Mapping[str, float] = FIELD_WEIGHTS,
        fields: Callable[[Any], Fields] = dict,
    ) -> None:
        self._weights = weights
        self._fields = fields
        self._reader = DocumentReader()
        self._used = 0
        """How many nodes and terms the last graph has."""
        self._forget()

    def _forget(self) -> None:
        self._vocabulary = Vocabulary(self._weights)
        self._nodes: dict[str, int] = {}
        """Number of each node."""
        self._concepts: list[int] = []
        """The numbers of those that are concepts by their ids."""
        self._attributes: dict[tuple[object, ...], int] = {}
        """Number of each predicate with its data."""
        self._sources: dict[int, _Source] = {}
        """By the id of their facts, which they hold."""
        self._tokens: dict[str, tuple[object, Sequence[_Added], DocumentTokens]] = {}
        """The row of each node, the texts that are added to it, and the tokens of both."""

    def build(
        self,
        documents: Iterable[Document] = (),
        *,
        names: Mapping[str, str] = NO_NAMES,
        others: Iterable[tuple[str, str]] = (),
        derived: Iterable[Iterable[Fact]] = (),
        rows: Mapping[str, object] | None = None,
        texts: BM25Index | None = None,
    ) -> GraphIndex:
        """Compile *documents* and *derived* facts, but those that the host's documents forbid.

        Args:
            documents: All that are read. One that did not change is to be the same object as
                before.
            names: The host's names; see `graphs.facts.extraction.extract_facts`.
            others: Further nodes that labels may mean, with their titles.
            derived: Facts of the host's own rules, in parts that can be read again. A part that
                did not change is to be the same object as before.
            rows: The nodes that texts find, in their order, with what ``fields`` makes their texts
                of: the same object as before where they did not change. What the host declares of
                them is added. None finds all documents, by all that is stated.
            texts: What `index` just made of *rows*: it serves if nothing is to be added.
        """
        if texts is None:
            self._forget_unused()
        read, bans = self._reader.read(documents, names, others)
        statements: list[Iterable[Fact]] = [*read, *derived]
        for node in rows or ():
            # Ids of rows are held by the caller too.
            self._number(node)
        self._sources = {
            id(facts): self._sources.get(id(facts)) or self._read(facts, whole=rows is None)
            for facts in statements
        }
        sources = list(self._sources.values())
        labels = _labels(sources)
        described = np.concatenate([_NO_NODES, *(source.documents for source in sources)])
        if rows is None:
            rows = dict.fromkeys(self._sorted(described, labels), ())
            added = _added(sources, labels, rows)
        else:
            added = _added([source for source in sources if source.declared], labels, rows)
        if texts is None or added:
            texts = self._index(rows, added)
        stated = np.concatenate([np.zeros((0, 3), np.int32), *(source.edges for source in sources)])
        named_nodes = np.fromiter(labels, np.intp, count=len(labels))
        order = self._order(rows, [described, stated[:, :2].ravel(), named_nodes])
        edges = self._edges(stated, order, bans)
        ids = list(self._nodes)
        nodes = [ids[number] for number in order.tolist()]
        named = zip(map(labels.get, order.tolist()), nodes, strict=True)
        groups = [group for source in sources for _, group in source.members]
        self._used = len(nodes) + len(texts.names)
        return GraphIndex(
            nodes=nodes,
            labels=[node if label is None else label for label, node in named],
            kinds=self._kinds(order, edges, groups, described),
            edges=edges,
            attributes=[(str(key[0]), _data(key)) for key in self._attributes],
            texts=texts,
            statements=lambda: statements,
            forbidden=bans,
        )

    def _read(self, facts: Iterable[Fact], *, whole: bool) -> _Source:
        """Read what a source states; its texts only if it is *whole*, or the host states them."""
        edges: list[tuple[int, int, int]] = []
        documents: list[int] = []
        texts: defaultdict[str, list[_Added]] = defaultdict(list)
        members: list[tuple[str, int]] = []
        labels: dict[int, _LabelOrder] = {}
        declared = False
        for fact in facts:
            declared |= fact.declared
            role = EDGE_PREDICATES.get(fact.predicate)
            if fact.predicate == "type" and fact.object == DOCUMENT_TYPE:
                documents.append(self._number(fact.subject))
            elif fact.literal and fact.predicate in FIELDS:
                field = FIELDS[fact.predicate]
                texts[fact.subject].append((field, (fact.object, fact.language)))
                if field == "name":
                    number, order = self._number(fact.subject), _label_order(fact)
                    labels[number] = min(order, labels.get(number, order))
            elif role and not fact.literal:
                edges.append(self._edge(fact))
                if role == "member" and fact.declared:
                    members.append((fact.subject, edges[-1][1]))
        derived = {} if declared else labels
        names = [sys.intern(order[4]) for order in derived.values()]
        return _Source(
            facts=facts,
            edges=np.array(edges, dtype=np.int32).reshape(-1, 3),
            documents=np.array(documents, dtype=np.int32),
            labels=labels if declared else {},
            derived_labels=(np.array([*derived], dtype=np.int32), names),
            texts=texts if declared or whole else {},
            members=members,
            declared=declared,
        )

    def _edge(self, fact: Fact) -> tuple[int, int, int]:
        key = _attributes_of(fact)
        number = self._attributes.setdefault(key, len(self._attributes))
        return self._number(fact.subject), self._number(fact.object), number

    def _number(self, node: str) -> int:
        number = self._nodes.get(node)
        if number is None:
            number = self._nodes[node] = len(self._nodes)
            if node.startswith(CONCEPT_BASE):
                self._concepts.append(number)
        return number

    def _sorted(self, documents: np.ndarray, labels: Mapping[int, str]) -> list[str]:
        """Return the ids of *documents* by their names."""
        ids = list(self._nodes)
        named = {ids[number]: labels.get(number, ids[number]) for number in documents.tolist()}
        return sorted(named, key=lambda node: (named[node], node))

    def _order(self, rows: Collection[str], others: Sequence[np.ndarray]) -> np.ndarray:
        """Return the numbers of *rows*, then all further ones of *others*."""
        first = np.fromiter((self._nodes[node] for node in rows), np.intp, count=len(rows))
        used = np.zeros(len(self._nodes), dtype=np.bool_)
        used[np.concatenate(others)] = True
        used[first] = False
        return np.concatenate([first, np.flatnonzero(used)])

    def _kinds(
        self, order: np.ndarray, edges: np.ndarray, groups: list[int], described: np.ndarray
    ) -> list[str]:
        kinds = np.zeros(len(self._nodes), dtype=np.intp)
        kinds[order[edges[:, :2]]] = _KINDS.index("other")
        kinds[self._concepts] = _KINDS.index("concept")
        kinds[groups] = _KINDS.index("group")
        kinds[described] = _KINDS.index("document")
        return [_KINDS[kind] for kind in kinds[order].tolist()]

    def _edges(self, stated: np.ndarray, order: np.ndarray, bans: frozenset[Triple]) -> np.ndarray:
        """Return each edge once, as its strongest statement, without those that *bans* name.

        Args:
            stated: All statements of edges, in the numbers of this builder.
            order: The numbers of all nodes; the result has their places.
            bans: What may not be derived.
        """
        places = np.zeros(len(self._nodes), dtype=np.int32)
        places[order] = np.arange(len(order))
        edges = np.column_stack([places[stated[:, :2]], stated[:, 2]])
        predicates: dict[object, int] = {}
        numbers = [predicates.setdefault(key[0], len(predicates)) for key in self._attributes]
        keys = (edges[:, 0].astype(np.int64) * len(order) + edges[:, 1]) * len(predicates)
        keys += np.array(numbers, dtype=np.int64)[edges[:, 2]]
        by_key = np.argsort(keys, kind="stable")
        edges, keys = edges[by_key], keys[by_key]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        if bans or len(starts) < len(edges):
            return self._strongest(edges, starts, order, bans)
        return edges

    def _strongest(
        self, edges: np.ndarray, starts: np.ndarray, order: np.ndarray, bans: frozenset[Triple]
    ) -> np.ndarray:
        ids, attributes = list(self._nodes), list(self._attributes)
        counts = np.diff(starts, append=len(edges))
        chosen = edges[starts].copy()
        allowed = np.ones(len(starts), dtype=np.bool_)
        banned = [self._number(node) for subject, _, end in bans for node in (subject, end)]
        suspects = np.isin(order[chosen[:, 0]], banned)
        for place in np.flatnonzero((counts > 1) | suspects).tolist():
            rivals = edges[starts[place] : starts[place] + counts[place]].tolist()
            facts = [_fact(ids[order[s]], ids[order[e]], attributes[a]) for s, e, a in rivals]
            facts = [fact for fact in facts if not is_banned(fact, bans)]
            allowed[place] = bool(facts)
            if facts:
                chosen[place, 2] = self._edge(reduce(stronger, facts))[2]
        found: np.ndarray = chosen[allowed]
        return found

    def index(self, rows: Mapping[str, object]) -> BM25Index:
        """Index the texts of *rows*; those that are the same object are not tokenized again.

        Args:
            rows: Each node, with what ``fields`` makes its texts of.
        """
        self._forget_unused()
        return self._index(rows, {})

    def _index(
        self, rows: Mapping[str, object], added: Mapping[str, Sequence[_Added]]
    ) -> BM25Index:
        before, self._tokens = self._tokens, {}
        for node, row in rows.items():
            more = added.get(node, ())
            cached = before.get(node)
            if cached is None or cached[0] is not row or cached[1] != more:
                cached = row, more, self._vocabulary.tokenize(_merged(self._fields(row), more))
            self._tokens[node] = cached
        tokens = [cached[2] for cached in self._tokens.values()]
        return BM25Index.compile(tokens, self._vocabulary)

    def _forget_unused(self) -> None:
        """Begin anew if most of what is numbered is of the past."""
        if len(self._nodes) + len(self._vocabulary.terms) > 2 * self._used + MAX_UNUSED:
            self._forget()


def compile_facts(facts: Iterable[Fact]) -> GraphIndex:
    """Compile *facts* once; without facts the graph is empty and finds nothing."""
    return GraphBuilder().build(derived=[tuple(facts)])


def _added(
    sources: Iterable[_Source], labels: Mapping[int, str], rows: Container[str]
) -> dict[str, list[_Added]]:
    """Return what *sources* add to the texts of *rows*, but for rows without any."""
    added: defaultdict[str, list[_Added]] = defaultdict(list)
    for source in sources:
        for node, texts in source.texts.items():
            if node in rows:
                added[node] += texts
        for node, group in source.members:
            if group in labels and node in rows:
                added[node].append(("group", (labels[group], "")))
    return added


def _labels(sources: Sequence[_Source]) -> dict[int, str]:
    """Return the best name of each node that the host declares, or else the first."""
    found: dict[int, str] = {}
    for source in reversed(sources):
        numbers, names = source.derived_labels
        found.update(zip(numbers.tolist(), names, strict=True))
    best: dict[int, _LabelOrder] = {}
    for source in sources:
        for node, order in source.labels.items():
            best[node] = min(order, best.get(node, order))
    return found | {node: order[4] for node, order in best.items()}


def _label_order(fact: Fact) -> _LabelOrder:
    other = fact.predicate != "name"
    return not fact.declared, other, fact.path, fact.line, fact.object, fact.language


def _data(key: tuple[object, ...]) -> EdgeData:
    data = dict(zip(_ATTRIBUTES, key, strict=True))
    rule, predicate = data.pop("origin"), data.pop("predicate")
    return {"role": EDGE_PREDICATES[str(predicate)], "rule": rule, **data}


def _fact(subject: str, target: str, key: tuple[object, ...]) -> Fact:
    stated: dict[str, Any] = dict(zip(_ATTRIBUTES, key, strict=True))
    return Fact(subject=subject, object=target, literal=False, **stated)


def _merged(fields: Fields, added: Sequence[_Added]) -> Fields:
    """Return *fields* with the phrases that were *added*, each once."""
    if not added:
        return fields
    phrases: dict[str, dict[Phrase, None]] = {}
    for name, value in fields.items():
        phrases[name] = dict.fromkeys([(value, "")] if isinstance(value, str) else value)
    for name, phrase in sorted(added):
        phrases.setdefault(name, {})[phrase] = None
    return {name: tuple(found) for name, found in phrases.items()}

"""Documents and derived facts -> a compiled graph, again and again.

What a build reads again are the sources that came, went or changed. Texts are indexed whole, from
cached token counts. The network of the last build is copied where it changes, so that readers of
an earlier graph never see a change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeAlias

from graphs.facts.extraction import FactCache
from graphs.facts.fact import Fact
from graphs.facts.provenance import Triple, is_banned, stronger
from graphs.facts.vocabulary import CONCEPT_BASE, DOCUMENT_TYPE, NO_NAMES
from graphs.graph import (
    EDGE_PREDICATES,
    EdgeData,
    GraphIndex,
    Network,
    fact_of,
    new_network,
    tables_of,
)
from graphs.lexical.bm25_index import BM25Index
from graphs.lexical.token_cache import Fields, TokenCache
from graphs.markdown.document import Document

FIELD_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"name": 3.0, "alias": 2.5, "keywords": 1.5, "description": 1.0, "text": 0.5}
)
"""Weight of each field of a node's text."""
FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "name": "name",
        "prefLabel": "name",
        "altLabel": "alias",
        "keywords": "keywords",
        "description": "description",
        "text": "text",
    }
)
"""The field of each predicate whose text is searched."""
K1 = 3.0
"""A name's word counts threefold at once: saturation has to begin later than in plain BM25."""
_EdgeKey: TypeAlias = tuple[str, str, str]
_RowKey: TypeAlias = tuple[bool, str, str]


class GraphBuilder:
    """Compiles a graph that changes. Not for two threads at once; its graphs are immutable.

    Args:
        weights: Weight of each text field: name, alias, keywords, description, text.
    """

    def __init__(self, *, weights: Mapping[str, float] = FIELD_WEIGHTS) -> None:
        self._weights = weights
        self._cache = FactCache()
        self._tokens = TokenCache()
        self._state = _State()

    @property
    def extracted(self) -> int:
        """How many documents the last build worked out; the others were as before."""
        return self._cache.extracted

    def build(
        self,
        documents: Iterable[Document],
        *,
        names: Mapping[str, str] = NO_NAMES,
        derived: Iterable[tuple[Fact, ...]] = (),
    ) -> GraphIndex:
        """Compile *documents*.

        Args:
            documents: All of them. One that did not change is to be the same object as before.
            names: The host's names; see `graphs.facts.extraction.extract_facts`.
            derived: Facts of the host's own rules, in parts. A part that did not change is to
                be the same object as before.
        """
        stated = self._cache.extract(documents, names)
        bans = frozenset(ban for source in stated for ban in source.bans)
        return self.compile([*(source.facts for source in stated), *derived], bans)

    def compile(
        self, statements: Sequence[tuple[Fact, ...]], bans: frozenset[Triple] = frozenset()
    ) -> GraphIndex:
        """Compile facts by their sources, without the derived ones that *bans* name."""
        if bans != self._state.bans:
            self._state = _State(bans=bans)
        state = self._state
        state.update({id(facts): facts for facts in statements})
        rows = state.rows
        return GraphIndex(
            network=state.network,
            documents=[node for is_group, _, node in rows if not is_group],
            groups=[node for is_group, _, node in rows if is_group],
            texts=BM25Index.build(
                [state.fields[node] for _, _, node in rows],
                weights=self._weights,
                k1=K1,
                cache=self._tokens,
            ),
            statements=statements,
            forbidden=bans,
        )


def compile_facts(facts: Iterable[Fact]) -> GraphIndex:
    """Compile *facts* once; without facts the graph is empty and finds nothing."""
    return GraphBuilder().compile([tuple(facts)])


@dataclass(slots=True, kw_only=True)
class _State:
    """What the next build needs to know of the last one."""

    bans: frozenset[Triple] = frozenset()
    network: Network = field(default_factory=new_network)
    sources: dict[int, tuple[Fact, ...]] = field(default_factory=dict)
    rivals: dict[_EdgeKey, list[Fact]] = field(default_factory=dict)
    """The statements of an edge, where there are several."""
    texts: dict[str, Counter[Fact]] = field(default_factory=dict)
    """The texts of each node, and how often each is stated."""
    documents: Counter[str] = field(default_factory=Counter)
    """How many documents describe a node."""
    memberships: Counter[str] = field(default_factory=Counter)
    """How many members the host declares of a node."""
    fields: dict[str, Fields] = field(default_factory=dict)
    """The texts of each row of the index."""
    rows: list[_RowKey] = field(default_factory=list)
    """Whether it is a group, label and id of each row, ascending."""
    attributes: dict[tuple[object, ...], EdgeData] = field(default_factory=dict)
    """Edge data; equal ones are one object."""

    def update(self, sources: Mapping[int, tuple[Fact, ...]]) -> None:
        """Take *sources* instead of those until now."""
        draft = _Draft(self.network)
        touched: dict[str, None] = {}
        for key in self.sources.keys() - sources.keys():
            for fact in self.sources[key]:
                self._count(fact, -1, draft, touched)
        for key, facts in sources.items():
            if key not in self.sources:
                for fact in facts:
                    self._count(fact, 1, draft, touched)
        self.sources = dict(sources)
        for node in touched:
            self._describe(node, draft)
        self.rows = [row for row in self.rows if row[2] not in touched]
        self.rows += (self._row(node) for node in touched if node in self.fields)
        self.rows.sort()
        self.network = draft.network

    def _count(self, fact: Fact, count: int, draft: _Draft, touched: dict[str, None]) -> None:
        """Take *fact* in, or out if *count* is -1."""
        if is_banned(fact, self.bans):
            return
        touched[fact.subject] = None
        role = EDGE_PREDICATES.get(fact.predicate)
        if fact.predicate == "type" and fact.object == DOCUMENT_TYPE:
            self.documents[fact.subject] += count
        elif fact.literal and fact.predicate in FIELDS:
            texts = self.texts.setdefault(fact.subject, Counter())
            texts[fact] += count
            if not texts[fact]:
                del texts[fact]
        elif role and not fact.literal:
            touched[fact.object] = None
            if role == "member" and fact.declared:
                self.memberships[fact.object] += count
            self._state_edge(fact, count, draft)

    def _state_edge(self, fact: Fact, count: int, draft: _Draft) -> None:
        key = fact.subject, fact.object, fact.predicate
        current = draft.get(key)
        rivals = self.rivals.get(key)
        if count > 0:
            if current is not None:
                rivals = self.rivals.setdefault(key, [fact_of((*key, current))])
                rivals.append(fact)
        elif rivals:
            rivals.remove(fact)
            if len(rivals) == 1:
                del self.rivals[key]
        else:
            draft.remove(key)
            return
        draft.put(key, self._data(reduce(stronger, rivals) if rivals else fact))

    def _data(self, fact: Fact) -> EdgeData:
        data = {
            "role": EDGE_PREDICATES[fact.predicate],
            "weight": fact.weight,
            "declared": fact.declared,
            "rule": fact.origin,
            "path": fact.path,
            "line": fact.line,
        }
        return self.attributes.setdefault(tuple(data.values()), data)

    def _describe(self, node: str, draft: _Draft) -> None:
        """Set the data and the index row of *node*, or remove it."""
        texts = self.texts.get(node)
        is_document = self.documents[node] > 0
        is_group = not is_document and self.memberships[node] > 0
        if is_document or is_group:
            self.fields[node] = _fields(texts or ())
        else:
            self.fields.pop(node, None)
        if not (texts or is_document or draft.has_edges(node)):
            draft.drop(node)
            for table in (self.texts, self.documents, self.memberships):
                table.pop(node, None)
            return
        kind = "concept" if node.startswith(CONCEPT_BASE) else "other"
        kind = "document" if is_document else "group" if is_group else kind
        draft.describe(node, {"label": _label(texts or (), node), "kind": kind})

    def _row(self, node: str) -> _RowKey:
        return not self.documents[node], _label(self.texts.get(node, ()), node), node


class _Draft:
    """A copy of a network that shares the tables of all nodes that do not change."""

    def __init__(self, base: Network) -> None:
        self.network = new_network()
        self._nodes, self._succ, self._pred = tables_of(self.network)
        for table, shared in zip(tables_of(self.network), tables_of(base), strict=True):
            table.update(shared)
        self._copied: set[tuple[bool, str]] = set()

    def get(self, key: _EdgeKey) -> EdgeData | None:
        """Return the data of an edge; None if there is none."""
        subject, target, predicate = key
        keys = self._succ.get(subject, {}).get(target)
        return None if keys is None else keys.get(predicate)

    def put(self, key: _EdgeKey, data: EdgeData) -> None:
        """Add an edge, or replace its data."""
        subject, target, predicate = key
        for node in (subject, target):
            if node not in self._succ:
                self._nodes[node], self._succ[node], self._pred[node] = {}, {}, {}
        successors, predecessors = self._own(subject, target)
        keys = {**successors.get(target, {}), predicate: data}
        successors[target] = predecessors[subject] = keys

    def remove(self, key: _EdgeKey) -> None:
        """Remove an edge."""
        subject, target, predicate = key
        successors, predecessors = self._own(subject, target)
        keys = {name: data for name, data in successors[target].items() if name != predicate}
        if keys:
            successors[target] = predecessors[subject] = keys
        else:
            del successors[target], predecessors[subject]

    def has_edges(self, node: str) -> bool:
        """Return whether any edge starts or ends at *node*."""
        return bool(self._succ.get(node) or self._pred.get(node))

    def describe(self, node: str, data: dict[str, str]) -> None:
        """Add *node*, or replace its data."""
        self._nodes[node] = data
        self._succ.setdefault(node, {})
        self._pred.setdefault(node, {})

    def drop(self, node: str) -> None:
        """Remove a node without edges, if it is there."""
        for table in (self._nodes, self._succ, self._pred):
            table.pop(node, None)

    def _own(self, subject: str, target: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the tables of both ends, copied once."""
        for is_pred, table, node in ((False, self._succ, subject), (True, self._pred, target)):
            if (is_pred, node) not in self._copied:
                self._copied.add((is_pred, node))
                table[node] = dict(table[node])
        return self._succ[subject], self._pred[target]


def _fields(texts: Iterable[Fact]) -> Fields:
    found: dict[str, dict[tuple[str, str], None]] = {}
    stated = {(fact.predicate, fact.object, fact.language) for fact in texts}
    for predicate, text, language in sorted(stated):
        found.setdefault(FIELDS[predicate], {})[text, language] = None
    return {name: tuple(phrases) for name, phrases in found.items()}


def _label(texts: Iterable[Fact], node: str) -> str:
    named = [fact for fact in texts if FIELDS[fact.predicate] == "name"]
    return min(named, key=_label_order).object if named else node


def _label_order(fact: Fact) -> tuple[bool, bool, str, int, str, str]:
    other = fact.predicate != "name"
    return not fact.declared, other, fact.path, fact.line, fact.object, fact.language

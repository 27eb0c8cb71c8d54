"""Facts, compiled into what search and expansion read; immutable.

Documents stand first among the nodes, so that a mask over documents is a prefix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from graphs.adjacency import Adjacency
from graphs.fact import Fact
from graphs.lexicon import Lexicon, Phrase
from graphs.neighbour import Remembered
from graphs.postings import Postings
from graphs.vocabulary import CONCEPT_BASE, DOCUMENT_TYPE, PREDICATES

EdgeRole = Literal["related", "next_step", "prerequisite", "member", "consumes", "produces"]
EDGE_ROLES: frozenset[EdgeRole] = frozenset(
    {"related", "next_step", "prerequisite", "member", "consumes", "produces"}
)
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"name": 3.0, "alias": 2.5, "keywords": 1.5, "description": 1.0, "text": 0.5}
)
"""Weight of each field of a node's text."""
_K1 = 3.0
"""A name's word counts threefold at once: saturation has to begin later than in plain BM25."""

EDGE_PREDICATES: Mapping[str, str] = MappingProxyType(
    {row.name: row.role for row in PREDICATES.values() if row.role in EDGE_ROLES}
)
"""The role of each predicate that has one in search."""
_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "name": "name",
        "prefLabel": "name",
        "altLabel": "alias",
        "keywords": "keywords",
        "description": "description",
        "text": "text",
    }
)
_Edges: TypeAlias = Mapping[tuple[str, str], tuple[Fact, ...]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphIndex:
    """A graph, ready to be asked."""

    nodes: tuple[str, ...]
    """Ids of all nodes: documents, groups that somebody declared, all others; each part in the
    order of the facts."""
    positions: Mapping[str, int]
    """Where each id stands in `nodes`."""
    labels: tuple[str, ...]
    """What to call each node, in the order of `nodes`."""
    ranks: np.ndarray
    """Where each node would stand if all were sorted by label and id, int32: what ties fall by."""
    document_count: int
    """How many of the nodes, counted from the first, are documents."""
    documents: frozenset[str]
    """Ids of the nodes that are documents."""
    facts: Sequence[Fact]
    """What the index was compiled from."""
    postings: Postings
    """The texts of the documents and of declared groups, in the order of `nodes`."""
    forward: _Edges
    """Edge facts by subject and role."""
    backward: _Edges
    """Edge facts by object and role."""
    members: Mapping[str, np.ndarray]
    """Positions of the documents in each group or about each topic, int64, each once."""
    edge_count: int
    """How many facts are edges with a role in search."""
    adjacency: Adjacency
    """The same edges, as an expansion reads them."""
    remembered: Remembered = field(default_factory=Remembered, init=False)
    """What expansions have worked out; it changes no answer."""

    @classmethod
    def compile(
        cls,
        facts: Iterable[Fact],
        *,
        weights: Mapping[str, float] = WEIGHTS,
        lexicon: Lexicon | None = None,
    ) -> GraphIndex:
        """Compile *facts*.

        Args:
            facts: Without facts the index is empty and finds nothing.
            weights: Weight of each text field: name, alias, keywords, description, text.
            lexicon: Remembers the texts that were read, for the next time.
        """
        stated = tuple(facts)
        rows = [
            (row, kind, fact)
            for row, fact in enumerate(stated)
            if not fact.literal and (kind := EDGE_PREDICATES.get(fact.predicate))
        ]
        edges = [(kind, fact) for _, kind, fact in rows]
        documents, nodes = _nodes(stated, edges)
        texts = _texts(stated)
        positions = {node: at for at, node in enumerate(nodes)}
        members = _members(edges, positions, documents)
        # Only what may speak is indexed: nodes without words would blur the rarity of all words.
        spoken = [texts.get(node, {}) for node in nodes[: len(documents.keys() | _groups(edges))]]
        labels = tuple(_label(node, texts.get(node, {})) for node in nodes)
        return cls(
            nodes=nodes,
            positions=positions,
            labels=labels,
            ranks=_ranks(labels, nodes),
            document_count=len(documents),
            documents=frozenset(documents),
            facts=stated,
            postings=Postings.build(spoken, weights=weights, k1=_K1, lexicon=lexicon),
            forward=_grouped(((fact.subject, kind), fact) for kind, fact in edges),
            backward=_grouped(((fact.object, kind), fact) for kind, fact in edges),
            members=members,
            edge_count=len(edges),
            adjacency=Adjacency.compile(rows, nodes, positions, len(documents)),
        )

    @property
    def node_count(self) -> int:
        """How many nodes there are, concepts included."""
        return len(self.nodes)

    def position(self, node: str) -> int | None:
        """Give the position of *node* in `nodes`; None if the graph does not know it."""
        return self.positions.get(node)

    def label(self, node: str) -> str:
        """Give the name of *node*; the id itself where it has none or is unknown."""
        at = self.positions.get(node)
        return node if at is None else self.labels[at]

    def is_concept(self, node: str) -> bool:
        """Tell whether *node* is a group, a topic or a kind of data: nothing one can use."""
        return node not in self.documents and node.startswith(CONCEPT_BASE)

    def outgoing(self, node: str, kind: EdgeRole) -> tuple[Fact, ...]:
        """Give the edges of a role that start at *node*; empty if there are none."""
        return self.forward.get((node, kind), ())

    def incoming(self, node: str, kind: EdgeRole) -> tuple[Fact, ...]:
        """Give the edges of a role that end at *node*; empty if there are none."""
        return self.backward.get((node, kind), ())


def _nodes(
    stated: Iterable[Fact], edges: Sequence[tuple[str, Fact]]
) -> tuple[Mapping[str, None], tuple[str, ...]]:
    """Give the documents, and all nodes: documents first, then groups that pass on their words."""
    documents: dict[str, None] = {}
    others: dict[str, None] = {}
    for fact in stated:
        is_document = fact.predicate == "type" and fact.object == DOCUMENT_TYPE
        (documents if is_document else others)[fact.subject] = None
    others |= {fact.object: None for _, fact in edges}
    return documents, tuple(documents | _groups(edges) | others)


def _groups(edges: Iterable[tuple[str, Fact]]) -> dict[str, None]:
    """Give the groups that somebody declared: a derived one says what stands in its members."""
    return {fact.object: None for kind, fact in edges if kind == "member" and fact.declared}


def _members(
    edges: Iterable[tuple[str, Fact]], positions: Mapping[str, int], documents: Collection[str]
) -> Mapping[str, np.ndarray]:
    held: defaultdict[str, dict[int, None]] = defaultdict(dict)
    for kind, fact in edges:
        if kind == "member" and fact.subject in documents:
            held[fact.object][positions[fact.subject]] = None
    return {node: np.fromiter(found, dtype=np.int64) for node, found in held.items()}


def _texts(stated: Iterable[Fact]) -> Mapping[str, Mapping[str, list[Phrase]]]:
    texts: defaultdict[str, defaultdict[str, list[Phrase]]] = defaultdict(lambda: defaultdict(list))
    for fact in stated:
        field = _FIELDS.get(fact.predicate)
        if field and fact.literal:
            texts[fact.subject][field].append((fact.object, fact.language))
    return texts


def _label(node: str, texts: Mapping[str, list[Phrase]]) -> str:
    return next((text for text, _ in texts.get("name", ())), node)


def _ranks(labels: Sequence[str], nodes: Sequence[str]) -> np.ndarray:
    order = sorted(range(len(nodes)), key=lambda at: (labels[at], nodes[at]))
    ranks = np.empty(len(nodes), dtype=np.int32)
    ranks[order] = np.arange(len(nodes), dtype=np.int32)
    return ranks


def _grouped(pairs: Iterable[tuple[tuple[str, str], Fact]]) -> _Edges:
    grouped: defaultdict[tuple[str, str], list[Fact]] = defaultdict(list)
    for key, fact in pairs:
        grouped[key].append(fact)
    return {key: tuple(found) for key, found in grouped.items()}

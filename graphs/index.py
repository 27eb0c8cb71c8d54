"""Facts, compiled into what search and expansion read; immutable.

Documents stand first among the nodes, so that a mask over documents is a prefix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from graphs.build import Fact
from graphs.postings import Postings
from graphs.vocabulary import CONCEPT_BASE, DOCUMENT_TYPE, role

EdgeRole = Literal["related", "next_step", "prerequisite", "member", "consumes", "produces"]
EDGE_ROLES: frozenset[EdgeRole] = frozenset(
    {"related", "next_step", "prerequisite", "member", "consumes", "produces"}
)
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"name": 3.0, "alias": 2.5, "keywords": 1.5, "description": 1.0, "text": 0.5}
)
"""Weight of each field of a node's text."""

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
    """Ids of all nodes, documents first, each part in the order of the facts."""
    positions: Mapping[str, int]
    """Where each id stands in `nodes`."""
    labels: tuple[str, ...]
    """What to call each node, in the order of `nodes`."""
    document_count: int
    """How many of the nodes, counted from the first, are documents."""
    documents: frozenset[str]
    """Ids of the nodes that are documents."""
    facts: tuple[Fact, ...]
    """What the index was compiled from."""
    postings: Postings
    """The texts of the nodes, in the order of `nodes`."""
    forward: _Edges
    """Edge facts by subject and role."""
    backward: _Edges
    """Edge facts by object and role."""
    members: Mapping[str, np.ndarray]
    """Positions of the documents in each group or about each topic, int64, each once."""
    edge_count: int
    """How many facts are edges with a role in search."""

    @classmethod
    def compile(
        cls, facts: Iterable[Fact], *, weights: Mapping[str, float] = WEIGHTS
    ) -> GraphIndex:
        """Compile *facts*.

        Args:
            facts: Without facts the index is empty and finds nothing.
            weights: Weight of each text field: name, alias, keywords, description, text.
        """
        stated = tuple(facts)
        edges = [fact for fact in stated if not fact.literal and role(fact.predicate) in EDGE_ROLES]
        documents, nodes = _nodes(stated, edges)
        texts = _texts(stated)
        positions = {node: at for at, node in enumerate(nodes)}
        return cls(
            nodes=nodes,
            positions=positions,
            labels=tuple(_label(node, texts.get(node, {})) for node in nodes),
            document_count=len(documents),
            documents=documents,
            facts=stated,
            postings=Postings.build(
                [_joined(texts.get(node, {})) for node in nodes], weights=weights
            ),
            forward=_grouped((fact.subject, fact) for fact in edges),
            backward=_grouped((fact.object, fact) for fact in edges),
            members=_members(edges, positions, documents),
            edge_count=len(edges),
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


def _nodes(stated: Iterable[Fact], edges: Iterable[Fact]) -> tuple[frozenset[str], tuple[str, ...]]:
    documents: dict[str, None] = {}
    others: dict[str, None] = {}
    for fact in stated:
        is_document = fact.predicate == "type" and fact.object == DOCUMENT_TYPE
        (documents if is_document else others)[fact.subject] = None
    others |= {fact.object: None for fact in edges}
    rest = (node for node in others if node not in documents)
    return frozenset(documents), (*documents, *rest)


def _members(
    edges: Iterable[Fact], positions: Mapping[str, int], documents: frozenset[str]
) -> Mapping[str, np.ndarray]:
    held: defaultdict[str, dict[int, None]] = defaultdict(dict)
    for fact in edges:
        if role(fact.predicate) == "member" and fact.subject in documents:
            held[fact.object][positions[fact.subject]] = None
    return {node: np.fromiter(found, dtype=np.int64) for node, found in held.items()}


def _texts(stated: Iterable[Fact]) -> Mapping[str, Mapping[str, list[str]]]:
    texts: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for fact in stated:
        if fact.literal and fact.predicate in _FIELDS:
            texts[fact.subject][_FIELDS[fact.predicate]].append(fact.object)
    return texts


def _label(node: str, texts: Mapping[str, list[str]]) -> str:
    return next(iter(texts.get("name", ())), node)


def _joined(texts: Mapping[str, list[str]]) -> dict[str, str]:
    return {name: "\n".join(values) for name, values in texts.items()}


def _grouped(pairs: Iterable[tuple[str, Fact]]) -> _Edges:
    grouped: defaultdict[tuple[str, str], list[Fact]] = defaultdict(list)
    for node, fact in pairs:
        grouped[node, role(fact.predicate)].append(fact)
    return {key: tuple(found) for key, found in grouped.items()}

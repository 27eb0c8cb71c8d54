"""The compiled graph of the catalog, and mappings between its nodes and entities."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias
from urllib.parse import quote, unquote

from gateway.index.eligibility import Mask, passes_all
from gateway.types import Entity, PathStep
from graphs.facts.fact import Fact
from graphs.graph import EdgeRole, GraphIndex, Network, network_of
from graphs.graph_builder import FIELDS

ToolNetwork: TypeAlias = Network
"""A `networkx.MultiDiGraph` whose nodes are the ids of entities."""
NODE_BASE = "urn:tool-gateway:tool:"
STEP_PREDICATE = "nextStep"
DERIVED = "derived/"
"""Prefix of a derived edge's source. The name of the rule follows it."""
RELIABLE_RULES = frozenset(
    {"suppliers", "resolvers", "calendar", "checks", "sign_in", "connection"}
)
"""Names of the rules whose prerequisites may come from outside the window of the ranking, because
they are seldom wrong in test data. Rules that read descriptions are not included, because servers
could use them for promotion.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class ToolGraph:
    """The compiled graph. Its first nodes are the entities of the catalog, by position."""

    index: GraphIndex
    forbidden: frozenset[tuple[str, str]] = frozenset()
    """Pairs of nodes. The host forbids suggesting the second after the first, even if past calls
    suggest it."""

    @classmethod
    def of(cls, index: GraphIndex) -> ToolGraph:
        """Wrap *index*, and collect the next steps that it forbids."""
        steps = {"", STEP_PREDICATE}
        pairs = ((start, end) for start, predicate, end in index.forbidden if predicate in steps)
        return cls(index=index, forbidden=frozenset(pairs))

    @property
    def nodes(self) -> Sequence[str]:
        """Graph node of each entity, by position."""
        return self.index.documents

    @property
    def edge_count(self) -> int:
        """Number of edges in the graph."""
        return len(self.index.network.edges)

    @cached_property
    def has_declared(self) -> bool:
        """True if the host declares at least one edge."""
        return any(edge.declared for edge in self.index.edges)

    @property
    def facts(self) -> Sequence[Fact]:
        """All statements of the graph."""
        return self.index.facts

    def steps(self, path: Iterable[Fact]) -> tuple[PathStep, ...]:
        """Return *path* as steps for callers, in which entity ids replace the nodes."""
        return tuple(
            PathStep(
                subject=self.entity_id(step.subject),
                predicate=step.predicate,
                object=self.entity_id(step.object),
                source=_source(step),
                declared=step.declared,
            )
            for step in path
        )

    def entity_id(self, node: str) -> str:
        """Return the id of the entity at *node*, or *node* itself if it is not an entity."""
        return node if self.entity(node) is None else unquote(node.removeprefix(NODE_BASE))

    def entity(self, node: str) -> int | None:
        """Return the position of the entity at *node*; None if it is not an entity."""
        return self.index.rows.get(node)

    def has_prerequisites(self, node: str, *, declared: bool) -> bool:
        """Return whether *node* has declared prerequisites, or derived ones if not *declared*."""
        roles: tuple[EdgeRole, ...] = (
            ("prerequisite", "consumes") if declared else ("prerequisite",)
        )
        edges = (edge for role in roles for edge in self.index.edges_from(node, role))
        return any(edge.declared == declared for edge in edges)

    def has_declared_step(self, node: str) -> bool:
        """Return whether a next step is declared for *node*."""
        return any(edge.declared for edge in self.index.edges_from(node, "next_step"))

    def excluded(self, mask: Mask) -> Callable[[str], bool] | None:
        """Return a test for the nodes of entities that are not in *mask*; None if all are in it."""
        if passes_all(mask):
            return None

        def is_excluded(node: str) -> bool:
            position = self.entity(node)
            return position is not None and not mask[position]

        return is_excluded

    def visible(self, mask: Mask) -> ToolGraph:
        """Return the part of the graph with the entities in *mask* and the edges between them.

        Other nodes, such as groups, are included if an edge connects them to one of these entities.
        """
        index = self.index
        passing = {node for node, passes in zip(self.nodes, mask.tolist(), strict=True) if passes}
        ends = [(edge.subject, edge.object) for edge in index.edges]
        near = {end for pair in ends if not passing.isdisjoint(pair) for end in pair}
        included = passing | (near - index.rows.keys())

        def is_shown(fact: Fact) -> bool:
            if fact.subject not in included:
                return False
            if fact.literal:
                return fact.subject in passing or FIELDS.get(fact.predicate) == "name"
            is_node = fact.object in index.kinds or fact.object in index.labels
            return fact.object in included or not is_node

        excerpt = replace(
            index,
            network=network_of(filter(is_shown, index.edges)),
            labels={node: name for node, name in index.labels.items() if node in included},
            kinds={node: kind for node, kind in index.kinds.items() if node in included},
            statements=lambda: (filter(is_shown, facts) for facts in index.statements()),
            _members={},
        )
        return replace(self, index=excerpt)

    def to_networkx(self) -> ToolNetwork:
        """Return a copy of the graph whose nodes are the ids of entities; see `Gateway.graph`."""
        return self.index.renamed({node: self.entity_id(node) for node in self.nodes})


def _source(step: Fact) -> str:
    """Return ``derived/RULE``, or the place of the edge: ``FILE:LINE`` for a document of the host,
    ``PLUGIN/FILE:LINE`` for a plugin.
    """
    if step.origin and not step.declared:
        return DERIVED + step.origin
    place = f"{step.path}:{step.line}" if step.line else step.path
    return "/".join(filter(None, (step.origin, place)))


def node_of(entity_id: str) -> str:
    """Return the graph node of the entity with this id."""
    # Interned to save memory, because many edges share the string.
    return sys.intern(NODE_BASE + quote(entity_id, safe="/"))


def host_names(entities: Sequence[Entity]) -> Mapping[str, str]:
    """Return each entity's node, keyed by id, exposed name and unique name at the source."""
    name_counts = Counter(entity.name for entity in entities)
    nodes = {entity.id: node_of(entity.id) for entity in entities}
    names = {entity.name: nodes[entity.id] for entity in entities if name_counts[entity.name] == 1}
    names |= {entity.exposed_name: nodes[entity.id] for entity in entities}
    return names | nodes

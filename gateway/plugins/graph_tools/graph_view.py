"""What a person sees of the graph: what lies around a node, ways between two, prerequisites in
their order. Pure.

* Over the compiled graph lie the next steps that calls have shown, and edges that are proposed.
* A caller sees its own tools and the edges between them.
* A group of many members is not walked through: it relates nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

import graphs
from gateway.errors import InvalidRequestError
from gateway.index.compiler import host_names
from gateway.index.graph_documents import graph_of, node_named
from gateway.index.snapshot import Snapshot
from gateway.index.tool_graph import STEP_PREDICATE, ToolGraph, node_of
from gateway.plugins.graph_tools.edge_proposals import GraphEdit, Verdict, plan_edit
from gateway.search.learned import LearnedSteps
from gateway.types import Caller
from graphs.facts.fact import Fact, is_banned
from graphs.facts.vocabulary import PREDICATES, resolve
from graphs.graph import EDGE_PREDICATES, EdgeRole
from graphs.parameters import MAX_GROUP_SIZE

EdgeOrigin = Literal["declared", "derived", "learned", "proposed"]
"""Whether a document of the host states an edge, a rule derived it, calls have shown it, or it
waits in a document of proposals."""
MAX_NODES = 60
"""Nodes of one neighbourhood: more cannot be told apart in a drawing."""
MAX_PATH_EDGES = 6
MAX_EXPLORED = 2000
"""Nodes that are walked to from each end of a path, and prerequisites of one tool."""
_OVERLAY: tuple[EdgeOrigin, ...] = ("learned", "proposed")
"""Origins of edges that are not compiled."""
_OWN_RULES = {"memberOf": "groups"}
"""The rules whose edges stand in a tool's own document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One node of the graph."""

    id: str
    """An entity's id, or the name of another node in the graph."""
    name: str
    kind: str
    """The kind of an entity; else ``document``, ``group``, ``concept`` or ``other``."""
    distance: int
    """How many edges lie between it and the node in question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """One edge of the graph, and the source that says so."""

    subject: str
    """The id of a `GraphNode`."""
    predicate: str
    object: str
    role: EdgeRole
    origin: EdgeOrigin
    source: str
    """File and line; of a derived edge the rule, of a learned one in how many tasks it was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """What lies around one node."""

    nodes: tuple[GraphNode, ...]
    """The node itself, then the nearest first; of those equally near, what the host declares first,
    then the strongest."""
    edges: tuple[GraphEdge, ...]
    """Those between the nodes, in the same order."""
    omitted: int
    """How many more nodes the edges of these lead to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrerequisiteOrder:
    """What must be used before one tool, in an order that meets every prerequisite."""

    nodes: tuple[GraphNode, ...]
    """What comes first is first; the tool itself is last."""
    edges: tuple[GraphEdge, ...]
    cycles: tuple[tuple[str, ...], ...]
    """Ids of nodes each of which needs all the others first: no order meets these."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphView:
    """What one caller may see of the graph, with what lies over it."""

    snapshot: Snapshot
    caller: Caller | None = None
    """None is the host, which sees all."""
    learned: LearnedSteps = field(default_factory=LearnedSteps)
    """Next steps that calls have shown."""
    proposals: Sequence[graphs.Document] = ()
    """Documents whose edges are only proposed."""

    @cached_property
    def graph(self) -> ToolGraph:
        """What is compiled of it."""
        return graph_of(self.snapshot, self.caller)

    def find(self, text: str, *, limit: int = 20) -> tuple[GraphNode, ...]:
        """Return the nodes that answer *text*, best first; without a text those with most edges."""
        index = self.graph.index
        nodes = [text] if self._has(text) else [node_of(text)]
        if text:
            hits = graphs.search_text(index, text, limit=limit, allowed=self._has)
            nodes += [hit.node for hit in hits]
        else:
            degrees = sorted(index.network.degree, key=lambda row: (-row[1], index.label(row[0])))
            nodes += [node for node, _ in degrees]
        visible = filter(self._has, dict.fromkeys(nodes))
        return tuple(self._node(node, 0) for node in islice(visible, limit))

    def proposed(self) -> tuple[GraphEdge, ...]:
        """Return all edges that are only proposed, in the order of their documents."""
        edges = (
            edge for node, edges in self._overlay.items() for edge in edges if edge.subject == node
        )
        return tuple(self._edge(edge) for edge in edges if edge.origin == "proposed")

    def around(self, name: str, *, hops: int = 1, limit: int = MAX_NODES) -> Neighbourhood:
        """Return what is at most *hops* edges away from a node, edges of any direction.

        Args:
            name: See `node`.
            hops: At least 1.
            limit: Nodes at most.

        Raises:
            InvalidRequestError: See `node`.
        """
        found = self._near(self.node(name), hops, limit)
        shown = dict(islice(found.items(), limit))
        edges = self._edges_between(shown)
        edges.sort(key=lambda edge: (shown[edge.subject] + shown[edge.object], *_rank(edge)))
        return Neighbourhood(
            nodes=tuple(self._node(node, distance) for node, distance in shown.items()),
            edges=tuple(map(self._edge, edges)),
            omitted=len(found) - len(shown),
        )

    def _near(self, centre: str, hops: int, limit: int) -> dict[str, int]:
        """Return the nodes around *centre* and how far away they are, best first.

        Those behind the first *limit* are not walked on from.
        """
        found, level = {centre: 0}, {centre: -1.0}
        for distance in range(1, hops + 1):
            ranks: dict[str, tuple[bool, float, str]] = {}
            for node, score in level.items():
                edges = self._edges(node)
                if distance > 1 and self._is_large(node):
                    continue
                for edge in edges:
                    end = edge.object if edge.subject == node else edge.subject
                    rank = not edge.declared, score * _strength(edge), end
                    if end not in found:
                        ranks[end] = min(rank, ranks.get(end, rank))
            room = max(limit - len(found), 0)
            nearest = sorted(ranks, key=ranks.__getitem__)
            level = {node: ranks[node][1] for node in nearest[:room]}
            found |= dict.fromkeys(nearest, distance)
        return found

    def _is_large(self, node: str) -> bool:
        return self.graph.index.is_concept(node) and len(self._edges(node)) > MAX_GROUP_SIZE

    def _edges_between(self, nodes: Collection[str]) -> list[Fact]:
        return [
            edge
            for node in nodes
            for edge in self._edges(node)
            if node == edge.subject != edge.object and edge.object in nodes
        ]

    def paths(self, start: str, end: str, *, limit: int = 3) -> tuple[tuple[GraphEdge, ...], ...]:
        """Return the shortest paths between two nodes, edges of any direction.

        Args:
            start: See `node`.
            end: Another one.
            limit: Paths at most.

        Returns:
            The edges of each path, from *start*: the fewest first, then the surest. Empty if there
            is none of at most `MAX_PATH_EDGES` edges.

        Raises:
            InvalidRequestError: See `node`.
        """
        ends = self.node(start), self.node(end)
        # Every node of a path is near one of its ends.
        near = (self._near(each, MAX_PATH_EDGES // 2, MAX_EXPLORED) for each in ends)
        found = (node for nodes in near for node in islice(nodes, MAX_EXPLORED))
        nodes = {node for node in found if node in ends or not self._is_large(node)}
        edges = (edge for edge in self._edges_between(nodes) if edge.origin != "proposed")
        paths = graphs.shortest_paths(edges, *ends, cost=_cost, limit=limit)
        return tuple(tuple(map(self._edge, path)) for path in paths if len(path) <= MAX_PATH_EDGES)

    def order(self, name: str) -> PrerequisiteOrder:
        """Return all that must be used before one tool, stated or derived, in order.

        Args:
            name: See `node`.

        Raises:
            InvalidRequestError: See `node`.
        """
        centre = self.node(name)
        found, edges, queue = {centre: 0}, list[Fact](), [centre]
        for node in queue:
            for edge in self.graph.index.edges_from(node, "prerequisite"):
                if edge.object not in found and len(found) < MAX_EXPLORED:
                    found[edge.object] = found[node] + 1
                    queue.append(edge.object)
                edges += [edge] if edge.object in found and edge.object != node else ()
        needs = ((edge.subject, edge.object) for edge in edges)
        order = graphs.topological_groups(needs) or [[centre]]
        names = self.graph.entity_id
        return PrerequisiteOrder(
            nodes=tuple(self._node(node, found[node]) for group in order for node in group),
            edges=tuple(map(self._edge, edges)),
            cycles=tuple(tuple(map(names, group)) for group in order if len(group) > 1),
        )

    def plan_edit(
        self, verdict: Verdict, subject: str, predicate: str, target: str, *, folder: Path
    ) -> GraphEdit:
        """Return how the host's documents would accept or reject an edge; nothing is written.

        Args:
            verdict: To accept makes it declared; to reject keeps rules from deriving it.
            subject: See `node`.
            predicate: In any spelling.
            target: The edge's object; see `node`.
            folder: The folder of documents that the gateway reads.

        Raises:
            InvalidRequestError: See `node`; or it is no predicate of edges, or is declared already.
            ConfigError: If the document cannot be read or edited safely.
        """
        name = resolve(predicate, {}) or ""
        if name not in EDGE_PREDICATES:
            choices = ", ".join(EDGE_PREDICATES)
            raise InvalidRequestError(f"unknown predicate {predicate!r}: it is one of {choices}")
        ends = self.node(subject), self.node(target)
        for edge in self._edges(ends[0]):
            if edge.declared and _key(edge) == (*ends, name):
                place = self._edge(edge).source
                raise InvalidRequestError(f"a document states this edge already: see {place}")
        position = self.graph.entity(ends[0])
        server = "" if position is None else self.snapshot.entities[position].server
        start, end = map(self.graph.entity_id, ends)
        stated = graphs.Edge(subject=start, predicate=name, object=end)
        return plan_edit(folder, stated, verdict, server=server)

    def node(self, name: str) -> str:
        """Return the node that *name* means.

        Args:
            name: An entity's id, a tool's name, or the id of another node.

        Raises:
            InvalidRequestError: If the caller sees no such node, or several tools have this name.
        """
        found = next(filter(self._has, (node_of(name), name)), None)
        return found or node_named(self.snapshot, self.graph, name, self.caller)

    def _has(self, node: str) -> bool:
        return node in self.graph.index.kinds

    def _edges(self, node: str) -> list[Fact]:
        """Return the edges that start or end at *node*."""
        index, more = self.graph.index, self._overlay.get(node, ())
        incoming = (edge for edge in index.edges_to(node) if edge.subject != node)
        return [*index.edges_from(node), *incoming, *more]

    @cached_property
    def _overlay(self) -> dict[str, list[Fact]]:
        """The learned and proposed edges that are not compiled, by each of their ends."""
        names = host_names(self.snapshot.entities) if self.proposals else {}
        proposed = graphs.extract_facts(self.proposals, names=names)
        overlay = defaultdict[str, list[Fact]](list)
        for fact in (*_learned_facts(self.learned), *proposed):
            guess = replace(fact, declared=False, origin=fact.origin or "proposed")
            ends = {fact.subject, fact.object}
            stated = (*self.graph.index.edges_from(fact.subject), *overlay.get(fact.subject, ()))
            is_known = _key(fact) in map(_key, stated)
            if fact.predicate not in EDGE_PREDICATES or is_known:
                continue
            if is_banned(guess, self.graph.index.forbidden):
                continue
            if len(ends) > 1 and all(map(self._has, ends)):
                for end in ends:
                    overlay[end].append(guess)
        return overlay

    def _node(self, node: str, distance: int) -> GraphNode:
        index, position = self.graph.index, self.graph.entity(node)
        entity = None if position is None else self.snapshot.entities[position]
        return GraphNode(
            id=self.graph.entity_id(node),
            name=entity.exposed_name if entity else index.label(node),
            kind=str(entity.kind) if entity else index.kinds[node],
            distance=distance,
        )

    def _edge(self, edge: Fact) -> GraphEdge:
        derived: EdgeOrigin = next((each for each in _OVERLAY if each == edge.origin), "derived")
        origin = "declared" if edge.declared else derived
        place = f"{edge.path}:{edge.line}" if edge.line else edge.path
        return GraphEdge(
            subject=self.graph.entity_id(edge.subject),
            predicate=edge.predicate,
            object=self.graph.entity_id(edge.object),
            role=EDGE_PREDICATES[edge.predicate],
            origin=origin,
            source=rule_of(edge.predicate, edge.origin) if origin == "derived" else place,
        )


def rule_of(predicate: str, rule: str) -> str:
    """Return the switch in `GraphOptions` of what derived an edge: its rule, or what has none."""
    return rule or _OWN_RULES.get(predicate, "catalog")


def _learned_facts(learned: LearnedSteps) -> Iterator[Fact]:
    for step in (step for steps in learned.edges.values() for step in steps):
        yield Fact(
            subject=node_of(step.before),
            predicate=STEP_PREDICATE,
            object=node_of(step.after),
            literal=False,
            weight=step.confidence,
            path=f"{step.count} of {step.of}",
            origin="learned",
            declared=False,
        )


def _key(edge: Fact) -> tuple[str, str, str]:
    return edge.subject, edge.object, edge.predicate


def _strength(edge: Fact) -> float:
    return PREDICATES[edge.predicate].weight * edge.weight


def _rank(edge: Fact) -> tuple[bool, float, tuple[str, str, str]]:
    """What the host declares is first, then the strongest."""
    return not edge.declared, -_strength(edge), _key(edge)


def _cost(edge: Fact) -> float:
    """More edges cost more, whatever they are."""
    unsure = 1.5 - _strength(edge) - edge.declared / 2
    return 1 + unsure / (2 * MAX_PATH_EDGES)

"""Views of the graph for people: neighbourhoods, paths and ordered prerequisites.

A caller sees only its own tools and the edges between them. Learned and proposed edges are
included. Large groups are not traversed, because sharing such a group does not relate two tools.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import graphs
from gateway.errors import InvalidRequestError
from gateway.index.graph_documents import graph_of, node_named
from gateway.index.snapshot import Snapshot
from gateway.index.tool_graph import STEP_PREDICATE, ToolGraph, host_names, node_of
from gateway.plugins.graph_tools.edge_proposals import GraphEdit, Verdict, plan_edit
from gateway.search.learned import LearnedSteps
from gateway.types import Caller
from graphs.facts.fact import Fact, is_banned
from graphs.facts.vocabulary import PREDICATES, resolve
from graphs.graph import EDGE_PREDICATES, EdgeRole
from graphs.parameters import MAX_GROUP_SIZE

EdgeOrigin = str
"""Origin of an edge:

* *declared*: by a document of the host
* *bundled*: by a document about a well-known server in the plugin ``bundled``. The edges of another
  plugin have the name of its `EdgeSource`.
* *derived*: by a rule of the gateway
* *learned*: from calls
* *proposed*: by a document of proposals, without effect on searches"""
MAX_NODES = 60
"""Default maximum number of nodes in a readable drawing."""
MAX_PATH_EDGES = 6
MAX_EXPLORED = 2000
"""Maximum number of nodes explored from each end of a path, and maximum number of prerequisites."""
_OVERLAY = ("learned", "proposed")
"""Origins of edges that are not part of the compiled graph."""
_DOCUMENT_RULES = {"memberOf": "groups"}
"""Rules that read edges from the generated document of a tool, keyed by predicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A node of the graph."""

    id: str
    """Id of the entity, or name of another node."""
    name: str
    kind: str
    """Kind of the entity, or ``document``, ``group``, ``concept`` or ``other``."""
    distance: int
    """Number of edges from the centre of the view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """An edge of the graph."""

    subject: str
    predicate: str
    object: str
    role: EdgeRole
    origin: EdgeOrigin
    source: str
    """Evidence: file and line (declared, proposed), rule (derived) or number of tasks (learned)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """Nodes and edges around one node."""

    nodes: tuple[GraphNode, ...]
    """Nodes by distance, the centre first, then by declared edges, then by strength."""
    edges: tuple[GraphEdge, ...]
    """Edges between `nodes`, by the distance of their ends, then declared edges first."""
    omitted: int
    """Number of nodes within the distance but above the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrerequisiteOrder:
    """Prerequisites of one tool, in order of use."""

    nodes: tuple[GraphNode, ...]
    """Nodes in order of use, the tool last."""
    edges: tuple[GraphEdge, ...]
    cycles: tuple[tuple[str, ...], ...]
    """Groups of nodes that require each other, as ids, so that they have no order."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphView:
    """Graph as one caller sees it, with learned and proposed edges."""

    snapshot: Snapshot
    caller: Caller | None = None
    """Caller whose view this is; None is the host, which sees all."""
    learned: LearnedSteps = field(default_factory=LearnedSteps)
    proposals: Sequence[graphs.Document] = ()

    @cached_property
    def graph(self) -> ToolGraph:
        """Compiled graph of the entities that the caller may see."""
        return graph_of(self.snapshot, self.caller)

    def find(self, text: str, *, limit: int = 20) -> tuple[GraphNode, ...]:
        """Return the nodes that match *text*, best first. Without *text*, sort by edges."""
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
        """Return all proposed edges, in the order of their documents."""
        edges = (
            edge for node, edges in self._overlay.items() for edge in edges if edge.subject == node
        )
        return tuple(self._edge(edge) for edge in edges if edge.origin == "proposed")

    def around(self, name: str, *, hops: int = 1, limit: int = MAX_NODES) -> Neighbourhood:
        """Return the nodes at most *hops* edges away from a node, in either direction.

        Args:
            name: Name of the node, as for `node`.
            hops: Maximum distance in edges, at least 1.
            limit: Maximum number of nodes.

        Raises:
            InvalidRequestError: If the node is unknown to the caller or ambiguous.
        """
        distances = self._distances_from(self.node(name), hops, limit)
        visible = dict(islice(distances.items(), limit))
        edges = self._edges_between(visible)
        edges.sort(key=lambda edge: (visible[edge.subject] + visible[edge.object], *_rank(edge)))
        return Neighbourhood(
            nodes=tuple(self._node(node, distance) for node, distance in visible.items()),
            edges=tuple(map(self._edge, edges)),
            omitted=len(distances) - len(visible),
        )

    def _distances_from(self, centre: str, hops: int, limit: int) -> dict[str, int]:
        """Return the distances of nodes from *centre*, keyed by node, best nodes first.

        Nodes beyond *limit* are included, but their neighbours are not explored.
        """
        distances, level = {centre: 0}, {centre: -1.0}
        for distance in range(1, hops + 1):
            ranks: dict[str, tuple[bool, float, str]] = {}
            for node, score in level.items():
                edges = self._edges(node)
                if distance > 1 and self._is_large(node):
                    continue
                for edge in edges:
                    end = edge.object if edge.subject == node else edge.subject
                    rank = not edge.declared, score * _strength(edge), end
                    if end not in distances:
                        ranks[end] = min(rank, ranks.get(end, rank))
            room = max(limit - len(distances), 0)
            nearest = sorted(ranks, key=ranks.__getitem__)
            level = {node: ranks[node][1] for node in nearest[:room]}
            distances |= dict.fromkeys(nearest, distance)
        return distances

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
        """Return the shortest paths between two nodes, ignoring the direction of edges.

        Args:
            start: Name of the first node, as for `node`.
            end: Name of the last node.
            limit: Maximum number of paths.

        Returns:
            Edges of each path of at most `MAX_PATH_EDGES` edges, shortest first, then strongest.

        Raises:
            InvalidRequestError: If a node is unknown to the caller or ambiguous.
        """
        ends = self.node(start), self.node(end)
        # Each node of a path is at most half the maximum length away from one of the ends.
        reachable = (
            self._distances_from(centre, MAX_PATH_EDGES // 2, MAX_EXPLORED) for centre in ends
        )
        candidates = (node for nodes in reachable for node in islice(nodes, MAX_EXPLORED))
        nodes = {node for node in candidates if node in ends or not self._is_large(node)}
        edges = (edge for edge in self._edges_between(nodes) if edge.origin != "proposed")
        paths = graphs.shortest_paths(edges, *ends, cost=_cost, limit=limit)
        return tuple(tuple(map(self._edge, path)) for path in paths if len(path) <= MAX_PATH_EDGES)

    def order(self, name: str) -> PrerequisiteOrder:
        """Return all prerequisites of one tool, in order of use.

        Args:
            name: Name of the tool, as for `node`.

        Raises:
            InvalidRequestError: If the tool is unknown to the caller or ambiguous.
        """
        centre = self.node(name)
        distances, edges, queue = {centre: 0}, list[Fact](), [centre]
        for node in queue:
            for edge in self.graph.index.edges_from(node, "prerequisite"):
                if edge.object not in distances and len(distances) < MAX_EXPLORED:
                    distances[edge.object] = distances[node] + 1
                    queue.append(edge.object)
                edges += [edge] if edge.object in distances and edge.object != node else ()
        needs = ((edge.subject, edge.object) for edge in edges)
        order = graphs.topological_groups(needs) or [[centre]]
        names = self.graph.entity_id
        return PrerequisiteOrder(
            nodes=tuple(self._node(node, distances[node]) for group in order for node in group),
            edges=tuple(map(self._edge, edges)),
            cycles=tuple(tuple(map(names, group)) for group in order if len(group) > 1),
        )

    def plan_edit(
        self, verdict: Verdict, subject: str, predicate: str, target: str, *, folder: Path
    ) -> GraphEdit:
        """Plan the document change that accepts or rejects an edge. Nothing is written yet.

        Args:
            verdict: ``accept`` declares the edge, ``reject`` forbids it.
            subject: Name of the first node, as for `node`.
            predicate: Predicate of the edge, in any spelling.
            target: Name of the second node.
            folder: Folder of documents that the gateway reads.

        Raises:
            InvalidRequestError: If a node or the predicate is unknown, or the edge is declared
                already.
            ConfigError: If the document cannot be edited safely.
        """
        name = resolve(predicate, {}) or ""
        if name not in EDGE_PREDICATES:
            choices = ", ".join(EDGE_PREDICATES)
            raise InvalidRequestError(f"unknown predicate {predicate!r}: use one of {choices}")
        ends = self.node(subject), self.node(target)
        for edge in self._edges(ends[0]):
            if edge.is_of_host and _key(edge) == (*ends, name):
                place = self._edge(edge).source
                raise InvalidRequestError(f"a document already declares this edge: see {place}")
        position = self.graph.entity(ends[0])
        server = "" if position is None else self.snapshot.entities[position].server
        start, end = map(self.graph.entity_id, ends)
        stated = graphs.Edge(subject=start, predicate=name, object=end)
        return plan_edit(folder, stated, verdict, server=server)

    def node(self, name: str) -> str:
        """Return the internal name of a node in the graph.

        Args:
            name: Entity id, tool name, or id of another node.

        Raises:
            InvalidRequestError: If the node is unknown to the caller, or several tools have the
                name.
        """
        node = next(filter(self._has, (node_of(name), name)), None)
        return node or node_named(self.snapshot, self.graph, name, self.caller)

    def _has(self, node: str) -> bool:
        return node in self.graph.index.kinds

    def _edges(self, node: str) -> list[Fact]:
        """Return the edges that start or end at *node*, with learned and proposed edges."""
        index, more = self.graph.index, self._overlay.get(node, ())
        incoming = (edge for edge in index.edges_to(node) if edge.subject != node)
        return [*index.edges_from(node), *incoming, *more]

    @cached_property
    def _overlay(self) -> dict[str, list[Fact]]:
        """Learned and proposed edges that the compiled graph lacks, keyed by each of their ends."""
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
        guessed = edge.origin if edge.origin in _OVERLAY else "derived"
        origin = (edge.origin or "declared") if edge.declared else guessed
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
    """Return the rule that derived an edge: a field of `GraphOptions`, or "catalog"."""
    return rule or _DOCUMENT_RULES.get(predicate, "catalog")


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
    """Return a sort key that puts declared edges first, then strong edges."""
    return not edge.declared, -_strength(edge), _key(edge)


def _cost(edge: Fact) -> float:
    """Return the cost of an edge, which lets a path with fewer edges always win."""
    unsure = 1.5 - _strength(edge) - edge.declared / 2
    return 1 + unsure / (2 * MAX_PATH_EDGES)

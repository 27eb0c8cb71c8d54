"""Neighbours of nodes along typed, weighted, directed edges.

* Only edges near the seeds are read.
* A group or kind of data with many members does not make its members neighbours. The fewer members
  it has, the stronger the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log2
from typing import Literal, TypeAlias

from graphs.facts.fact import Fact
from graphs.facts.vocabulary import PREDICATES
from graphs.graph import EdgeRole, GraphIndex
from graphs.parameters import MAX_GROUP_SIZE

Role = Literal["related", "next_step", "prerequisite"]
ExcludeNode: TypeAlias = Callable[[str], bool]
"""Returns True for nodes that are neither returned nor passed through."""
SHARED_CONCEPTS: Mapping[Role, tuple[EdgeRole, EdgeRole]] = {
    "related": ("member", "member"),
    "next_step": ("produces", "consumes"),
    "prerequisite": ("consumes", "produces"),
}
"""Roles of the edges from a node and from its neighbour to a shared concept, keyed by the role of
the neighbour."""
_RARITY = tuple(1 / (1 + log2(max(count, 1)) / 2) for count in range(MAX_GROUP_SIZE + 1))
"""Factor for a shared concept, indexed by its number of other members."""
_Move: TypeAlias = tuple[str, float, tuple[Fact, ...]]
"""Target node, closeness in (0, 1], and edges of the path."""
_Ranked: TypeAlias = tuple[float, str, str, tuple[Fact, ...]]
"""Neighbour as a tuple that sorts best first: negative score, label, node id, path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A node near a seed."""

    node: str
    """Node id; never a concept or a seed."""
    role: Role
    """Relation of the node to the seed, as in `expand`."""
    score: float
    """Closeness in (0, 1]; comparable within one role."""
    path: tuple[Fact, ...]
    """Statements that lead from the seed to the node, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """Result of `expand`: the neighbours of the seeds."""

    neighbours: tuple[Neighbour, ...]
    """Neighbours, sorted as in `expand`."""
    visited: int
    """Number of edges that were read to find the neighbours."""


def expand(  # noqa: PLR0913  (keyword-only, one a bound)
    index: GraphIndex,
    seeds: Sequence[str],
    *,
    role: Role,
    excluded: ExcludeNode | None = None,
    declared_only: bool = False,
    hops: int = 1,
    limit: int,
) -> Expansion:
    r"""Find the neighbours of *seeds* in one role.

    Args:
        index: The graph.
        seeds: Node ids, most important first. Unknown ids have no neighbours.
        role: ``related``: stated relations in both directions, and shared rare groups.
            ``next_step``: stated next steps, and nodes that consume what a seed produces.
            ``prerequisite``: nodes that a seed requires, and producers of what it consumes.
        excluded: Returns True for nodes that are neither returned nor passed through.
        declared_only: Use only statements of the host.
        hops: Maximum number of steps from a seed, >= 1.
        limit: Maximum number of neighbours.

    Returns:
        ``related`` and ``next_step``: best first, equal scores by label. ``prerequisite``:
        neighbours of the first seed first, and for each seed the nearest first.

    Example:
        >>> from graphs import compile_facts, extract_facts, parse
        >>> text = "# Book a flight\n\nBook a flight --requires--> Search flights"
        >>> index = compile_facts(extract_facts([parse(text), parse("# Search flights")]))
        >>> seeds = ["urn:tool-gateway:doc:book-a-flight"]
        >>> [item.node for item in expand(index, seeds, role="prerequisite", limit=3).neighbours]
        ['urn:tool-gateway:doc:search-flights']
    """
    traversal = _Traversal(
        index=index,
        role=role,
        declared_only=declared_only,
        seeds=dict.fromkeys(seeds),
        excluded=excluded,
    )
    ranked_by_node: dict[str, _Ranked] = {}
    for seed in traversal.seeds:
        for ranked in traversal.around(seed, hops):
            earlier = ranked_by_node.get(ranked[2])
            if earlier is None or (role != "prerequisite" and ranked[0] < earlier[0]):
                ranked_by_node[ranked[2]] = ranked
    # Node ids are unique, so the sort never compares paths.
    nearest = ranked_by_node.values() if role == "prerequisite" else sorted(ranked_by_node.values())
    neighbours = (
        Neighbour(node=node, role=role, score=-score, path=way)
        for score, _, node, way in islice(nearest, max(limit, 0))
    )
    return Expansion(neighbours=tuple(neighbours), visited=traversal.visited)


@dataclass(slots=True, kw_only=True)
class _Traversal:
    index: GraphIndex
    role: Role
    declared_only: bool
    seeds: dict[str, None]
    excluded: ExcludeNode | None
    visited: int = 0

    def around(self, seed: str, hops: int) -> list[_Ranked]:
        """Return the nodes within *hops* steps of *seed*, nearest first, without seeds."""
        neighbours: list[_Ranked] = []
        level: list[_Ranked] = [(-1.0, "", seed, ())]
        reached = {seed}
        for _ in range(hops):
            level = self._next_level(level, reached)
            reached.update(ranked[2] for ranked in level)
            neighbours += (ranked for ranked in level if ranked[2] not in self.seeds)
        return neighbours

    def _next_level(self, level: Sequence[_Ranked], reached: set[str]) -> list[_Ranked]:
        best: dict[str, tuple[float, tuple[Fact, ...]]] = {}
        for distance, _, node, way in level:
            for end, weight, edges in self._moves(node):
                score = weight * -distance
                if end not in reached and (end not in best or best[end][0] < score):
                    best[end] = score, way + edges
        label = self.index.label
        return sorted((-score, label(node), node, way) for node, (score, way) in best.items())

    def _moves(self, node: str) -> Iterator[_Move]:
        for edge in self._read(self.index.edges_from(node, self.role)):
            if self._may_reach(edge.object):
                yield edge.object, _strength(edge), (edge,)
        if self.role != "related":
            yield from self._through_concepts(node)
            return
        for edge in self._read(self.index.edges_to(node, self.role)):
            if self._may_reach(edge.subject):
                yield edge.subject, _strength(edge), (edge,)
        yield from self._fellow_members(node)

    def _fellow_members(self, node: str) -> Iterator[_Move]:
        """Yield each node that shares a group with *node*, once."""
        shared: dict[str, tuple[float, float, tuple[Fact, ...]]] = {}
        for fellow, weight, way in self._through_concepts(node):
            distance, best, best_way = shared.get(fellow, (1.0, 0.0, ()))
            strongest = (weight, way) if weight > best else (best, best_way)
            shared[fellow] = (distance * (1 - weight), *strongest)
        top = PREDICATES["memberOf"].weight
        for fellow, (distance, _, way) in shared.items():
            yield fellow, min(top, 1 - distance), way

    def _through_concepts(self, node: str) -> Iterator[_Move]:
        to_concept, back = SHARED_CONCEPTS[self.role]
        for first in self.index.edges_from(node, to_concept):
            concept = first.object
            members = self.index.members(concept, back)
            if not members or (self.excluded is not None and self.excluded(concept)):
                continue
            if not self._read([first]):
                continue
            others = [edge for edge in self._read(members) if edge.subject != node]
            rarity = _RARITY[len(others)]
            near = _strength(first)
            for edge in others:
                if self._may_reach(edge.subject):
                    yield edge.subject, min(near, _strength(edge)) * rarity, (first, edge)

    def _read(self, edges: Sequence[Fact]) -> Sequence[Fact]:
        """Count *edges* as visited, and return them; only declared ones if `declared_only`."""
        self.visited += len(edges)
        return [edge for edge in edges if edge.declared] if self.declared_only else edges

    def _may_reach(self, node: str) -> bool:
        is_excluded = self.excluded is not None and self.excluded(node)
        return not is_excluded and not self.index.is_concept(node)


def _strength(edge: Fact) -> float:
    return PREDICATES[edge.predicate].weight * edge.weight

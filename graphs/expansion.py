"""Neighbours of given nodes by typed, weighted, directed edges.

* Only the surroundings of the seeds are read; `Expansion.visited` counts the edges.
* A large group, or a kind of data that everything takes, relates nothing. A small one counts the
  less the more members it has.
* Every neighbour brings the statements that lead to it.
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
"""Returns whether a node may neither be found nor stand on the way to one that is."""
SHARED_CONCEPTS: Mapping[Role, tuple[EdgeRole, EdgeRole]] = {
    "related": ("member", "member"),
    "next_step": ("produces", "consumes"),
    "prerequisite": ("consumes", "produces"),
}
"""The roles of the edges to a concept and back from it, by which two nodes are neighbours."""
_RARITY = tuple(1 / (1 + log2(max(count, 1)) / 2) for count in range(MAX_GROUP_SIZE + 1))
"""What a shared concept counts, by its number of other members."""
_Move: TypeAlias = tuple[str, float, tuple[Fact, ...]]
"""Where it leads, how near that is, and the edges of the way."""
_Ranked: TypeAlias = tuple[float, str, str, tuple[Fact, ...]]
"""A neighbour as it is sorted: minus its score, its label, its id; then its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A node near a seed."""

    node: str
    """The node's id; never a concept and never a seed."""
    role: Role
    """What it is to the seed."""
    score: float
    """How near it is, in (0, 1]; comparable within one role."""
    path: tuple[Fact, ...]
    """The statements that lead from the seed to it, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """The neighbours of some seeds, and what they cost."""

    neighbours: tuple[Neighbour, ...]
    """Best first; prerequisites by seed and distance."""
    visited: int
    """How many edges were looked at."""


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
    """Find the neighbours of *seeds* in one role.

    Args:
        index: The graph.
        seeds: Node ids, the most important first; unknown ones have no neighbours.
        role: ``related``: stated relations, either way, and shared rare groups. ``next_step``:
            stated next steps, and takers of what a seed produces. ``prerequisite``: what a
            seed requires, and makers of what it consumes.
        excluded: Which nodes are neither found nor on the way to one that is; None for none.
        declared_only: Whether only statements of the host count.
        hops: How many times neighbours of neighbours are followed, >= 1.
        limit: How many neighbours at most.

    Returns:
        ``related`` and ``next_step``: best first, ties by label. ``prerequisite``: the first
        seed's first, and of each seed the nearest first.
    """
    traversal = _Traversal(
        index=index,
        role=role,
        declared_only=declared_only,
        seeds=dict.fromkeys(seeds),
        excluded=excluded,
    )
    found: dict[str, _Ranked] = {}
    for seed in traversal.seeds:
        for ranked in traversal.around(seed, hops):
            earlier = found.get(ranked[2])
            if earlier is None or (role != "prerequisite" and ranked[0] < earlier[0]):
                found[ranked[2]] = ranked
    # No two have the same id, so that ways are never compared.
    nearest = found.values() if role == "prerequisite" else sorted(found.values())
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
        """Walk breadth first from *seed*; the nodes of each level are sorted, seeds left out."""
        found: list[_Ranked] = []
        level: list[_Ranked] = [(-1.0, "", seed, ())]
        reached = {seed}
        for _ in range(hops):
            level = self._next_level(level, reached)
            reached.update(ranked[2] for ranked in level)
            found += (ranked for ranked in level if ranked[2] not in self.seeds)
        return found

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
        """Yield the moves from *node*, some to the same node."""
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
        """Yield each fellow member once, the nearer the more and the rarer groups are shared."""
        shared: dict[str, tuple[float, float, tuple[Fact, ...]]] = {}
        for fellow, weight, way in self._through_concepts(node):
            distance, best, best_way = shared.get(fellow, (1.0, 0.0, ()))
            strongest = (weight, way) if weight > best else (best, best_way)
            shared[fellow] = (distance * (1 - weight), *strongest)
        top = PREDICATES["memberOf"].weight
        for fellow, (distance, _, way) in shared.items():
            yield fellow, min(top, 1 - distance), way

    def _through_concepts(self, node: str) -> Iterator[_Move]:
        there, back = SHARED_CONCEPTS[self.role]
        for first in self.index.edges_from(node, there):
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
        """Count *edges*, and return those that count."""
        self.visited += len(edges)
        return [edge for edge in edges if edge.declared] if self.declared_only else edges

    def _may_reach(self, node: str) -> bool:
        is_excluded = self.excluded is not None and self.excluded(node)
        return not is_excluded and not self.index.is_concept(node)


def _strength(edge: Fact) -> float:
    return PREDICATES[edge.predicate].weight * edge.weight

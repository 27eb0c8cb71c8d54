"""Neighbours: what stands around given nodes, by typed, weighted, directed edges.

* Only the surroundings of the seeds are touched; `Expansion.visited` counts them.
* A crowd relates nobody to anybody: a large group, or a kind of data that everything takes, is
  passed over, and a small one counts the less the more it holds.
* Every neighbour brings the statements that led to it.
* What stands around a node is worked out once and remembered with the index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from graphs.adjacency import THROUGH, Move, Reader, Role
from graphs.facts.fact import Fact
from graphs.graph import GraphIndex
from graphs.neighbour import Expansion, Near, Neighbour, Step

Barred = Callable[[int], bool]
"""Says of a node, by its place in `GraphIndex.nodes`, whether it is to be told of nowhere."""


def expand(  # noqa: PLR0913  (the question has eight parts, six of them by name)
    index: GraphIndex,
    seeds: Sequence[str],
    *,
    role: Role,
    within: Collection[str] | None = None,
    barred: Barred | None = None,
    declared_only: bool = False,
    hops: int = 1,
    limit: int,
) -> Expansion:
    """Find the neighbours of *seeds* in one role.

    Args:
        index: The graph.
        seeds: Node ids, the most important first; unknown ones are passed over.
        role: ``related``: stated relations, either way, and shared rare groups. ``next_step``:
            stated next steps, and takers of what a seed produces. ``prerequisite``: what a
            seed requires, and makers of what it consumes.
        within: Which nodes may be found; None for all. Others are not walked through either.
        barred: Which nodes are neither found nor on the way to one that is; None for none.
        declared_only: Whether only statements of the host count.
        hops: How many times neighbours of neighbours are followed, >= 1.
        limit: How many neighbours at most.

    Returns:
        ``related`` and ``next_step``: best first, ties by label. ``prerequisite``: the first
        seed's first, and of each seed the nearest first.
    """
    return expand_at(
        index,
        _places(index, seeds),
        role=role,
        within=None if within is None else _places(index, within),
        barred=barred,
        declared_only=declared_only,
        hops=hops,
        limit=limit,
    )


def expand_at(  # noqa: PLR0913  (as `expand`)
    index: GraphIndex,
    seeds: Sequence[int],
    *,
    role: Role,
    within: Iterable[int] | None = None,
    barred: Barred | None = None,
    declared_only: bool = False,
    hops: int = 1,
    limit: int,
) -> Expansion:
    """Do what `expand` does, where nodes are known by their positions."""
    walk = _Walk(
        index=index,
        role=role,
        declared_only=declared_only,
        seeds=dict.fromkeys(seeds),
        allowed=None if within is None else frozenset(within),
        barred=barred,
        # Better ones of each seed than these there are enough of, even where all seeds are among
        # them; only where nothing is left out by the window is that known beforehand.
        head=limit + len(seeds) if within is None and hops == 1 and limit >= 0 else None,
    )
    found: dict[int, Near] = {}
    for seed in walk.worth_reading(hops):
        for near in walk.around(seed, hops):
            known = found.get(near[3])
            if known is None or (role != "prerequisite" and near[0] < known[0]):
                found[near[3]] = near
    # No two are of the same node, so that positions and ways are never compared.
    nearest: Iterable[Near] = found.values() if role == "prerequisite" else sorted(found.values())
    chosen = islice(nearest, max(limit, 0))
    return Expansion(
        neighbours=tuple(_neighbour(index, role, near) for near in chosen), visited=walk.visited
    )


def _places(index: GraphIndex, nodes: Iterable[str]) -> list[int]:
    known = map(index.position, nodes)
    return [at for at in known if at is not None]


@dataclass(slots=True, kw_only=True)
class _Walk:
    index: GraphIndex
    role: Role
    declared_only: bool
    seeds: dict[int, None]
    allowed: frozenset[int] | None
    barred: Barred | None
    head: int | None
    visited: int = 0

    def worth_reading(self, hops: int) -> Collection[int]:
        """Give the seeds that anybody who may be found may stand next to.

        A window is small: next to most that nobody asked about before, none of it stands.
        """
        if self.allowed is None or hops > 1:
            return self.seeds
        memo = self.index.remembered.around
        new = [seed for seed in self.seeds if (seed, self.role, self.declared_only) not in memo]
        apart = set(new).difference(self.index.adjacency.tied(new, self.allowed, self.role))
        return [seed for seed in self.seeds if seed not in apart]

    def around(self, seed: int, hops: int) -> Sequence[Near]:
        """Walk breadth first from *seed*, nearest first; rows are those of the whole way."""
        seeds, allowed = self.seeds, self.allowed
        if hops == 1:
            near = self._next_to(seed)[: self.head]
            if allowed is None:
                return [each for each in near if each[3] not in seeds]
            return [each for each in near if each[3] in allowed and each[3] not in seeds]
        found: list[Near] = []
        level: list[Near] = [(-1.0, "", "", seed, ())]
        reached = {seed}
        for _ in range(hops):
            level = self._ahead(level, reached)
            reached.update(each[3] for each in level)
            found += (each for each in level if each[3] not in seeds)
        return found

    def _ahead(self, level: Sequence[Near], reached: set[int]) -> list[Near]:
        """Give what is one hop further than *level*, nearest first."""
        ahead: dict[int, Near] = {}
        for here in level:
            for near in self._next_to(here[3]):
                at, score = near[3], near[0] * -here[0]
                known = ahead.get(at)
                if at not in reached and (known is None or score < known[0]) and self._may(at):
                    ahead[at] = (score, *near[1:4], here[4] + near[4])
        return sorted(ahead.values())

    def _may(self, at: int) -> bool:
        return self.allowed is None or at in self.allowed or at in self.seeds

    def _next_to(self, node: int) -> tuple[Near, ...]:
        memo = self.index.remembered.around
        key = node, self.role, self.declared_only
        known = memo.get(key)
        if known is None:
            found = self._read(node)
            known = memo.keep(key, found, size=1 + len(found[0]))
        near, seen = known
        self.visited += seen
        if self.barred is None:
            return near
        barred = self.barred
        return tuple(
            each
            for each in near
            if not (barred(each[3]) or any(map(barred, self._hub(node, each[4]))))
        )

    def _hub(self, node: int, rows: tuple[int, ...]) -> tuple[int, ...]:
        """Give what both ends of a way of one hop share; nothing where one leads to the other."""
        if not rows[1:]:
            return ()
        there = self.index.adjacency.of(node, THROUGH[self.role])
        return tuple(end for end, row, _, _ in there if row == rows[0])

    def _read(self, node: int) -> tuple[tuple[Near, ...], int]:
        index = self.index
        reader = Reader(adjacency=index.adjacency, role=self.role, declared_only=self.declared_only)
        best: dict[int, Move] = {}
        for move in reader.moves(node):
            known = best.get(move[0])
            if known is None or known[1] < move[1]:
                best[move[0]] = move
        best.pop(node, None)
        near = [
            (-score, index.labels[at], index.nodes[at], at, rows)
            for at, score, rows in best.values()
            if at < index.document_count or not index.is_concept(index.nodes[at])
        ]
        return tuple(sorted(near)), reader.seen


def _neighbour(index: GraphIndex, role: Role, near: Near) -> Neighbour:
    score, _, node, at, rows = near
    memo = index.remembered.neighbours
    key = role, score, at, rows
    known = memo.get(key)
    if known is not None:
        return known
    path = tuple(_step(index, row) for row in rows)
    return memo.keep(key, Neighbour(node=node, role=role, score=-score, path=path))


def _step(index: GraphIndex, row: int) -> Step:
    memo = index.remembered.steps
    return memo.get(row) or memo.keep(row, _cited(index.evidence[row]))


def _cited(fact: Fact) -> Step:
    return Step(
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        path=fact.path,
        line=fact.line,
        declared=fact.declared,
        origin=fact.origin,
    )

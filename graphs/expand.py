"""Neighbours: what stands around given nodes, by typed, weighted, directed edges.

* Only the surroundings of the seeds are touched; `Expansion.visited` counts them.
* A crowd relates nobody to anybody: a large group, or a kind of data that everything takes, is
  passed over, and a small one counts the less the more it holds.
* Every neighbour brings the statements that led to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from graphs.fact import Fact
from graphs.index import EdgeRole, GraphIndex
from graphs.vocabulary import PREDICATES

Role = Literal["related", "next_step", "prerequisite"]
CROWD = 64
"""More nodes than this around one concept, and the concept says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One statement on the way from a seed to a neighbour, as it was made."""

    subject: str
    """The node it is about."""
    predicate: str
    """A name of the vocabulary."""
    object: str
    """The node it points to."""
    path: str
    """The file it was read from; empty if from none."""
    line: int
    """The line of the file, counted from 1; 0 if unknown."""
    declared: bool
    """Whether the host stands for it."""
    origin: str = ""
    """Which rule derived it; empty if a document says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A node near a seed."""

    node: str
    """The node's id; never a concept and never a seed."""
    role: Role
    """What it is to the seed."""
    score: float
    """How near it is, in (0, 1]; comparable within one role."""
    path: tuple[Step, ...]
    """The statements that lead from the seed to it, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """What was found around the seeds, and what it cost."""

    neighbours: tuple[Neighbour, ...]
    """Best first; prerequisites in the order in which they are needed to be told."""
    visited: int
    """How many statements were looked at."""


_Move: TypeAlias = tuple[str, float, tuple[Fact, ...]]


def expand(  # noqa: PLR0913  (the question has seven parts, five of them by name)
    index: GraphIndex,
    seeds: Sequence[str],
    *,
    role: Role,
    within: Collection[str] | None = None,
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
        declared_only: Whether only statements of the host count.
        hops: How many times neighbours of neighbours are followed, >= 1.
        limit: How many neighbours at most.

    Returns:
        ``related`` and ``next_step``: best first, ties by label. ``prerequisite``: the first
        seed's first, and of each seed the nearest first.
    """
    starts = frozenset(seeds)
    walk = _Walk(
        index=index,
        moves=_Moves(
            index=index,
            declared_only=declared_only,
            allowed=None if within is None else starts.union(within),
            seen=[],
        ),
        role=role,
        seeds=starts,
    )
    found: dict[str, _Move] = {}
    for seed in dict.fromkeys(seeds):
        for move in walk.around(seed, hops):
            known = found.get(move[0])
            if known is None or (role != "prerequisite" and known[1] < move[1]):
                found[move[0]] = move
    moves = (
        list(found.values()) if role == "prerequisite" else sorted(found.values(), key=walk.order)
    )
    # Values are made for what is given alone: most of what is seen on the way is not.
    neighbours = tuple(_neighbour(role, move) for move in moves[: max(limit, 0)])
    return Expansion(neighbours=neighbours, visited=len(walk.moves.seen))


def _neighbour(role: Role, move: _Move) -> Neighbour:
    node, score, facts = move
    return Neighbour(node=node, role=role, score=score, path=tuple(map(_step, facts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    index: GraphIndex
    moves: _Moves
    role: Role
    seeds: frozenset[str]

    def around(self, seed: str, hops: int) -> Iterator[_Move]:
        """Walk breadth first from *seed*, nearest first; facts are those of the whole way."""
        level: list[_Move] = [(seed, 1.0, ())]
        reached = {seed}
        for _ in range(hops):
            ahead: dict[str, _Move] = {}
            for here, score, way in level:
                for node, weight, facts in _MOVES[self.role](self.moves, here):
                    known = ahead.get(node)
                    nearer = known is None or known[1] < score * weight
                    if nearer and node not in reached and self._may(node):
                        ahead[node] = (node, score * weight, way + facts)
            level = sorted(ahead.values(), key=self.order)
            reached |= ahead.keys()
            yield from (move for move in level if move[0] not in self.seeds)

    def _may(self, node: str) -> bool:
        allowed = self.moves.allowed
        return (allowed is None or node in allowed) and not self.index.is_concept(node)

    def order(self, move: _Move) -> tuple[float, str, str]:
        """Sort best first, ties by label."""
        node, score, _ = move
        return -score, self.index.label(node), node


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moves:
    index: GraphIndex
    declared_only: bool
    allowed: frozenset[str] | None
    """Whom a move may lead to; None for anybody."""
    seen: list[Fact]

    def related(self, node: str) -> Iterator[_Move]:
        """Go along stated relations, either way, and through shared groups."""
        for fact in self._of(self.index.outgoing(node, "related")):
            yield fact.object, _weight(fact), (fact,)
        for fact in self._of(self.index.incoming(node, "related")):
            yield fact.subject, _weight(fact), (fact,)
        yield from self._grouped(node)

    def next_step(self, node: str) -> Iterator[_Move]:
        """Go to stated next steps, and to the takers of what *node* produces."""
        for fact in self._of(self.index.outgoing(node, "next_step")):
            yield fact.object, _weight(fact), (fact,)
        yield from self._through(node, "produces", "consumes")

    def prerequisite(self, node: str) -> Iterator[_Move]:
        """Go to what *node* requires, and to the makers of what it consumes."""
        for fact in self._of(self.index.outgoing(node, "prerequisite")):
            yield fact.object, _weight(fact), (fact,)
        yield from self._through(node, "consumes", "produces")

    def _grouped(self, node: str) -> Iterator[_Move]:
        """Give each fellow member once, the nearer the more and the rarer groups are shared."""
        shared: dict[str, tuple[float, float, tuple[Fact, ...]]] = {}
        for fellow, weight, facts in self._through(node, "member", "member"):
            apart, best, path = shared.get(fellow, (1.0, 0.0, ()))
            strongest = (weight, facts) if weight > best else (best, path)
            shared[fellow] = (apart * (1 - weight), *strongest)
        top = PREDICATES["memberOf"].weight
        for fellow, (apart, _, path) in shared.items():
            yield fellow, min(top, 1 - apart), path

    def _through(self, node: str, there: EdgeRole, back: EdgeRole) -> Iterator[_Move]:
        for fact in self._of(self.index.outgoing(node, there)):
            crowd = self.index.incoming(fact.object, back)
            if len(crowd) > CROWD:
                continue
            ends = [end for end in self._of(crowd) if end.subject != node]
            rarity = 1 / (1 + math.log2(max(len(ends), 1)) / 2)
            allowed, near = self.allowed, _weight(fact)
            for end in ends:
                if allowed is None or end.subject in allowed:
                    yield end.subject, min(near, _weight(end)) * rarity, (fact, end)

    def _of(self, facts: tuple[Fact, ...]) -> Iterator[Fact]:
        for fact in facts:
            self.seen.append(fact)
            if fact.declared or not self.declared_only:
                yield fact


_MOVES: Mapping[Role, Callable[[_Moves, str], Iterator[_Move]]] = MappingProxyType(
    {
        "related": _Moves.related,
        "next_step": _Moves.next_step,
        "prerequisite": _Moves.prerequisite,
    }
)


def _weight(fact: Fact) -> float:
    return PREDICATES[fact.predicate].weight * fact.weight


def _step(fact: Fact) -> Step:
    return Step(
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        path=fact.path,
        line=fact.line,
        declared=fact.declared,
        origin=fact.origin,
    )

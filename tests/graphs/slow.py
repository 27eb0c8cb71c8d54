"""Expansion as it is meant, statement by statement: what the compiled one must agree with."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from graphs.adjacency import CROWD, Role
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import PREDICATES
from graphs.graph import EdgeRole, GraphIndex
from graphs.neighbour import Neighbour, Step

Move = tuple[str, float, tuple[Fact, ...]]


class Slow:
    """One question; see `graphs.expansion.expand`."""

    def __init__(
        self,
        index: GraphIndex,
        *,
        role: Role,
        within: Collection[str] | None,
        declared_only: bool,
    ) -> None:
        self.index = index
        self.role: Role = role
        self.within = within
        self.declared_only = declared_only
        self.visited = 0

    def neighbours(self, seeds: Sequence[str], *, hops: int, limit: int) -> tuple[Neighbour, ...]:
        """Give what `expand` gives."""
        allowed = None if self.within is None else {*self.within, *seeds}
        found: dict[str, Move] = {}
        for seed in dict.fromkeys(seeds):
            for move in self._around(seed, hops, allowed):
                known = found.get(move[0])
                if move[0] in seeds:
                    continue
                if known is None or (self.role != "prerequisite" and known[1] < move[1]):
                    found[move[0]] = move
        moves = list(found.values())
        if self.role != "prerequisite":
            moves.sort(key=self._order)
        return tuple(map(self._neighbour, moves[: max(limit, 0)]))

    def _around(self, seed: str, hops: int, allowed: Collection[str] | None) -> Iterator[Move]:
        level: list[Move] = [(seed, 1.0, ())]
        reached = {seed}
        for _ in range(hops):
            ahead: dict[str, Move] = {}
            for here, score, way in level:
                for node, weight, facts in self._moves(here):
                    known = ahead.get(node)
                    nearer = known is None or known[1] < score * weight
                    may = (allowed is None or node in allowed) and not self.index.is_concept(node)
                    if nearer and may and node not in reached:
                        ahead[node] = (node, score * weight, way + facts)
            level = sorted(ahead.values(), key=self._order)
            reached |= ahead.keys()
            yield from level

    def _moves(self, node: str) -> Iterator[Move]:
        for fact in self._of(self.index.outgoing(node, self.role)):
            yield fact.object, weight(fact), (fact,)
        if self.role == "next_step":
            yield from self._through(node, "produces", "consumes")
        elif self.role == "prerequisite":
            yield from self._through(node, "consumes", "produces")
        else:
            for fact in self._of(self.index.incoming(node, "related")):
                yield fact.subject, weight(fact), (fact,)
            yield from self._grouped(node)

    def _grouped(self, node: str) -> Iterator[Move]:
        ways = list(self._through(node, "member", "member"))
        for fellow in dict.fromkeys(way[0] for way in ways):
            own = [way for way in ways if way[0] == fellow]
            apart = math.prod(1 - way[1] for way in own)
            best = max(own, key=lambda way: way[1])
            yield fellow, min(PREDICATES["memberOf"].weight, 1 - apart), best[2]

    def _through(self, node: str, there: EdgeRole, back: EdgeRole) -> Iterator[Move]:
        for fact in self._of(self.index.outgoing(node, there)):
            crowd = self.index.incoming(fact.object, back)
            if len(crowd) > CROWD:
                continue
            ends = [end for end in self._of(crowd) if end.subject != node]
            rarity = 1 / (1 + math.log2(max(len(ends), 1)) / 2)
            for end in ends:
                yield end.subject, min(weight(fact), weight(end)) * rarity, (fact, end)

    def _of(self, facts: tuple[Fact, ...]) -> list[Fact]:
        self.visited += len(facts)
        return [fact for fact in facts if fact.declared or not self.declared_only]

    def _order(self, move: Move) -> tuple[float, str, str]:
        return -move[1], self.index.label(move[0]), move[0]

    def _neighbour(self, move: Move) -> Neighbour:
        path = tuple(
            Step(
                subject=fact.subject,
                predicate=fact.predicate,
                object=fact.object,
                path=fact.path,
                line=fact.line,
                declared=fact.declared,
                origin=fact.origin,
            )
            for fact in move[2]
        )
        return Neighbour(node=move[0], role=self.role, score=move[1], path=path)


def weight(fact: Fact) -> float:
    """Give the weight of an edge: its kind's, times its own."""
    return PREDICATES[fact.predicate].weight * fact.weight

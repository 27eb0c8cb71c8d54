"""The edges of a graph as numbers, in the order in which an expansion reads them.

* What leads nowhere is left out where it is read: concepts, crowds, data that nobody takes.
* The edges of a node stand in the order of their other ends, whenever they came.
* An edge names its fact by number; facts are made for the evidence of what is given, and no more.
* What was worked out for a node once is remembered, within a bound.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log2
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np

from graphs.arrays import inserted, without
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import PREDICATES

CROWD = 64
"""More nodes than this around one concept, and the concept says nothing."""
EDGE = np.dtype([("row", "<i4"), ("weight", "<f8"), ("declared", "?")])
"""One edge: the fact, the weight of its kind times its own, and whether the host stands for it."""
Role = Literal["related", "next_step", "prerequisite"]
Edge: TypeAlias = tuple[int, int, float, bool]
"""One edge seen from one of its ends: the other end, and what is known of the edge."""
Move: TypeAlias = tuple[int, float, tuple[int, ...]]
"""Where it leads, how near that is, and the facts of the way, all by number."""

ROLES = ("related", "next_step", "prerequisite", "member", "consumes", "produces")
NUMBERS: Mapping[tuple[str, str], int] = {
    (role, way): number
    for number, (role, way) in enumerate((role, way) for way in ("out", "in") for role in ROLES)
}
"""The number of each kind of edge: its role, and whether it is seen from its start or its end."""
_PREDICATE_NUMBERS: Mapping[str, int] = {
    name: number for number, name in enumerate(sorted(row.name for row in PREDICATES.values()))
}
_FEW = 1024
_NODE_BITS = 26
_PREDICATE_BITS = 7
_HERE_BITS = _NODE_BITS + _PREDICATE_BITS
_KIND_BITS = _NODE_BITS + _HERE_BITS
_NODE_MASK = (1 << _NODE_BITS) - 1
_BACK: Mapping[str, str] = {"member": "member", "consumes": "produces", "produces": "consumes"}
"""The role by which one comes back from a concept that one went to by another."""
THROUGH: Mapping[Role, str] = {
    "related": "member",
    "next_step": "produces",
    "prerequisite": "consumes",
}
"""The kind of edges to the concepts that one comes through in a role."""
_RARITY = tuple(1 / (1 + log2(max(count, 1)) / 2) for count in range(CROWD + 1))
_REMEMBERED = 1 << 16
"""How many values of about the same size are remembered, some hundred bytes each."""
_K = TypeVar("_K")
_V = TypeVar("_V")


class Memo(dict[_K, _V], Generic[_K, _V]):
    """Remembers results; full, it begins anew."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        super().__init__()
        self.held = 0

    def keep(self, key: _K, value: _V, *, size: int = 1) -> _V:
        """Remember *value*, which takes the room of *size* small ones, and give it back."""
        self.held += size
        if self.held > _REMEMBERED:
            self.clear()
            self.held = size
        self[key] = value
        return value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adjacency:
    """The edges around each node, by kind."""

    keys: np.ndarray
    """Kind, node, other end and predicate of each edge as one number, ascending, int64."""
    edges: np.ndarray
    """Of the type `EDGE`, in the order of the keys: each statement once from either end."""
    concepts: np.ndarray
    """Which nodes are concepts, bool."""
    read: Memo[int, list[Edge]] = field(default_factory=Memo)
    """Edges as Python reads them, by kind and node."""
    told: list[array[int]] = field(default_factory=list)
    """What `kinds` gives, once it was asked for."""

    @classmethod
    def empty(cls) -> Adjacency:
        """Give the edges of no graph."""
        return cls(
            keys=np.zeros(0, dtype=np.int64),
            edges=np.zeros(0, dtype=EDGE),
            concepts=np.zeros(0, dtype=np.bool_),
        )

    def changed(
        self,
        *,
        places: np.ndarray,
        concepts: np.ndarray,
        gone: Collection[int],
        new: Sequence[tuple[int, Fact]],
        positions: Mapping[str, int],
    ) -> Adjacency:
        """Give the same after a change.

        Args:
            places: Where each node stands now, int64; -1 for one that is gone.
            concepts: Which nodes are concepts now.
            gone: Which rows are gone.
            new: Edges that have a role in search, with their rows.
            positions: The position of each node now.
        """
        lost = self._lost(gone)
        keys = _moved(without(self.keys, lost), places)
        edges = without(self.edges, lost)
        fresh, told = _written(new, positions)
        if len(fresh) > _FEW or (keys[1:] < keys[:-1]).any():
            keys, edges = np.concatenate([keys, fresh]), np.concatenate([edges, told])
            order = np.argsort(keys, kind="stable")
            return Adjacency(keys=keys[order], edges=edges[order], concepts=concepts)
        order = np.argsort(fresh, kind="stable")
        fresh, told = fresh[order], told[order]
        spots = keys.searchsorted(fresh, side="right").tolist()
        return Adjacency(
            keys=inserted(keys, spots, fresh),
            edges=inserted(edges, spots, told),
            concepts=concepts,
        )

    def renumbered(self, rows: np.ndarray) -> Adjacency:
        """Give the same with other row numbers, *rows* by the old ones."""
        edges = self.edges.copy()
        edges["row"] = rows[edges["row"]]
        return replace(self, edges=edges)

    def of(self, node: int, role: str, way: str = "out") -> list[Edge]:
        """Give the edges of *role* that start at *node*, or end there, and lead somewhere.

        Concepts are nobody's neighbour, and crowds and data that nobody takes lead nowhere.
        """
        number = NUMBERS[role, way]
        if not self.kinds[node] >> number & 1:
            return []
        at = number << _NODE_BITS | node
        known = self.read.get(at)
        if known is not None:
            return known
        found = self._worthwhile(node, role, way)
        return self.read.keep(at, found, size=1 + len(found))

    @property
    def kinds(self) -> array[int]:
        """Which kinds of edges each node has, a bit a kind: most have few of those asked for."""
        if not self.told:
            table = np.zeros(len(self.concepts), dtype=np.uint16)
            for number in NUMBERS.values():
                start, end = self._kind(number)
                table[self.keys[start:end] >> _HERE_BITS & _NODE_MASK] |= np.uint16(1 << number)
            self.told.append(array("H", table.tobytes()))
        return self.told[0]

    def rows(self, node: int, role: str, way: str = "out") -> list[int]:
        """Give the facts of all edges of *role* that start at *node*, or end there."""
        start, end = self._span(node, role, way)
        found: list[int] = self.edges["row"][start:end].tolist()
        return found

    def ends(self, node: int, role: str, way: str = "out") -> np.ndarray:
        """Give the other ends of those edges, int64, ascending."""
        return self._ends(*self._span(node, role, way))

    def tied(self, seeds: Collection[int], others: Collection[int], role: Role) -> list[int]:
        """Give those of *seeds* from which a move in *role* may lead to one of *others*.

        Costs a look for all of them together, where to read what stands around takes some for each.
        """
        found: set[int] = set()
        for way in ("out", "in") if role == "related" else ("out",):
            found.update(seed for seed, end in self._ties(seeds, role, way) if end in others)
        there = THROUGH[role]
        if ties := self._ties(seeds, there):
            shared = {concept for _, concept in self._ties(others, _BACK[there])}
            found.update(seed for seed, concept in ties if concept in shared)
        return [seed for seed in seeds if seed in found]

    def _ties(self, nodes: Iterable[int], role: str, way: str = "out") -> Sequence[tuple[int, int]]:
        """Give each of *nodes* with each other end of its edges of one kind, in one look."""
        number, kinds = NUMBERS[role, way], self.kinds
        held = [node for node in nodes if kinds[node] >> number & 1]
        if not held:
            return ()
        first = (np.array(held) | number << _NODE_BITS) << _HERE_BITS
        starts = self.keys.searchsorted(first)
        counts = self.keys.searchsorted(first + (1 << _HERE_BITS)) - starts
        last = counts.cumsum()
        keys = self.keys[np.arange(last[-1]) + (starts + counts - last).repeat(counts)]
        ends = (keys >> _PREDICATE_BITS & _NODE_MASK).tolist()
        return list(zip((keys >> _HERE_BITS & _NODE_MASK).tolist(), ends, strict=True))

    def starts(self) -> Iterator[tuple[int, int]]:
        """Give each kind, by its number, and node that has edges, ascending."""
        held = np.unique(self.keys >> _HERE_BITS)
        yield from zip((held >> _NODE_BITS).tolist(), (held & _NODE_MASK).tolist(), strict=True)

    def stated(self, roles: Collection[str], *, declared: bool) -> list[int]:
        """Give the nodes at which an edge in one of *roles* starts, ascending.

        Args:
            roles: Which edges.
            declared: Those that the host states, or those that it does not.
        """
        held: set[int] = set()
        for role in roles:
            start, end = self._kind(NUMBERS[role, "out"])
            told = self.edges["declared"][start:end] == declared
            held.update((self.keys[start:end][told] >> _HERE_BITS & _NODE_MASK).tolist())
        return sorted(held)

    def count(self, node: int, role: str, way: str = "out") -> int:
        """Say how many edges of *role* start at *node*, or end there."""
        start, end = self._span(node, role, way)
        return end - start

    def _worthwhile(self, node: int, role: str, way: str) -> list[Edge]:
        if role not in _BACK:
            concepts = self.concepts
            return [each for each in self._edges(node, role, way) if not concepts[each[0]]]
        if way == "in":
            start, end = self._span(node, role, way)
            return self._between(start, end) if end - start <= CROWD else []
        edges = self._edges(node, role, way)
        back = _BACK[role]
        return [each for each in edges if 0 < self.count(each[0], back, "in") <= CROWD]

    def _edges(self, node: int, role: str, way: str) -> list[Edge]:
        return self._between(*self._span(node, role, way))

    def _between(self, start: int, end: int) -> list[Edge]:
        if start == end:
            return []
        ends, told = self._ends(start, end).tolist(), self.edges[start:end].tolist()
        return [(there, *edge) for there, edge in zip(ends, told, strict=True)]

    def _ends(self, start: int, end: int) -> np.ndarray:
        found: np.ndarray = self.keys[start:end] >> _PREDICATE_BITS & _NODE_MASK
        return found

    def _kind(self, number: int) -> tuple[int, int]:
        """Give where the edges of one kind stand: together."""
        start, end = self.keys.searchsorted((number << _KIND_BITS, number + 1 << _KIND_BITS))
        return int(start), int(end)

    def _span(self, node: int, role: str, way: str) -> tuple[int, int]:
        first = (NUMBERS[role, way] << _NODE_BITS | node) << _HERE_BITS
        last = first + (1 << _HERE_BITS)
        start, end = self.keys.searchsorted((first, last)).tolist()
        return start, end

    def _lost(self, gone: Collection[int]) -> list[int]:
        if not gone:
            return []
        marked = np.zeros(int(self.edges["row"].max()) + 1, dtype=np.bool_)
        marked[np.fromiter(gone, dtype=np.int64)] = True
        found: list[int] = np.flatnonzero(marked[self.edges["row"]]).tolist()
        return found


def _moved(keys: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Give *keys* with the nodes at their new places."""
    moves = places - np.arange(len(places)) << _PREDICATE_BITS
    here = keys >> _HERE_BITS & _NODE_MASK
    there = keys >> _PREDICATE_BITS & _NODE_MASK
    found: np.ndarray = keys + (moves << _NODE_BITS)[here]
    found += moves[there]
    return found


def _written(
    new: Sequence[tuple[int, Fact]], positions: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Write statements down from either end: keys and edges."""
    keys: list[int] = []
    edges: list[tuple[int, float, bool]] = []
    for row, fact in new:
        told = PREDICATES[fact.predicate]
        predicate = _PREDICATE_NUMBERS[fact.predicate]
        ends = positions[fact.subject], positions[fact.object]
        for (here, there), way in ((ends, "out"), (ends[::-1], "in")):
            key = NUMBERS[told.role, way] << _NODE_BITS | here
            keys.append((key << _NODE_BITS | there) << _PREDICATE_BITS | predicate)
            edges.append((row, told.weight * fact.weight, fact.declared))
    return np.asarray(keys, dtype=np.int64), np.array(edges, dtype=EDGE)


@dataclass(slots=True, kw_only=True)
class Reader:
    """Reads the moves from nodes, and counts the edges that it looks at."""

    adjacency: Adjacency
    role: Role
    declared_only: bool
    seen: int = 0

    def moves(self, node: int) -> Iterator[Move]:
        """Give the moves from *node* in the order of the facts, some to the same node."""
        for end, row, weight, _ in self._of(node, self.role):
            yield end, weight, (row,)
        if self.role == "related":
            for end, row, weight, _ in self._of(node, "related", "in"):
                yield end, weight, (row,)
            yield from self._grouped(node)
        else:
            yield from self._through(node)

    def _grouped(self, node: int) -> Iterator[Move]:
        """Give each fellow member once, the nearer the more and the rarer groups are shared."""
        shared: dict[int, tuple[float, float, tuple[int, ...]]] = {}
        for fellow, weight, rows in self._through(node):
            apart, best, way = shared.get(fellow, (1.0, 0.0, ()))
            strongest = (weight, rows) if weight > best else (best, way)
            shared[fellow] = (apart * (1 - weight), *strongest)
        top = PREDICATES["memberOf"].weight
        for fellow, (apart, _, way) in shared.items():
            yield fellow, min(top, 1 - apart), way

    def _through(self, node: int) -> Iterator[Move]:
        there = THROUGH[self.role]
        for hub, first, near, _ in self._of(node, there):
            ends = [end for end in self._of(hub, _BACK[there], "in") if end[0] != node]
            rarity = _RARITY[len(ends)]
            for end, row, weight, _ in ends:
                yield end, min(near, weight) * rarity, (first, row)

    def _of(self, node: int, role: str, way: str = "out") -> list[Edge]:
        found = self.adjacency.of(node, role, way)
        self.seen += len(found)
        return [each for each in found if each[3]] if self.declared_only else found

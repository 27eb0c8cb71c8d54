"""The edges of a graph as numbers, in the order in which an expansion reads them.

* What leads nowhere is left out here, not on the way: concepts, crowds, data that nobody takes.
* An edge names its fact by number; facts are made for the evidence of what is given, and no more.
* What was worked out for a node once is remembered, within a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np

from graphs.fact import Fact
from graphs.vocabulary import CONCEPT_BASE, PREDICATES

CROWD = 64
"""More nodes than this around one concept, and the concept says nothing."""
EDGE = np.dtype([("end", "<i4"), ("row", "<i4"), ("weight", "<f8"), ("declared", "?")])
"""One edge seen from one of its ends: the other end, the fact, the weight of its kind times its
own, and whether the host stands for it."""
Role = Literal["related", "next_step", "prerequisite"]
Edge: TypeAlias = tuple[int, int, float, bool]
Move: TypeAlias = tuple[int, float, tuple[int, ...]]
"""Where it leads, how near that is, and the facts of the way, all by number."""

_OUT = ("related", "next_step", "prerequisite", "member", "consumes", "produces")
_IN = ("related", "member", "consumes", "produces")
_KINDS = (*((role, "out") for role in _OUT), *((role, "in") for role in _IN))
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_BACK: Mapping[str, str] = {"member": "member", "consumes": "produces", "produces": "consumes"}
"""The role by which one comes back from a concept that one went to by another."""
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

    size: int
    """How many nodes there are."""
    starts: np.ndarray
    """Where the edges of a kind and node begin: at kind x size + node; the end stands last."""
    edges: np.ndarray
    """Of the type `EDGE`; those of one kind and node in the order of the facts."""
    read: Memo[int, list[Edge]] = field(default_factory=Memo)
    """Edges as Python reads them, by their place in `starts`."""

    @classmethod
    def compile(
        cls,
        edges: Sequence[tuple[int, str, Fact]],
        nodes: Sequence[str],
        positions: Mapping[str, int],
        documents: int,
    ) -> Adjacency:
        """Compile *edges*: the row, role and fact of each.

        Args:
            edges: All that have a role in search.
            nodes: The nodes by position, *documents* of them documents, which stand first.
            positions: The position of each node.
            documents: How many nodes are documents.
        """
        number = len(edges)
        ends = np.fromiter(
            (positions[each] for _, _, fact in edges for each in (fact.subject, fact.object)),
            dtype=np.int64,
            count=2 * number,
        ).reshape(number, 2)
        told = np.zeros(number, dtype=EDGE)
        told["row"] = [row for row, _, _ in edges]
        told["weight"] = [PREDICATES[fact.predicate].weight * fact.weight for _, _, fact in edges]
        told["declared"] = [fact.declared for _, _, fact in edges]
        concepts = _concepts(nodes, documents)
        keys: list[np.ndarray] = []
        rows: list[np.ndarray] = []
        roles = np.array([_OUT.index(role) for _, role, _ in edges], dtype=np.int64)
        for kind, chosen, here, there in _sorted_out(roles, ends, concepts):
            part = told[chosen]
            part["end"] = there
            rows.append(part)
            keys.append(kind * len(nodes) + here)
        key = np.concatenate([np.zeros(0, dtype=np.int64), *keys])
        order = np.argsort(key, kind="stable")
        counts = np.bincount(key, minlength=len(_KINDS) * len(nodes))
        return cls(
            size=len(nodes),
            starts=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)]),
            edges=np.concatenate([np.zeros(0, dtype=EDGE), *rows])[order],
        )

    def of(self, node: int, role: str, way: str = "out") -> list[Edge]:
        """Give the edges of *role* that start at *node*, or end there."""
        at = _NUMBERS[role, way] * self.size + node
        known = self.read.get(at)
        if known is not None:
            return known
        start, end = self.starts[at : at + 2].tolist()
        found = self.edges[start:end].tolist()
        return self.read.keep(at, found, size=1 + len(found))


def _concepts(nodes: Sequence[str], documents: int) -> np.ndarray:
    others = (node.startswith(CONCEPT_BASE) for node in nodes[documents:])
    found = np.zeros(len(nodes), dtype=bool)
    found[documents:] = np.fromiter(others, dtype=bool, count=len(nodes) - documents)
    return found


def _sorted_out(
    roles: np.ndarray, ends: np.ndarray, concepts: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Give of each kind its number, the edges that count, the near ends and the far ends."""
    of_role = {role: np.flatnonzero(roles == number) for number, role in enumerate(_OUT)}
    crowds = {role: np.bincount(ends[of_role[role], 1], minlength=len(concepts)) for role in _BACK}
    for number, (role, way) in enumerate(_KINDS):
        chosen = of_role[role]
        near, far = (0, 1) if way == "out" else (1, 0)
        if role not in _BACK:
            chosen = chosen[~concepts[ends[chosen, far]]]
        else:
            back = crowds[_BACK[role] if way == "out" else role][ends[chosen, 1]]
            chosen = chosen[(back > 0) & (back <= CROWD)]
        yield number, chosen, ends[chosen, near], ends[chosen, far]


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
            yield from self._through(node, "produces" if self.role == "next_step" else "consumes")

    def _grouped(self, node: int) -> Iterator[Move]:
        """Give each fellow member once, the nearer the more and the rarer groups are shared."""
        shared: dict[int, tuple[float, float, tuple[int, ...]]] = {}
        for fellow, weight, rows in self._through(node, "member"):
            apart, best, way = shared.get(fellow, (1.0, 0.0, ()))
            strongest = (weight, rows) if weight > best else (best, way)
            shared[fellow] = (apart * (1 - weight), *strongest)
        top = PREDICATES["memberOf"].weight
        for fellow, (apart, _, way) in shared.items():
            yield fellow, min(top, 1 - apart), way

    def _through(self, node: int, there: str) -> Iterator[Move]:
        for hub, first, near, _ in self._of(node, there):
            ends = [end for end in self._of(hub, _BACK[there], "in") if end[0] != node]
            rarity = _RARITY[len(ends)]
            for end, row, weight, _ in ends:
                yield end, min(near, weight) * rarity, (first, row)

    def _of(self, node: int, role: str, way: str = "out") -> list[Edge]:
        found = self.adjacency.of(node, role, way)
        self.seen += len(found)
        return [each for each in found if each[3]] if self.declared_only else found

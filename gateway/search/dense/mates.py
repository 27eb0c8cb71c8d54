"""Tools of one server serve a request together. Pure.

A request of several steps is mostly served by few servers, so the better the best other tool of its
server fits, the likelier a tool is. The smaller the server's part of the catalog, the more that
says; where all tools are of one server it says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gateway.index.vectors.segments import Positions
from gateway.runtime.vectors import Vector
from graphs.arrays import Moves


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mates:
    """Which server each entity is of."""

    numbers: Positions
    """The number of each entity's server, shape (n,)."""
    weights: Vector
    """How rare that server is, shape (n,): 1 for a tool alone, 0 if it is the whole catalog."""
    servers: int
    """How many servers there are, >= 2."""

    @classmethod
    def of(cls, servers: Sequence[str]) -> Self | None:
        """Take the server of each entity; None if there is only one server."""
        known = {server: number for number, server in enumerate(dict.fromkeys(servers))}
        return cls.numbered(np.asarray([known[server] for server in servers], dtype=np.intp))

    @classmethod
    def numbered(cls, numbers: Positions) -> Self | None:
        """Weigh servers by their *numbers*, shape (n,), without gaps; None if there is only one."""
        counts = np.bincount(numbers)
        if len(counts) < 2:
            return None
        rarity = np.log(len(numbers) / counts) / math.log(len(numbers))
        return cls(numbers=numbers, weights=rarity.astype(np.float32)[numbers], servers=len(counts))

    def support(self, spots: Positions, scores: Vector) -> Vector:
        """Give what the best other tool of its server says for each, shape (len(spots),).

        Args:
            spots: Positions, each once.
            scores: How well each of them fits, 0 for the average of the catalog.

        Returns:
            How well that tool fits, times how rare the server is; at least 0, so that bad mates do
            no harm.
        """
        numbers = self.numbers[spots]
        heads = self.heads(spots, scores)
        leads = scores >= heads
        rest = np.zeros(self.servers, dtype=np.float32)
        np.maximum.at(rest, numbers[~leads], scores[~leads])
        alone = np.bincount(numbers[leads], minlength=self.servers)[numbers] == 1
        mate = np.where(leads & alone, rest[numbers], heads)
        return np.asarray(self.weights[spots] * mate, dtype=np.float32)

    def heads(self, spots: Positions, scores: Vector) -> Vector:
        """Say how well the best tool of its server fits, itself or another, for each; at least 0.

        Args:
            spots: See `support`.
            scores: See `support`.
        """
        numbers = self.numbers[spots]
        best = np.zeros(self.servers, dtype=np.float32)
        np.maximum.at(best, numbers, scores)
        heads: Vector = best[numbers]
        return heads


class Servers:
    """The servers of a catalog that changes. Not for two builds at once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._numbers: Positions = np.zeros(0, dtype=np.intp)

    def change(self, moves: Moves, new: Mapping[int, str]) -> Mates | None:
        """Give the servers after a change.

        Args:
            moves: Where the entities of the last time stand now.
            new: The servers of the new entities, by position.
        """
        known = dict(self._known)
        for server in new.values():
            known.setdefault(server, len(known))
        numbers = moves.rows(self._numbers)
        numbers[list(new)] = [known[server] for server in new.values()]
        if len(known) > len(self._known) or not np.bincount(numbers, minlength=len(known)).all():
            numbers, known = _anew(numbers, known)
        self._known, self._numbers = known, numbers
        return Mates.numbered(numbers)


def _anew(numbers: Positions, known: Mapping[str, int]) -> tuple[Positions, dict[str, int]]:
    """Number the servers by the first of their entities, as they would be if all were new.

    Args:
        numbers: Of the entities.
        known: The number of each server, ascending.
    """
    held, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty(len(held), dtype=np.intp)
    ranks[order] = np.arange(len(held))
    names = list(known)
    return ranks[places], {names[number]: rank for rank, number in enumerate(held[order].tolist())}

"""What an index is put together from; `growing` makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np

from graphs.adjacency import Adjacency
from graphs.arrays import Moves
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import PREDICATES
from graphs.lexical.bm25_index import Postings
from graphs.standing import Standing

EdgeRole = Literal["related", "next_step", "prerequisite", "member", "consumes", "produces"]
EDGE_ROLES: frozenset[EdgeRole] = frozenset(get_args(EdgeRole))
EDGE_PREDICATES: Mapping[str, str] = MappingProxyType(
    {row.name: row.role for row in PREDICATES.values() if row.role in EDGE_ROLES}
)
"""The role of each predicate that has one in search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """The parts of an index."""

    nodes: tuple[str, ...]
    positions: Standing
    labels: tuple[str, ...]
    ranks: np.ndarray
    document_count: int
    postings: Postings
    adjacency: Adjacency
    evidence: Sequence[Fact]
    edge_count: int
    moves: Moves
    """How the nodes moved since the time before."""

"""Copies of tools give way to what they copy. Pure.

The description of a copy says nearly the same as that of a tool of another server that was seen
before it, or that the host wrote. Servers could else take the first places by texts of others.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import lru_cache

import numpy as np

from gateway.search.rank.fusion import RankedList
from gateway.search.rank.parameters import COPY_DEPTH, COPY_FIRST, COPY_MIN_WORDS, COPY_SHARE
from gateway.types import Entity
from graphs.lexical.analysis import stems


def move_copies(
    ranked: RankedList, query: str, named: Container[int], entities: Sequence[Entity]
) -> RankedList:
    """Move the copies among the first places behind the first five that are none.

    Scores still fall. What the query calls by a name that its original has not stays, and so does
    what it calls by its server, which the host named.

    Args:
        ranked: One query, ranked.
        query: Its text.
        named: The positions that the query calls by their exact names.
        entities: By position.
    """
    head = ranked.positions[:COPY_DEPTH].tolist()
    tools = [entities[position] for position in head]
    first: list[int] = []
    copies: list[int] = []
    for place, (position, tool) in enumerate(zip(head, tools, strict=True)):
        if len(first) == COPY_FIRST:
            break
        originals = tools
        if position in named:
            originals = [entities[other] for other in head if other in named]
        is_copy = any(_copies(tool, other) for other in originals)
        is_copy = is_copy and not stems_of(tool.server) <= stems_of(query)
        (copies if is_copy else first).append(place)
    if not copies:
        return ranked
    order = [*first, *copies, *range(len(first) + len(copies), len(ranked.positions))]
    moved = ranked.at(order)
    return RankedList(positions=moved.positions, scores=np.minimum.accumulate(moved.scores))


def _copies(tool: Entity, other: Entity) -> bool:
    """Return whether *tool* is a copy of *other*."""
    is_later = other.trusted or 0 <= other.generation < tool.generation
    if tool.trusted or tool.generation < 0 or not is_later or tool.server == other.server:
        return False
    return are_alike(tool, other)


def are_alike(tool: Entity, other: Entity) -> bool:
    """Return whether the descriptions of two tools say nearly the same."""
    mine, others = stems_of(tool.description), stems_of(other.description)
    shared = len(mine & others)
    return len(mine) >= COPY_MIN_WORDS and shared >= COPY_SHARE * len(mine | others)


@lru_cache(maxsize=1 << 14)
def stems_of(text: str) -> frozenset[str]:
    """Return the stems of the words of *text*, without those that every sentence has."""
    return frozenset(stems(text))

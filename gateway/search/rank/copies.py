"""Ranking of copied tools below their originals. Pure.

A tool is a copy if its description nearly equals that of another server's tool which was seen
earlier or which the host wrote. Copied descriptions must not take the first ranks.
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
    """Move copies among the first ranks behind the first five tools that are not copies.

    Scores stay in descending order. A copy stays if *query* names its server, or if *query*
    contains the copy's exact name and not the original's. *named* are positions of entities whose
    exact name is in the query.
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
        is_copy = any(_is_copy(tool, other) for other in originals)
        is_copy = is_copy and not stems_of(tool.server) <= stems_of(query)
        (copies if is_copy else first).append(place)
    if not copies:
        return ranked
    order = [*first, *copies, *range(len(first) + len(copies), len(ranked.positions))]
    moved = ranked.at(order)
    return RankedList(positions=moved.positions, scores=np.minimum.accumulate(moved.scores))


def _is_copy(tool: Entity, other: Entity) -> bool:
    is_later = other.trusted or 0 <= other.generation < tool.generation
    if tool.trusted or tool.generation < 0 or not is_later or tool.server == other.server:
        return False
    return are_alike(tool, other)


def are_alike(tool: Entity, other: Entity) -> bool:
    """Return whether the descriptions of two tools have nearly the same words."""
    stems_of_tool, stems_of_other = stems_of(tool.description), stems_of(other.description)
    shared = len(stems_of_tool & stems_of_other)
    return len(stems_of_tool) >= COPY_MIN_WORDS and shared >= COPY_SHARE * len(
        stems_of_tool | stems_of_other
    )


@lru_cache(maxsize=1 << 14)
def stems_of(text: str) -> frozenset[str]:
    """Return the stems of the words of *text*, without stop words."""
    return frozenset(stems(text))

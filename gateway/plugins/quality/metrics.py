"""What a ranking is worth. Pure functions; every figure is a share of 1.

* The gold of a query is a list of groups: a group is served as soon as one of its tools is found.
* Sums run in one fixed order, so that two runs of the same ranking agree to the last digit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np

Figures: TypeAlias = Mapping[str, float]
Gold: TypeAlias = Sequence[frozenset[str]]

DEPTH = 10
RECALL_AT = (1, 3, 5, DEPTH)
_GAINS = tuple(float(1 / np.log2(place + 2)) for place in range(DEPTH))
_IDEAL = (0.0, *accumulate(_GAINS))
"""The most that so many groups can gain."""


def score(ranked: Sequence[str], gold: Gold) -> Figures:
    """Judge one ranking.

    Args:
        ranked: Tool ids, best first.
        gold: At least one group.
    """
    relevant = frozenset[str]().union(*gold)
    recalls = {f"recall@{depth}": _recall(ranked[:depth], gold) for depth in RECALL_AT}
    served = _served(ranked[:DEPTH], gold)
    most = min(DEPTH, len(gold))
    gain = precision = 0.0
    for count, place in enumerate(served, 1):
        gain += _GAINS[place]
        precision += count / (place + 1)
    places = (place for place, tool in enumerate(ranked, 1) if tool in relevant)
    return {
        "hit@1": float(bool(ranked) and ranked[0] in relevant),
        **recalls,
        "ndcg@10": gain / _IDEAL[most],
        "mrr": next((1 / place for place in places), 0.0),
        "comp@10": float(recalls["recall@10"] >= 1),
        "map@10": precision / most,
    }


def _recall(top: Sequence[str], gold: Gold) -> float:
    return sum(not group.isdisjoint(top) for group in gold) / len(gold)


def _served(top: Sequence[str], gold: Gold) -> list[int]:
    """Return the places, from 0, at which a group is served that was not yet."""
    waiting = list(gold)
    places: list[int] = []
    for place, tool in enumerate(top):
        group = next((group for group in waiting if tool in group), None)
        if group is not None:
            waiting.remove(group)
            places.append(place)
    return places


def mean(rows: Sequence[Figures]) -> Figures:
    """Average each figure; empty without rows."""
    if not rows:
        return {}
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}

"""How much the tools of a catalog have in common. Pure.

A catalog of one subject serves requests of that subject. One in which each tool is of another kind
serves almost anything, however vaguely it is asked for, and should be slower to say no. So should a
large one, since one of many tools is likelier to serve. What is measured is how near the loneliest
quarter of the tools is to its nearest neighbours: adding servers of other subjects leaves those as
lonely as they were.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gateway.embed.yardstick import Yardstick
from gateway.index.vectors.exact import VectorIndex


class _Bounds(NamedTuple):
    least: float
    """The narrowness of the broadest catalog."""
    many: float
    """From so many tools on, twice as many make a catalog half as narrow."""


LEARNED = _Bounds(least=0.05, many=500)
UNLEARNED = _Bounds(least=0.2, many=math.inf)
_LONELY = 0.25
"""Which share of the tools counts as lonely."""
_BROAD, _NARROW = 2.85, 3.2
"""How near the least lonely of those is to its nearest neighbour, on the model's scale: in a
catalog where each tool is of another kind, and in one of a few subjects."""
_SAMPLE = 64
_MOST = 4000
"""Of so many tools each has neighbours; looking at more would tell nothing."""


def narrowness(
    vectors: VectorIndex | None, yardstick: Yardstick | None, *, learned: bool = False
) -> float:
    """Say how narrow the subject of a catalog is, > 0 to 1.

    Args:
        vectors: The tools' unit vectors, zeros where there is none; None without any.
        yardstick: What the model's cosines mean.
        learned: Whether `gateway.search.served` judges what the model finds. It turns more requests
            away, so that the size and breadth of a catalog must hold it back more.

    Returns:
        1 without vectors, since words are not near by chance; the least there is with vectors whose
        scale is unknown.
    """
    bounds = LEARNED if learned else UNLEARNED
    if vectors is None:
        return 1.0
    if vectors.size > _MOST:
        return min(1.0, bounds.many / _MOST)
    if yardstick is None:
        return bounds.least
    rows = vectors.rows(np.arange(vectors.size))
    known = rows[rows.any(axis=1)]
    if len(known) < 2:
        return bounds.least
    drawn = np.linspace(0, len(known) - 1, min(_SAMPLE, len(known))).astype(np.intp)
    cosines = known[drawn] @ known.T
    cosines[np.arange(len(drawn)), drawn] = np.nan
    near = yardstick.nearness(float(np.quantile(np.nanmax(cosines, axis=1), _LONELY)))
    narrow = (near - _BROAD) / (_NARROW - _BROAD)
    return min(max(narrow, bounds.least), 1.0) * min(1.0, bounds.many / len(known))

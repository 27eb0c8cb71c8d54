"""How much the tools of a catalog have in common. Pure.

A catalog of one subject serves requests of that subject; one whose tools are all of another kind
serves almost anything, however vaguely it is asked for, and should be slower to say no. So should
a large one: of more tools one is likelier to serve. What tells is how near the loneliest quarter of
the tools is to its nearest: servers of other subjects, which make two heaps of one, leave those as
lonely as they were.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gateway.embed.yardstick import Yardstick
from gateway.search.dense.scan import VectorIndex


class _Bounds(NamedTuple):
    least: float
    """What the broadest catalog has."""
    many: float
    """From so many tools on, twice as many are half as narrow."""


LEARNED = _Bounds(least=0.05, many=500)
UNLEARNED = _Bounds(least=0.2, many=math.inf)
_LONELY = 0.25
"""Tools that are lonelier than the rest: such a share."""
_BROAD, _NARROW = 2.85, 3.2
"""On the model's scale: how near the least lonely of those is to its nearest, in a catalog of tools
that are all of another kind, and in one of a few subjects."""
_SAMPLE = 64
_MOST = 4000
"""Among so many tools each has its like, and more of them say nothing."""


def narrowness(
    vectors: VectorIndex | None, yardstick: Yardstick | None, *, learned: bool = False
) -> float:
    """Say how narrow a catalog is, above 0, at the most 1.

    Args:
        vectors: The tools' unit vectors, zeros where there is none; None without any.
        yardstick: What the model's cosines mean.
        learned: Whether `gateway.search.served` judges what the model finds: it empties more, and
            the size of a catalog and how broad it is hold it back the more.

    Returns:
        1 without vectors, since words do not lie near by chance; the least with vectors that nobody
        knows the meaning of.
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

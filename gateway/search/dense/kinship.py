"""How much the tools of a catalog have in common. Pure.

A catalog of one subject serves requests of that subject; one whose tools are all of another kind
serves almost anything, however vaguely it is asked for, and should be slower to say no. So should
a large one: of more tools one is likelier to serve.
"""

from __future__ import annotations

import numpy as np

from gateway.embed.yardstick import Yardstick
from gateway.search.dense.scan import VectorIndex

LEAST = 0.05
UNKNOWN = 0.2
"""With vectors that nobody knows the meaning of."""
MANY = 500
"""From so many tools on, twice as many are half as narrow."""
_BROAD = 1.1
_NARROW = 1.75
"""On the model's scale: how much nearer to its nearest a tool is than to any."""
_SAMPLE = 64
_MOST = 4000
"""Among so many tools each has its like, and more of them say nothing."""


def narrowness(vectors: VectorIndex | None, yardstick: Yardstick | None) -> float:
    """Say how narrow a catalog is, above 0, at the most 1.

    Args:
        vectors: The tools' unit vectors, zeros where there is none; None without any.
        yardstick: What the model's cosines mean.

    Returns:
        1 without vectors, since words do not lie near by chance; `UNKNOWN` with vectors that nobody
        knows the meaning of.
    """
    if vectors is None:
        return 1.0
    if yardstick is None:
        return UNKNOWN
    if vectors.size > _MOST:
        return MANY / _MOST
    rows = vectors.rows(np.arange(vectors.size))
    known = rows[rows.any(axis=1)]
    if len(known) < 2:
        return LEAST
    drawn = np.linspace(0, len(known) - 1, min(_SAMPLE, len(known))).astype(np.intp)
    cosines = known[drawn] @ known.T
    cosines[np.arange(len(drawn)), drawn] = np.nan
    ahead = float((np.nanmax(cosines, axis=1) - np.nanmean(cosines, axis=1)).mean())
    share = (ahead / (yardstick.matches - yardstick.strangers) - _BROAD) / (_NARROW - _BROAD)
    return min(max(share, LEAST), 1.0) * min(1.0, MANY / len(known))

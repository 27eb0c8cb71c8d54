"""A place among the first for each part of a request. Pure.

A request of a few parts is ranked as a whole and by its best part. Where many tools do much the
same, the tools for one part take all places, and the only tool for another part stands behind them.
So a tool that plainly serves a part is moved among the first, if it stood not far behind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gateway.search.dense.doubts import Doubts
from gateway.search.dense.vector import Candidates
from gateway.search.fusion import STEPS, Order

FIRST = 5
"""How many places are shared out: as many as a model is shown by default."""
REACH = 10
"""Only who stands among so many is moved up."""
PLAIN = 2.0
"""A tool plainly serves a part if its cosine with it is at least so many deviations above the mean.
"""
USUAL = 40
"""How many of the best that mean and that deviation are taken over."""
_NOTHING = 1e-6


def each_part(found: Candidates, order: Order, *, parts: int, doubts: Doubts | None) -> Order:
    """Move the tool that plainly serves a part best among the `FIRST`.

    Args:
        found: The vector candidates, with the vectors of the parts as its question's clauses.
        order: The ranking of the whole request.
        parts: How many there are. A request of one part is left as it is, and so is one of more
            parts than there are places.
        doubts: What each loses for wanting to be found for everything; who loses anything is not
            moved up. None if nobody does.

    Returns:
        The same entities. The first, and those among the `FIRST` that are best for some part, stay;
        who was moved stands behind them, in the order of *order*.
    """
    clauses = found.question.clauses
    if not 2 <= parts <= STEPS[0] or len(order.positions) <= FIRST:
        return order
    cosines = found.index.rows(order.positions[:USUAL]) @ clauses.T
    spread = np.maximum(cosines.std(axis=0), _NOTHING)
    standings = (cosines[:REACH] - cosines.mean(axis=0)) / spread
    best = standings.argmax(axis=0)
    plain = standings.max(axis=0) >= PLAIN
    if doubts is not None:
        plain &= doubts.lost[order.positions[best]] == 0
    came = np.unique(best[plain & (best >= FIRST)]).tolist()
    if not came:
        return order
    return _moved(order, came, kept={0, *best.tolist()})


def _moved(order: Order, came: Sequence[int], *, kept: set[int]) -> Order:
    """Move *came* among the first, in place of the last of those that are not *kept*.

    Args:
        order: The ranking.
        came: Places of `FIRST` or more, ascending.
        kept: Places that stay as they are.
    """
    left = [place for place in reversed(range(FIRST)) if place not in kept][: len(came)]
    came = came[: len(left)]
    head = [*(place for place in range(FIRST) if place not in left), *came]
    rest = [place for place in range(len(order.positions)) if place not in head]
    # Scores stay where they are, so that they still fall: what moves takes that of its new place.
    return Order(positions=order.positions[[*head, *rest]], scores=order.scores)

"""A place among the first for each part of a request. Pure.

A request of a few parts is ranked as a whole and by its best part. Where many tools do much the
same, those of one part take all places, and another part's only tool stands behind them. So the
tool that plainly serves a part, if it is found not far behind, comes to stand among the first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gateway.search.dense.doubts import Doubts
from gateway.search.dense.vector import Candidates
from gateway.search.fusion import STEPS, Order

FIRST = 5
"""The places that are shared out: what a model is shown by default."""
REACH = 10
"""Who stands among so many may come to stand among the first."""
PLAIN = 2.0
"""A tool plainly serves a part if its cosine is so many deviations above those of `USUAL`."""
USUAL = 40
"""Of so many of the best is told how near to a part a tool usually is."""
_NOTHING = 1e-6


def each_part(found: Candidates, order: Order, *, parts: int, doubts: Doubts | None) -> Order:
    """Let the tool that serves a part best stand among the `FIRST`.

    Args:
        found: The vector candidates, with the vectors of the parts.
        order: The ranking of the whole request.
        parts: How many they are. A request of one is left as it is, and so is a job of many, whose
            parts are more than there are places.
        doubts: Who wants to be found for everything; whoever loses anything is not moved up.

    Returns:
        The same entities. What is best for some part, and the first, keep their places; who came
        in stands behind them, in the order of *order*.
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
    """Let *came* stand among the first, in place of the last of those that are not *kept*."""
    left = [place for place in reversed(range(FIRST)) if place not in kept][: len(came)]
    came = came[: len(left)]
    head = [*(place for place in range(FIRST) if place not in left), *came]
    rest = [place for place in range(len(order.positions)) if place not in head]
    # The scores fall along the ranking still: what moves takes the score of its new place.
    return Order(positions=order.positions[[*head, *rest]], scores=order.scores)

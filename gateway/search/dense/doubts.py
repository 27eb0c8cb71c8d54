"""What a tool loses that wants to be found for everything; `doubting` says why, and how much."""

from __future__ import annotations

from gateway.values import dataclass
from gateway.vectors import Vector

MAX_DOUBT = 3.0
"""The most that an entity loses: as much as a tool of the subject is ahead of a stranger."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Doubts:
    """What each entity loses, shape (n,) each."""

    lost: Vector
    """In deviations, 0 to `MAX_DOUBT`."""
    unheard: Vector
    """Share of what its words and its mates say that does not count, 0 to 1."""

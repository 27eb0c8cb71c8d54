"""What each entity loses for wanting to be found for every request; `doubting` weighs it."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.runtime.vectors import Vector

MAX_DOUBT = 3.0
"""The most that an entity loses: as much as a tool of the right subject is ahead of a stranger."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Doubts:
    """What each entity loses for wanting to be found for every request."""

    lost: Vector
    """In deviations, 0 to `MAX_DOUBT`, shape (n,)."""
    unheard: Vector
    """Which share of what its words and its mates say does not count, 0 to 1, shape (n,)."""

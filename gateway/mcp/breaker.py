"""A circuit breaker: a server that keeps failing is left alone for a while, then probed once.

States: *closed* lets everything through; *open* refuses; *half_open* lets one use through, whose
outcome decides. Pure but for the clock; not for several threads.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from gateway.runtime.cache import Clock

BreakerState = Literal["closed", "open", "half_open"]

_SPREAD = 0.2
"""By which share waits vary either way, so that many gateways do not come back all at once."""
_PROBE_S = 1.0
"""How long uses that come during the probe are told to wait."""


class Breaker:
    """Counts failures in a row.

    Args:
        failures: How many open it.
        open_s: How long it is open the first time; each failed probe doubles that …
        open_max_s: … up to this.
        clock: Seconds that only grow.
        chance: Gives numbers from 0 to 1, for the jitter.
    """

    def __init__(
        self,
        *,
        failures: int,
        open_s: float,
        open_max_s: float,
        clock: Clock,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._limit = failures
        self._open_s = open_s
        self._open_max_s = open_max_s
        self._clock = clock
        self._chance = chance
        self._failures = 0
        self._opened = 0
        self._until: float | None = None
        self._probing = False

    @property
    def state(self) -> BreakerState:
        """Its state now."""
        if self._until is None:
            return "closed"
        return "half_open" if self._probing or self._clock() >= self._until else "open"

    def admit(self) -> float:
        """Give how many seconds to stay away; 0 lets a use through, whose outcome must be told."""
        if self._until is None:
            return 0.0
        rest = self._until - self._clock()
        if rest > 0:
            return rest
        if self._probing:
            return _PROBE_S
        self._probing = True
        return 0.0

    def succeed(self) -> None:
        """Take note that the server answered."""
        self._failures = self._opened = 0
        self._until = None
        self._probing = False

    def fail(self) -> None:
        """Take note that the server could not be reached, died or stayed silent."""
        self._failures += 1
        if self._probing or (self._until is None and self._failures >= self._limit):
            wait_s = min(self._open_s * 2**self._opened, self._open_max_s)
            self._opened = min(self._opened + 1, 32)
            self._until = self._clock() + wait_s * (1 + _SPREAD * (2 * self._chance() - 1))
            self._probing = False

    def forget(self) -> None:
        """Take note that a use ended and tells nothing about the server: its caller went away."""
        self._probing = False

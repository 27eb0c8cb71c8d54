"""A circuit breaker: a server that keeps failing is left alone for a while, then probed once.

States: *closed* lets everything through; *open* refuses; *half_open* lets one use through, whose
outcome decides. Pure but for the clock; not for several threads.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from gateway.options import UpstreamOptions
from gateway.runtime.cache import Clock

BreakerState = Literal["closed", "open", "half_open"]

_JITTER = 0.2
"""By which share waits vary either way, so that many gateways do not come back all at once."""
_PROBE_S = 1.0
"""How long uses that come during the probe are told to wait."""
_MAX_DOUBLINGS = 32


class Breaker:
    """Counts failures in a row.

    Args:
        options: How many failures open it, how long it is open the first time, and at most; each
            failed probe doubles the time.
        clock: Seconds that only grow.
        random_share: Returns numbers from 0 to 1, for the jitter.
    """

    def __init__(
        self,
        options: UpstreamOptions,
        *,
        clock: Clock,
        random_share: Callable[[], float] = random.random,
    ) -> None:
        self._options = options
        self._clock = clock
        self._random_share = random_share
        self._failures = 0
        self._openings = 0
        self._open_until: float | None = None
        self._is_probing = False

    @property
    def state(self) -> BreakerState:
        """Its state now."""
        if self._open_until is None:
            return "closed"
        return "half_open" if self._is_probing or self._clock() >= self._open_until else "open"

    def admit(self) -> float:
        """Return how many seconds to stay away; 0 lets a use through, whose outcome must follow."""
        if self._open_until is None:
            return 0.0
        wait_s = self._open_until - self._clock()
        if wait_s > 0:
            return wait_s
        if self._is_probing:
            return _PROBE_S
        self._is_probing = True
        return 0.0

    def record_success(self) -> None:
        """Take note that the server answered."""
        self._failures = self._openings = 0
        self._open_until = None
        self._is_probing = False

    def record_failure(self) -> None:
        """Take note that the server could not be reached, died or stayed silent."""
        options = self._options
        self._failures += 1
        is_tripped = self._open_until is None and self._failures >= options.breaker_failures
        if self._is_probing or is_tripped:
            wait_s = min(options.breaker_s * 2**self._openings, options.breaker_max_s)
            self._openings = min(self._openings + 1, _MAX_DOUBLINGS)
            jitter = 1 + _JITTER * (2 * self._random_share() - 1)
            self._open_until = self._clock() + wait_s * jitter
            self._is_probing = False

    def release(self) -> None:
        """Take note that a use ended and says nothing about the server: its caller went away."""
        self._is_probing = False

"""A clock that stands still until it is told to go."""

from __future__ import annotations

import threading

from gateway.errors import InvalidRequestError


class ManualClock:
    """Pass it wherever a ``clock`` is asked for. Any thread may read and move it."""

    def __init__(self, now: float = 0.0) -> None:
        self._lock = threading.Lock()
        self._now = now

    def __call__(self) -> float:
        """Read the time, in seconds."""
        with self._lock:
            return self._now

    def tick(self, seconds: float) -> None:
        """Move the time forward.

        Raises:
            InvalidRequestError: *seconds* is negative.
        """
        if seconds < 0:
            raise InvalidRequestError(f"a clock does not go back: tick({seconds!r})")
        with self._lock:
            self._now += seconds

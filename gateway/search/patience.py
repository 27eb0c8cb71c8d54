"""How long a search waits for what it can do without: a service that hangs is one that failed."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from gateway.errors import Failed, GatewayError, attempt_within

T = TypeVar("T")
SHARED = 3
"""Shared work ends after so many times the patience of those who wait for it: whoever comes late
still waits for something, and a request that nobody answers is not waited for by all to come."""


async def patient(work: Awaitable[T], seconds: float, *, spent: float = 0.0) -> T | Failed:
    """Await *work* as long as a search may wait; see `gateway.errors.attempt_within`.

    Args:
        work: What the search can do without.
        seconds: `SearchOptions.query_timeout_s`.
        spent: How many of them are gone; what is there at once is given even so.

    Returns:
        What it gave, or why not.
    """
    late = GatewayError(f"it took longer than {seconds:g} s (SearchOptions.query_timeout_s)")
    return await attempt_within(work, max(seconds - spent, 0.0), late)

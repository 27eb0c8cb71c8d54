"""How long a search waits for what it can do without: a service that hangs is one that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from gateway.errors import Failed, GatewayError, attempt

T = TypeVar("T")
SHARED = 3
"""Shared work ends after so many times the patience of those who wait for it: whoever comes late
still waits for something, and a request that nobody answers is not waited for by all to come."""


async def patient(work: Awaitable[T], seconds: float, *, spent: float = 0.0) -> T | Failed:
    """Await *work* as `gateway.errors.attempt` does, but not for ever.

    Args:
        work: Cancelled when it takes too long; what it shares with others goes on for them.
        seconds: `SearchOptions.query_timeout_s`.
        spent: How many of them are gone; what is there at once is given even so.

    Returns:
        What it gave, or why not.
    """
    try:
        async with asyncio.timeout(max(seconds - spent, 0.0)):
            return await attempt(work)
    except TimeoutError:
        # No other comes out of `attempt`.
        told = f"it took longer than {seconds:g} s (SearchOptions.query_timeout_s)"
        return Failed(GatewayError(told))

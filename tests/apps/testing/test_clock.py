"""The clock that a test moves."""

from __future__ import annotations

import pytest

from gateway.errors import InvalidRequestError
from gateway.runtime.cache import Cache
from gateway.testing import ManualClock


def test_it_serves_where_a_clock_is_asked_for() -> None:
    """The cache is the first of them."""
    clock = ManualClock()
    cache: Cache[str] = Cache("a", max_items=1, ttl_s=10, clock=clock)
    cache.put("key", "value")

    found = []
    for seconds in (0, 9, 1):
        clock.tick(seconds)
        found.append(cache.get("key"))

    assert ["value", "value", None] == found


def test_it_does_not_go_active_calls() -> None:
    """The clocks it stands for are monotonic."""
    with pytest.raises(InvalidRequestError, match=r"tick\(-1\)"):
        ManualClock().tick(-1)

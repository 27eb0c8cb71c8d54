"""The clock that a test advances."""

from __future__ import annotations

import pytest

from gateway.errors import InvalidRequestError
from gateway.runtime.cache import Cache
from gateway.testing import ManualClock


def test_manual_clock_is_accepted_by_a_cache() -> None:
    clock = ManualClock()
    cache: Cache[str] = Cache("a", max_items=1, ttl_s=10, clock=clock)
    cache.put("key", "value")

    result = []
    for seconds in (0, 9, 1):
        clock.tick(seconds)
        result.append(cache.get("key"))

    assert ["value", "value", None] == result


def test_manual_clock_refuses_to_go_back() -> None:
    """Tests use it in place of monotonic clocks."""
    with pytest.raises(InvalidRequestError, match=r"tick\(-1\)"):
        ManualClock().tick(-1)

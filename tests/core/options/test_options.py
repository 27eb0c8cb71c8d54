"""Ranges of options, and sizes of searches computed from them."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest

from gateway.errors import ConfigError
from gateway.options import DiscoveryOptions, SearchOptions, UpstreamOptions
from gateway.options.provision import ProvisionOptions
from gateway.runtime import VERSION


def test_version_constant_equals_the_version_of_the_package() -> None:
    """Reading the version from the package's metadata would slow down each start."""
    assert version("tool-gateway") == VERSION


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (SearchOptions, {"max_query_chars": 1}, "max_query_chars"),
        (SearchOptions, {"window_margin": 1.5}, "window_margin"),
        (SearchOptions, {"lexical_weight": float("nan")}, "lexical_weight"),
        (SearchOptions, {"lexical_weight": float("inf")}, "lexical_weight"),
        (UpstreamOptions, {"call_timeout_s": 0}, "call_timeout_s"),
        (DiscoveryOptions, {"search_name": "a", "call_name": "a"}, "two names"),
        (DiscoveryOptions, {"max_tools": 2}, "max_tools"),
        (ProvisionOptions, {"enough": 2}, "enough"),
        (ProvisionOptions, {"max_page_bytes": 1}, "max_page_bytes"),
    ],
)
def test_option_out_of_range_is_refused_with_its_name(
    kind: type[Any], values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        kind(**values)


@pytest.mark.parametrize(("limit", "pool", "window"), [(1, 200, 8), (5, 200, 20), (50, 1000, 200)])
def test_search_pool_and_window_grow_with_the_limit(limit: int, pool: int, window: int) -> None:
    """The pool is max(200, 20 x limit) candidates, the window max(4 x limit, 8)."""
    options = SearchOptions()

    assert (pool, window) == (options.pool(limit), options.window(limit))

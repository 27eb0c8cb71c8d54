"""Search for results that people see."""

from __future__ import annotations

from typing import Any

from gateway.gateway import Gateway
from gateway.types import SearchResult


async def search_catalog(
    gateway: Gateway, query: str, *, max_results: int, **arguments: Any
) -> SearchResult:
    """Search for entities to show to people, ranked as in `gateway.search.rank.display`.

    A blank query lists entities. *arguments* are other arguments of `Gateway.search`.

    Raises:
        InvalidRequestError: If *max_results* is not 1 to 50, or another argument is out of bounds.
    """
    return await gateway.search(
        query or None,
        limit=max(gateway.options.search.max_limit, max_results),
        diversify=True,
        display_limit=max_results,
        **arguments,
    )

"""Search for results that people see, shared by the HTTP API and the command line."""

from __future__ import annotations

from typing import Any

from gateway.gateway import Gateway
from gateway.types import SearchResult


async def search_catalog(
    gateway: Gateway, query: str, *, max_results: int, **arguments: Any
) -> SearchResult:
    """Search for entities to show to people, ranked as in `gateway.search.rank.display`.

    Args:
        gateway: The searched gateway.
        query: Text in any language. A blank query lists entities.
        max_results: Maximum number of matches, 1 to 50.
        **arguments: Other arguments of `Gateway.search`.

    Raises:
        InvalidRequestError: If an argument is outside its bounds.
    """
    return await gateway.search(
        query or None,
        limit=max(gateway.options.search.max_limit, max_results),
        diversify=True,
        display_limit=max_results,
        **arguments,
    )

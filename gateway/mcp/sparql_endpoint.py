"""Ask a SPARQL endpoint that the user names, through the guard of private addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from gateway.errors import ConfigError, UpstreamError
from gateway.mcp.json_fetch import fetch_json

MAX_BYTES = 16 * 1024 * 1024
"""A longer answer is refused."""


def ask_endpoint(url: str, query: str, *, timeout_s: float) -> Mapping[str, object]:
    """Return the SPARQL results of *query* in JSON. Redirects are not followed.

    Raises:
        ConfigError: The endpoint may not be asked, does not answer in time, or says something else.
    """
    form = {"query": query}
    asking = fetch_json(url, configured="", max_bytes=MAX_BYTES, timeout_s=timeout_s, form=form)
    try:
        results: Any = asyncio.run(asking)
    except UpstreamError as error:
        raise ConfigError(f"the SPARQL endpoint {error}") from error
    match results:
        case {"head": {"vars": [*_]}, "results": {"bindings": [*_]}}:
            return dict(results)
    raise ConfigError(f"the endpoint {url!r} answers no SPARQL results")

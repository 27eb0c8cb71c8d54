"""Ask a SPARQL endpoint that the user names, through the guard of private addresses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import httpx2

from gateway.errors import ConfigError
from gateway.mcp.ssrf_guard import guarded_transport
from gateway.runtime.library_logs import quiet_libraries

MAX_BYTES = 16 * 1024 * 1024
"""A longer answer is refused."""
_JSON = "application/sparql-results+json"


def ask_endpoint(url: str, query: str, *, timeout_s: float) -> Mapping[str, object]:
    """Return the SPARQL results of *query* in JSON. Redirects are not followed.

    Raises:
        ConfigError: The endpoint may not be asked, does not answer in time, or says something else.
    """
    with quiet_libraries("SPARQL"):
        return asyncio.run(_ask(url, query, timeout_s))


async def _ask(url: str, query: str, timeout_s: float) -> Mapping[str, object]:
    transport = guarded_transport(url, ())
    body = b""
    try:
        async with (
            asyncio.timeout(timeout_s),
            httpx2.AsyncClient(transport=transport) as client,
            client.stream("POST", url, data={"query": query}, headers={"Accept": _JSON}) as reply,
        ):
            reply.raise_for_status()
            async for chunk in reply.aiter_bytes():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise ConfigError(f"the endpoint {url!r} says more than 16 MB: ask for less")
        found = json.loads(body)
    except (httpx2.HTTPError, TimeoutError) as error:
        reason = str(error) or "no answer in time"
        raise ConfigError(f"the endpoint {url!r} cannot be asked: {reason}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the endpoint {url!r} answers no JSON") from error
    match found:
        case {"head": {"vars": [*_]}, "results": {"bindings": [*_]}}:
            return dict(found)
    raise ConfigError(f"the endpoint {url!r} answers no SPARQL results")

"""Requests for JSON documents from services named by the host or by a user."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx2

from gateway.errors import ConfigError, UpstreamError, UpstreamTimeoutError
from gateway.mcp.ssrf_guard import GuardedTransport, is_local
from gateway.runtime import VERSION
from gateway.runtime.library_logs import quiet_libraries

_HEADERS = {
    "accept": "application/json, application/sparql-results+json",
    # A compressed document could exceed its limit after decompression.
    "accept-encoding": "identity",
    "user-agent": f"tool-gateway/{VERSION}",
}


async def fetch_json(
    url: str,
    *,
    configured: str,
    max_bytes: int,
    timeout_s: float,
    form: Mapping[str, str] | None = None,
    client: Sequence[str] = (),
) -> object:
    """Return the parsed JSON document at *url*. Redirects are not followed.

    Args:
        url: URL of the document. TLS is required, except on this machine.
        configured: Configured URL from which *url* was taken. Only its host may be private or this
            machine. Empty if a user named *url*, whose host may then be this machine, but not
            private.
        max_bytes: Maximum size of the document, in bytes.
        timeout_s: Maximum time for the whole answer, in seconds.
        form: Form to send with POST; None sends a GET request.
        client: Id and secret of the OAuth client (RFC 6749, 2.3.1), or empty.

    Raises:
        ConfigError: If requests to *url* are not allowed.
        UpstreamError: If there is no answer, or the answer is not JSON.
    """
    parts, private = httpx2.URL(url), (httpx2.URL(configured).host,)
    origin, body = f"{parts.scheme}://{parts.netloc.decode()}", b""
    if parts.scheme != "https" and not is_local(url):
        raise ConfigError(f"{origin!r} may not be used without TLS: use https")
    auth = httpx2.BasicAuth(*(quote(text, safe="") for text in client)) if client else None
    method = "GET" if form is None else "POST"
    transport = GuardedTransport(private, local=is_local(configured or url))
    try:
        with quiet_libraries(origin):
            async with (
                asyncio.timeout(timeout_s),
                httpx2.AsyncClient(transport=transport, timeout=timeout_s) as http,
                http.stream(method, url, headers=_HEADERS, data=form, auth=auth) as response,
            ):
                if not response.is_success:
                    raise UpstreamError(origin, f"answered {response.status_code}")
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > max_bytes:
                        raise UpstreamError(origin, f"sent more than {max_bytes} bytes")
        document: object = json.loads(body)
    except TimeoutError as error:
        raise UpstreamTimeoutError(origin, f"did not answer within {timeout_s:g} s") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        detail = f"cannot be reached: {type(error).__name__}"
        raise UpstreamError(origin, detail, kind="connect") from error
    except (ValueError, RecursionError) as error:
        raise UpstreamError(origin, "did not send JSON") from error
    return document


MAX_BYTES = 16 * 1024 * 1024
"""Maximum size of an answer of a SPARQL endpoint, in bytes."""


def ask_endpoint(url: str, query: str, *, timeout_s: float) -> Mapping[str, object]:
    """Send the SPARQL *query* to the endpoint *url*; return the results as JSON.

    Raises:
        ConfigError: If the endpoint is not allowed, is too slow, or does not return SPARQL results.
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
    raise ConfigError(f"the endpoint {url!r} did not return SPARQL results")

"""Fetch a JSON document from a service that the host's own configuration, or a user, names.

Ask a SPARQL endpoint that the user names, through the guard of private addresses.
"""

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
    # A packed document could be larger than its limit.
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
    """Return the JSON document at *url*. Redirects are not followed.

    Args:
        url: Needs TLS, except on this machine.
        configured: The address that the host configured, and that led to *url*. Its host may be
            private, or this machine; no other may. Empty if a user named *url*: its host may be
            this machine, and no private one.
        max_bytes: A larger document is refused.
        timeout_s: A slower answer is given up.
        form: Is sent, if it is not None.
        client: The id and the secret of the client that asks, for the header (RFC 6749, 2.3.1).

    Raises:
        ConfigError: The address may not be asked.
        UpstreamError: There is no answer, or another one than JSON.
    """
    parts, private = httpx2.URL(url), (httpx2.URL(configured).host,)
    shown, body = f"{parts.scheme}://{parts.netloc.decode()}", b""
    if parts.scheme != "https" and not is_local(url):
        raise ConfigError(f"{shown!r} may not be asked without TLS: use https")
    auth = httpx2.BasicAuth(*(quote(text, safe="") for text in client)) if client else None
    method = "GET" if form is None else "POST"
    transport = GuardedTransport(private, local=is_local(configured or url))
    try:
        with quiet_libraries(shown):
            async with (
                asyncio.timeout(timeout_s),
                httpx2.AsyncClient(transport=transport, timeout=timeout_s) as http,
                http.stream(method, url, headers=_HEADERS, data=form, auth=auth) as response,
            ):
                if not response.is_success:
                    raise UpstreamError(shown, f"answered {response.status_code}")
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > max_bytes:
                        raise UpstreamError(shown, f"sent more than {max_bytes} bytes")
        document: object = json.loads(body)
    except TimeoutError as error:
        raise UpstreamTimeoutError(shown, f"did not answer within {timeout_s:g} s") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        detail = f"cannot be reached: {type(error).__name__}"
        raise UpstreamError(shown, detail, kind="connect") from error
    except (ValueError, RecursionError) as error:
        raise UpstreamError(shown, "sent no JSON") from error
    return document


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

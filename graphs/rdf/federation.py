"""Asking another SPARQL endpoint over HTTP: one that the host has named, and no other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from graphs.errors import QueryError

_MAX_BYTES = 16 * 1024 * 1024


class _NoRedirect(HTTPRedirectHandler):
    """A redirect may lead off the allow-list: it is an error."""

    def redirect_request(
        self,
        req: Request,  # noqa: ARG002
        fp: IO[bytes],  # noqa: ARG002
        code: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        headers: HTTPMessage,  # noqa: ARG002
        newurl: str,  # noqa: ARG002
    ) -> None:
        return None


def post(endpoint: str, query: str, *, timeout_s: float) -> Mapping[str, object]:
    """Send *query* to *endpoint* and give its SPARQL JSON results.

    Raises:
        QueryError: The endpoint is no HTTP address, does not answer in time, redirects, or
            answers something else.
    """
    if urlsplit(endpoint).scheme not in {"http", "https"}:
        raise QueryError(f"the endpoint {endpoint!r} is no HTTP address")
    request = Request(  # noqa: S310  (the scheme was just checked)
        endpoint,
        data=urlencode({"query": query}).encode(),
        headers={"Accept": "application/sparql-results+json"},
    )
    try:
        with build_opener(_NoRedirect()).open(request, timeout=timeout_s) as response:
            text = response.read(_MAX_BYTES + 1)
    except (URLError, HTTPException, OSError) as error:
        raise QueryError(f"the endpoint {endpoint!r} does not answer: {error}") from error
    if len(text) > _MAX_BYTES:
        raise QueryError(f"the endpoint {endpoint!r} answers more than 16 MB: ask for less")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise QueryError(f"the endpoint {endpoint!r} answers no JSON") from error
    if not isinstance(found, dict):
        raise QueryError(f"the endpoint {endpoint!r} answers no SPARQL results")
    return found

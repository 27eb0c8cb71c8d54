"""SPARQL endpoints named by a user, against a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from gateway.errors import ConfigError
from gateway.mcp.json_fetch import ask_endpoint
from gateway.testing.endpoint import Loopback

QUERY = "SELECT ?x { ?x ?y ?z }"
RESULTS = {"head": {"vars": ["x"]}, "results": {"bindings": []}}


async def _answer(request: Request) -> Response:
    form = await request.form()
    return JSONResponse(RESULTS if form["query"] == QUERY else {"results": 5})


async def _lead_away(_request: Request) -> Response:
    return RedirectResponse("/sparql", status_code=307)


async def _talk(_request: Request) -> Response:
    return Response("hello")


@pytest.fixture
def endpoint() -> Iterator[str]:
    """Base URL of a server with several SPARQL endpoints."""
    handlers = {"/sparql": _answer, "/away": _lead_away, "/talk": _talk}
    routes = [Route(path, handler, methods=["POST"]) for path, handler in handlers.items()]
    server = Loopback(Starlette(routes=routes))
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.close()


def test_query_to_a_sparql_endpoint_returns_its_results(endpoint: str) -> None:
    assert RESULTS == ask_endpoint(f"{endpoint}/sparql", QUERY, timeout_s=10)


@pytest.mark.parametrize(
    ("path", "query", "reason"),
    [
        ("/away", QUERY, "answered 307"),
        ("/gone", QUERY, "answered 404"),
        ("/talk", QUERY, "did not send JSON"),
        ("/sparql", "ASK { }", "did not return SPARQL results"),
    ],
)
def test_query_raises_an_error_if_the_answer_is_not_sparql_results(
    endpoint: str, path: str, query: str, reason: str
) -> None:
    """Redirects are refused, because the user did not name their targets."""
    with pytest.raises(ConfigError, match=reason):
        ask_endpoint(endpoint + path, query, timeout_s=10)


@pytest.mark.parametrize("url", ["https://10.0.0.1/sparql", "http://example.org/sparql"])
def test_sparql_endpoints_in_private_networks_or_without_tls_are_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        ask_endpoint(url, QUERY, timeout_s=10)

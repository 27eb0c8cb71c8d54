"""SPARQL endpoints that a user names, over a real server."""

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
    """The address of a server with endpoints of all kinds."""
    handlers = {"/sparql": _answer, "/away": _lead_away, "/talk": _talk}
    routes = [Route(path, handler, methods=["POST"]) for path, handler in handlers.items()]
    server = Loopback(Starlette(routes=routes))
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.close()


def test_an_endpoint_answers_a_query(endpoint: str) -> None:
    """By POST, as SPARQL results in JSON."""
    assert RESULTS == ask_endpoint(f"{endpoint}/sparql", QUERY, timeout_s=10)


@pytest.mark.parametrize(
    ("path", "query", "reason"),
    [
        ("/away", QUERY, "answered 307"),
        ("/gone", QUERY, "answered 404"),
        ("/talk", QUERY, "sent no JSON"),
        ("/sparql", "ASK { }", "answers no SPARQL results"),
    ],
)
def test_what_is_no_answer_is_an_error(endpoint: str, path: str, query: str, reason: str) -> None:
    """A redirect may lead to an address that nobody named."""
    with pytest.raises(ConfigError, match=reason):
        ask_endpoint(endpoint + path, query, timeout_s=10)


@pytest.mark.parametrize("url", ["https://10.0.0.1/sparql", "http://example.org/sparql"])
def test_the_guard_of_private_addresses_stands_before_it(url: str) -> None:
    """Neither the host's own network nor plain text over another one."""
    with pytest.raises(ConfigError):
        ask_endpoint(url, QUERY, timeout_s=10)

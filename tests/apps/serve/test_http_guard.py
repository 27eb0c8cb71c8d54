"""The guard of the HTTP server, with all routes, methods, tokens, hosts and origins."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from gateway.gateway import Gateway
from gateway.serve.api.app import api_routes
from gateway.serve.auth import BearerToken
from gateway.serve.guard import Guard
from gateway.serve.http import http_app
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from gateway.types import ANYONE
from tests.conftest import OpenGateway

OPERATOR = "s3cret-of-the-operator"
TENANT = "s3cret-of-a-tenant"
PORT = 8930
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
UNKNOWN = ("/", "/api", "/nothing", "/mcp/", "/api/nothing", "/api/health/", "/%2e/mcp")
WRONG = ("", "Bearer", "Bearer wrong", f"Basic {OPERATOR}", OPERATOR, f"Bearer {OPERATOR}x")
LIVENESS = frozenset({("GET", "/api/health"), ("HEAD", "/api/health")})


TOKENS = (BearerToken.from_secret("tenant", TENANT, ANYONE),)
COMBINATIONS = [
    (
        HttpOptions(host=host, hosts=("gw.example",), token=OPERATOR, tokens=tokens),
        with_api,
        with_metrics,
    )
    for host, tokens, with_api, with_metrics in itertools.product(
        ("127.0.0.1", "0.0.0.0", "::"), ((), TOKENS), (True, False), (True, False)
    )
]
"""Server configurations: options of the server, with or without API and metrics."""


def build_app(
    gateway: Gateway, options: HttpOptions, *, with_api: bool = True, with_metrics: bool = True
) -> Guard:
    """Return the application that `gateway serve` would serve, with an additional route."""

    async def answer(_request: object) -> PlainTextResponse:
        return PlainTextResponse("")

    routes = [Route("/more", answer), *(api_routes(gateway, options) if with_api else [])]
    metrics = PlainTextResponse("# EOF") if with_metrics else None
    return http_app(mcp_server(gateway), options, routes=routes, metrics=metrics)


@asynccontextmanager
async def client_of(app: Guard) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client of *app* while it runs."""
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.app.router.lifespan_context(app.app),
        httpx2.AsyncClient(transport=transport, base_url=f"http://gw.example:{PORT}") as client,
    ):
        yield client


def all_requests(app: Guard) -> Iterator[tuple[str, str]]:
    """Yield each method with each path of the routing table, and with some unknown paths."""
    paths = [str(getattr(route, "path", "")) for route in app.app.routes]
    assert "/mcp" in paths
    for path in (*paths, *UNKNOWN, "/api/health"):
        yield from ((method, path.replace("{id:path}", "tool:a/b")) for method in METHODS)


@pytest.mark.parametrize(("options", "with_api", "with_metrics"), COMBINATIONS)
async def test_every_route_except_liveness_requires_a_credential(
    open_gateway: OpenGateway, options: HttpOptions, *, with_api: bool, with_metrics: bool
) -> None:
    app = build_app(open_gateway(), options, with_api=with_api, with_metrics=with_metrics)
    answered = set[tuple[str, str]]()
    async with client_of(app) as client:
        for method, path in all_requests(app):
            for credential in WRONG:
                headers = {"Authorization": credential} if credential else {}
                answer = await client.request(method, path, headers=headers)
                if answer.status_code != 401:
                    answered.add((method, path))
                else:
                    assert answer.headers["www-authenticate"].startswith("Bearer ")

    assert set(LIVENESS) == answered


@pytest.mark.parametrize(("options", "with_api", "with_metrics"), COMBINATIONS)
async def test_valid_token_is_accepted_by_every_route(
    open_gateway: OpenGateway, options: HttpOptions, *, with_api: bool, with_metrics: bool
) -> None:
    app = build_app(open_gateway(), options, with_api=with_api, with_metrics=with_metrics)
    headers = {"Authorization": f"Bearer {OPERATOR}"}
    async with client_of(app) as client:
        answers = [
            (method, path, (await client.request(method, path, headers=headers)).status_code)
            for method, path in all_requests(app)
        ]

    assert [] == [answer for answer in answers if answer[2] in {401, 403, 421}]
    assert with_metrics == (("GET", "/metrics", 200) in answers)


async def test_token_without_rights_is_refused_where_rights_are_needed(
    open_gateway: OpenGateway,
) -> None:
    app = build_app(open_gateway(), HttpOptions(tokens=TOKENS, hosts=("gw.example",)))
    headers = {"Authorization": f"Bearer {TENANT}"}
    async with client_of(app) as client:
        answers = [
            (method, path, (await client.request(method, path, headers=headers)).status_code)
            for method, path in all_requests(app)
        ]

    assert [] == [answer for answer in answers if answer[2] == 401]
    assert {
        ("GET", "/metrics"),
        ("HEAD", "/metrics"),
        ("GET", "/api/audit"),
        ("HEAD", "/api/audit"),
        ("POST", "/api/entities"),
        ("PUT", "/api/entities/tool:a/b"),
        ("PATCH", "/api/entities/tool:a/b"),
        ("DELETE", "/api/entities/tool:a/b"),
        ("POST", "/api/index/rebuild"),
    } == {(method, path) for method, path, status in answers if status == 403}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:18934.evil.example", "localhost:evil.example", "127.0.0.1:", "localhost:x",
        "[::1]:8930.evil.example", "127.0.0.1.evil.example", "evil.example", "localhost.:1",
        "127.0.0.1@evil.example", "evil.example#localhost", "localhost:1:2", "[::1", "",
        "localhost:\xb2", "gw.example:9000", "listed.example:8",
    ],
)  # fmt: skip
async def test_host_name_that_only_starts_like_an_own_name_is_refused(
    open_gateway: OpenGateway, host: str
) -> None:
    """The guard parses the header into a name and a numeric port."""
    app = build_app(open_gateway(), HttpOptions(hosts=("gw.example:8930", "listed.example:80")))
    async with client_of(app) as client:
        for path in ("/mcp", "/metrics", "/api/health", "/more", "/nothing"):
            assert (
                421
                == (await client.get(path, headers={b"Host": host.encode("latin-1")})).status_code
            )


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000", "http://127.0.0.1:1", "http://localhost", "https://localhost:8930",
        "http://localhost:8930.evil.example", "http://localhost:evil.example", "null", "",
        "http://gw.example:8930", "https://app.example.evil", "https://app.example:444", "file://",
    ],
)  # fmt: skip
async def test_origins_with_other_ports_or_host_names_are_refused(
    open_gateway: OpenGateway, origin: str
) -> None:
    """Other programs may serve pages on other ports of this machine."""
    options = HttpOptions(hosts=("gw.example",), origins=("https://app.example",))
    app = build_app(open_gateway(), options)
    async with client_of(app) as client:
        for path in ("/mcp", "/metrics", "/api/health", "/more", "/nothing"):
            assert 403 == (await client.get(path, headers={"Origin": origin})).status_code


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8930", "http://localhost:8930"),
        ("127.0.0.1:8930", "http://[::1]:8930"),
        ("LocalHost", "https://APP.example"),
        ("[::1]:8930", "http://localhost:5173"),
        ("gw.example:443", "http://127.0.0.1:8930"),
    ],
)
async def test_own_and_listed_origins_are_accepted(
    open_gateway: OpenGateway, host: str, origin: str
) -> None:
    """The port of the Host header may differ, because it may be mapped to the server's port."""
    listed = ("https://app.example", "http://localhost:5173")
    app = build_app(open_gateway(), HttpOptions(hosts=("gw.example",), origins=listed))
    async with client_of(app) as client:
        for path in ("/metrics", "/api/health", "/more"):
            answer = await client.get(path, headers={"Host": host, "Origin": origin})
            assert 200 == answer.status_code

"""The MCP server over HTTP, with clients of both protocol eras."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.serve.auth import BearerToken
from gateway.serve.http import serve_http
from gateway.serve.http_options import HttpOptions, is_loopback
from gateway.serve.mcp_server import mcp_server
from gateway.types import ANYONE, Caller
from tests.apps.serve.upstream import ERAS
from tests.conftest import OpenGateway
from tests.fakes import tool
from tests.metrics import Watch, documented, recorded

TOKEN = "s3cret-of-the-test"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
"""First message of a session, in protocol versions before 2026-07-28."""


@asynccontextmanager
async def served(
    gateway: Gateway, options: HttpOptions, routes: Sequence[Route] = (), **more: Any
) -> AsyncIterator[str]:
    """Serve *gateway* with a metrics page, and yield the address of ``/mcp``."""
    where: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = serve_http(
        mcp_server(gateway, **more),
        options,
        routes=routes,
        metrics=PlainTextResponse("# EOF"),
        telemetry=gateway.telemetry,
        on_listening=where.set_result,
    )
    task = asyncio.create_task(serving)
    try:
        yield await where
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.mark.parametrize("mode", ERAS)
async def test_clients_of_both_eras_search_and_call(open_gateway: OpenGateway, mode: str) -> None:
    gateway = open_gateway((tool("get_weather", "Tell the weather."),))
    async with served(gateway, HttpOptions(port=0)) as url, Client(url, mode=mode) as client:
        answer = await client.call_tool("search_tools", {"query": "weather"})
        version = client.protocol_version

    assert "get_weather" == answer.structured_content["tools"][0]["name"]
    assert (version >= "2026") == (mode == "auto")


async def test_http_servers_run_one_after_another_in_one_event_loop(
    open_gateway: OpenGateway,
) -> None:
    """A cancelled server must not leave a listener whose file descriptor the next one reuses."""
    gateway = open_gateway((tool("get_weather", "Tell the weather."),))
    tool_names: list[str] = []
    async with asyncio.timeout(30):
        for mode in ERAS:
            async with (
                served(gateway, HttpOptions(port=0)) as url,
                Client(url, mode=mode) as client,
            ):
                tool_names += [item.name for item in (await client.list_tools()).tools]

    assert ["search_tools", "call_tool"] * len(ERAS) == tool_names


async def answer(
    gateway: Gateway, options: HttpOptions, headers: dict[str, str]
) -> httpx2.Response:
    """Return the response of a served gateway to a request with *headers*."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with served(gateway, options) as url, httpx2.AsyncClient(trust_env=False) as client:
        return await client.post(url, json=ping, headers=headers)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:8930"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_foreign_hosts_and_origins_are_refused(
    open_gateway: OpenGateway, headers: dict[str, str], status: int
) -> None:
    """The check prevents DNS rebinding, in which an attacker's name resolves to this machine."""
    assert status == (await answer(open_gateway(), HttpOptions(port=0), headers)).status_code


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN])
async def test_request_without_the_token_is_refused(
    open_gateway: OpenGateway, authorization: str
) -> None:
    """RFC 6750, section 3, requires the status 401 and a challenge."""
    options = HttpOptions(port=0, token=TOKEN)
    response = await answer(open_gateway(), options, {"Authorization": authorization})

    assert 401 == response.status_code
    assert response.headers["www-authenticate"].startswith("Bearer ")


async def test_request_with_the_token_is_answered(open_gateway: OpenGateway) -> None:
    gateway = open_gateway((tool("get_weather", "Tell the weather."),))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        served(gateway, HttpOptions(port=0, token=TOKEN)) as url,
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        names = [item.name for item in (await client.list_tools()).tools]

    assert ["search_tools", "call_tool"] == names


@pytest.mark.parametrize(
    ("authorization", "admitted"), [("", False), ("Bearer wrong", False), (f"Bearer {TOKEN}", True)]
)
async def test_token_file_protects_mcp_and_the_api(
    open_gateway: OpenGateway, authorization: str, *, admitted: bool
) -> None:
    options = HttpOptions(port=0, tokens=(BearerToken.from_secret("ci", TOKEN, ANYONE),))
    response = await answer(open_gateway(), options, {"Authorization": authorization})

    assert admitted == (response.status_code != 401)
    assert admitted == ("www-authenticate" not in response.headers)


async def test_session_belongs_to_the_token_that_started_it(open_gateway: OpenGateway) -> None:
    other = "s3cret-of-the-other"
    options = HttpOptions(
        port=0, token=TOKEN, tokens=(BearerToken.from_secret("other", other, ANYONE),)
    )
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream"}
    async with served(open_gateway(), options) as url, httpx2.AsyncClient(trust_env=False) as http:
        own_headers = accept | {"Authorization": f"Bearer {TOKEN}"}
        began = await http.post(url, json=HELLO, headers=own_headers)
        session = {"Mcp-Session-Id": began.headers["mcp-session-id"]}
        statuses = [
            (await http.post(url, json=ping, headers=accept | session | bearer)).status_code
            for bearer in (own_headers, {"Authorization": f"Bearer {other}"})
        ]

    assert [200, 404] == statuses


def test_public_address_requires_a_token() -> None:
    with pytest.raises(ConfigError, match="token"):
        HttpOptions(host="0.0.0.0")
    tokens = (BearerToken.from_secret("ci", TOKEN, ANYONE),)
    assert HttpOptions(host="0.0.0.0", token=TOKEN).needs_token
    assert HttpOptions(host="0.0.0.0", tokens=tokens).needs_token


def test_error_messages_do_not_show_the_token() -> None:
    with pytest.raises(ConfigError) as caught:
        HttpOptions(token=TOKEN.encode())  # type: ignore[arg-type]  # (the point)

    assert "HttpOptions: token" in str(caught.value)
    assert TOKEN not in str(caught.value)
    assert TOKEN not in repr(HttpOptions(token=TOKEN))


def test_loopback_addresses_are_recognized() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.9.1", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.0.1", "localhost.evil", "::")))


async def test_server_reports_a_port_that_is_already_used(open_gateway: OpenGateway) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        options = HttpOptions(port=listener.getsockname()[1])

        with pytest.raises(ConfigError, match=r"choose another port$"):
            await serve_http(mcp_server(open_gateway()), options)


async def test_listed_hosts_and_origins_are_accepted(open_gateway: OpenGateway) -> None:
    options = HttpOptions(port=0, hosts=("tools.example",), origins=("https://app.example",))
    headers = {"Host": "tools.example", "Origin": "https://app.example"}

    assert (await answer(open_gateway(), options, headers)).status_code not in {401, 403, 421}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
        ({"Authorization": "Bearer of-prometheus"}, 200),
        ({"Authorization": "Bearer of-a-tenant"}, 403),
        ({}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}, 403),
    ],
)
async def test_metrics_page_requires_a_token_with_the_metrics_scope(
    open_gateway: OpenGateway, headers: dict[str, str], status: int
) -> None:
    """Metrics name tools and servers of all tenants."""
    tenant = BearerToken.from_secret("tenant", "of-a-tenant", Caller(tenant="acme"))
    reader = Caller(scopes=frozenset({"metrics:read"}))
    prometheus = BearerToken.from_secret("prometheus", "of-prometheus", reader)
    options = HttpOptions(port=0, token=TOKEN, tokens=(tenant, prometheus))
    async with (
        served(open_gateway(), options) as url,
        httpx2.AsyncClient(trust_env=False) as client,
    ):
        page = await client.get(url.replace("/mcp", "/metrics"), headers=headers)

    assert status == page.status_code


async def fail(_request: Request) -> PlainTextResponse:
    """Raise an error."""
    raise LookupError


async def be_busy(_request: Request) -> PlainTextResponse:
    """Answer 503."""
    return PlainTextResponse("later", 503)


FAILING = (Route("/fault", fail), Route("/busy", be_busy))


async def test_requests_are_measured_by_method_route_and_status(open_gateway: OpenGateway) -> None:
    """The labels follow the HTTP conventions, and have few values whatever clients request."""
    watch = Watch()
    gateway = open_gateway(meter_provider=watch.meter)
    async with (
        served(gateway, HttpOptions(port=0), FAILING) as url,
        httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), trust_env=False) as client,
    ):
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        await client.post("/mcp", json=ping, headers={"Host": "evil.example"})
        await client.get("/metrics")
        await client.get("/some/secret")
        await client.request("BREW", "/metrics")
        await client.get("/busy")
        await client.get("/fault")

    points = [
        dict(point.attributes or {})
        for metric, point in recorded(watch.reader)
        if metric.name == "http.server.request.duration"
    ]
    names = ("http.request.method", "http.route", "http.response.status_code", "error.type")
    assert {
        ("POST", "/mcp", 421, None),
        ("GET", "/metrics", 200, None),
        ("GET", None, 404, None),
        ("_OTHER", "/metrics", 405, None),
        ("GET", None, 503, "503"),
        ("GET", None, 500, "LookupError"),
    } == {tuple(point.get(name) for name in names) for point in points}
    assert {name for point in points for name in point} <= documented()[
        "http.server.request.duration"
    ].attributes

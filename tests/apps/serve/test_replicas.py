"""Two replicas behind a load balancer that sends each request to the next one."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.serve.http import http_app
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from tests.apps.serve.test_http import HELLO
from tests.conftest import OpenGateway
from tests.fakes import tool

ACCEPT = {"Accept": "application/json, text/event-stream"}


class RoundRobin:
    """Load balancer that sends each request to the next replica."""

    def __init__(self, replicas: Sequence[ASGIApp]) -> None:
        self._next = itertools.cycle(enumerate(replicas))
        self.used: list[int] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request."""
        number, replica = next(self._next)
        self.used.append(number)
        await replica(scope, receive, send)


@asynccontextmanager
async def balanced_replicas(
    open_gateway: OpenGateway,
) -> AsyncIterator[tuple[RoundRobin, httpx2.AsyncClient]]:
    """Yield a load balancer for two replicas with the same catalog, and its client."""
    replicas = []
    async with AsyncExitStack() as stack:
        for _ in range(2):
            gateway = open_gateway((tool("get_weather", "Tell the weather."),))
            app = http_app(mcp_server(gateway), HttpOptions())
            await stack.enter_async_context(app.app.router.lifespan_context(app.app))
            replicas.append(app)
        balancer = RoundRobin(replicas)
        transport = httpx2.ASGITransport(app=balancer)
        yield balancer, await stack.enter_async_context(httpx2.AsyncClient(transport=transport))


async def test_stateless_client_may_reach_any_replica(open_gateway: OpenGateway) -> None:
    url = "http://127.0.0.1:8930/mcp"
    async with (
        balanced_replicas(open_gateway) as (balancer, http),
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        names = [tool.name for tool in (await client.list_tools()).tools]
        answer = [
            await client.call_tool("search_tools", {"query": f"weather {number}"})
            for number in range(4)
        ]

    assert ["search_tools", "call_tool"] == names
    assert ["get_weather"] * 4 == [
        (tool.structured_content or {})["tools"][0]["name"] for tool in answer
    ]
    assert {0, 1} == {*balancer.used}


async def test_mcp_session_exists_in_only_one_replica(open_gateway: OpenGateway) -> None:
    """Another replica answers 404, and the protocol then requires a new session."""
    async with balanced_replicas(open_gateway) as (_, http):
        began = await http.post("http://127.0.0.1:8930/mcp", json=HELLO, headers=ACCEPT)
        session = {"Mcp-Session-Id": began.headers["mcp-session-id"]}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        statuses = [
            (await http.post(str(began.url), json=ping, headers=ACCEPT | session)).status_code
            for _ in range(2)
        ]

    assert [404, 200] == statuses

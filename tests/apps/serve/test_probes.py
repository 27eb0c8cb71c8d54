"""Probes of an orchestrator: they report states, and no other information."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from gateway.gateway import Gateway
from gateway.serve.drain import probe_routes
from gateway.serve.http import http_app
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from gateway.testing import HashingEmbedder
from tests.conftest import OpenGateway
from tests.fakes import BrokenStore, tool

FOREIGN = {"Host": "10.1.2.3:8930", "Origin": "https://evil.example"}
"""Headers of a probe, which uses the address of its container."""


@asynccontextmanager
async def probe_client(gateway: Gateway) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client without a token, for a server that requires one."""
    options = HttpOptions(host="0.0.0.0", token="s3cret-of-the-test")
    app = http_app(mcp_server(gateway), options, routes=probe_routes(gateway))
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://gateway", headers=FOREIGN
    ) as http:
        yield http


async def test_server_is_ready_after_the_first_index_build(open_gateway: OpenGateway) -> None:
    gateway = open_gateway((tool("get_weather", "Tell the weather."),))
    async with probe_client(gateway) as http:
        alive, first = await http.get("/livez"), await http.get("/readyz")
        await gateway.report()
        later, head = await http.get("/readyz"), await http.head("/readyz")
        other = await http.post("/readyz")

    assert (200, {"status": "ok"}) == (alive.status_code, alive.json())
    assert (503, "starting") == (first.status_code, first.json()["status"])
    whole = {"status": "ready", "failed_servers": 0, "degraded": False}
    assert (200, whole) == (later.status_code, later.json())
    assert (200, b"") == (head.status_code, head.content)
    assert 421 == other.status_code


async def test_failed_server_makes_readiness_partial(open_gateway: OpenGateway) -> None:
    """The other servers still work. Without a token, the names of servers are not shown."""
    gateway = open_gateway((tool("get_weather", "Tell the weather."),))
    gateway.add_server("secret", command="no-such-program")
    async with probe_client(gateway) as http:
        await gateway.report()
        answer = await http.get("/readyz")

    partial = {"status": "partial", "failed_servers": 1, "degraded": False}
    assert (200, partial) == (answer.status_code, answer.json())


async def test_failed_store_leaves_the_replica_ready(open_gateway: OpenGateway) -> None:
    """Searches still work, and the other replicas use the same store."""
    gateway = open_gateway(
        (tool("get_weather", "Tell the weather."),),
        strategy="auto",
        embedder=HashingEmbedder(),
        vector_store=BrokenStore(),
    )
    async with probe_client(gateway) as http:
        await gateway.report()
        answer = await http.get("/readyz")

    assert (200, "ready", True) == (
        answer.status_code,
        answer.json()["status"],
        answer.json()["degraded"],
    )

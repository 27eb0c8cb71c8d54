"""The access token of a user reaches only the token endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import jwt
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from gateway.mcp import HttpServer, TokenExchange
from gateway.runtime.background_loop import Bridge
from gateway.serve.auth import BearerToken
from gateway.types import Caller
from tests.apps.serve.identity.conftest import Provider
from tests.apps.serve.test_http import served
from tests.conftest import OpenGateway
from tests.core.mcp.conftest import placed
from tests.core.mcp.conftest import served as served_app
from tests.core.mcp.servers.delegated import Delegation

STATIC = "s3cret-of-a-token-file"
SERVICE = {"Authorization": "Bearer service-SECRET"}


def subject(token: str) -> str:
    """Return the user of an access token. A real provider would verify it."""
    return str(jwt.decode(token, options={"verify_signature": False})["sub"])


@asynccontextmanager
async def client_of(url: str, token: str, mode: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), cache=None, mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"], ids=["2026-07-28", "2025-11-25"])
async def test_token_of_each_user_is_exchanged_for_its_own_calls(
    open_gateway: OpenGateway, provider: Provider, tmp_path: Path, mode: str
) -> None:
    """The test calls with and without sessions. Tokens of the token file are never exchanged."""
    bridge, delegation, gateway = Bridge("upstream"), Delegation(subject=subject), open_gateway()
    robot = BearerToken.from_secret("robot", STATIC, Caller(user="robot"))
    options = replace(provider.options(), port=0, tokens=(robot,))
    async with (
        placed(bridge, delegation.endpoint) as endpoint,
        served_app(bridge, delegation.guarded(tmp_path / "record")) as port,
    ):
        exchange = TokenExchange(token_url=f"http://127.0.0.1:{endpoint}/token")
        target = HttpServer(f"http://127.0.0.1:{port}/mcp", SERVICE, exchange)
        gateway.add_server("srv", server=target)
        async with (
            served(gateway, options, expose="all") as url,
            client_of(url, provider.token(sub="ada"), mode) as ada,
            client_of(url, provider.token(sub="eve"), mode) as eve,
            client_of(url, STATIC, mode) as static,
        ):
            answers = await asyncio.gather(
                *(
                    client.call_tool("echo", {"text": f"{user}/{number}"})
                    for number in range(3)
                    for user, client in (("ada", ada), ("eve", eve))
                )
            )
            refused = await static.call_tool("echo", {"text": "robot/0"})
        await gateway.aclose()
    await asyncio.to_thread(bridge.close)

    assert not any(answer.is_error for answer in answers)
    assert "has no token of the identity provider" in str(refused.content)
    expected = sorted((f"{user}/{number}", user) for user in ("ada", "eve") for number in range(3))
    assert expected == sorted(delegation.calls)
    assert {"ada", "eve"} == {subject(form["subject_token"]) for form in delegation.forms}

"""Responses of the server to requests with access tokens of identity providers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from gateway.serve.api.app import api_routes
from gateway.serve.auth import BearerToken
from gateway.serve.authenticator import Authenticator
from gateway.serve.console import Sessions
from gateway.serve.guard import Guard
from gateway.serve.http import http_app
from gateway.serve.http_options import HttpOptions
from gateway.serve.identity import LEEWAY_S
from gateway.serve.mcp_server import mcp_server
from gateway.types import Caller
from tests.apps.serve.conftest import RESOURCE
from tests.apps.serve.identity.conftest import Provider
from tests.conftest import OpenGateway

METADATA = "/.well-known/oauth-protected-resource"
URL = RESOURCE.removesuffix("/mcp")
STATIC = "s3cret-of-a-token-file"


@asynccontextmanager
async def client_of(
    open_gateway: OpenGateway, options: HttpOptions, authenticator: Authenticator | None = None
) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield an HTTP client of a server with MCP, the API, metrics and the console."""
    gateway = open_gateway()
    app = http_app(
        mcp_server(gateway),
        options,
        routes=api_routes(gateway, options),
        metrics=PlainTextResponse("# EOF"),
        authenticator=authenticator,
    )
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.app.router.lifespan_context(app.app),
        httpx2.AsyncClient(transport=transport, base_url=URL) as client,
    ):
        yield client


async def test_resource_metadata_needs_no_token(
    open_gateway: OpenGateway, provider: Provider
) -> None:
    """Clients request the metadata at two addresses (RFC 9728)."""
    options = provider.options(scopes={"bills.read": ["billing"]}, required_scopes=["use"])
    async with client_of(open_gateway, options) as client:
        responses = [await client.get(path) for path in (METADATA, f"{METADATA}/mcp")]
        others = [await client.get(f"{METADATA}/other"), await client.post(METADATA)]
        foreign = await client.get(METADATA, headers={"Host": "evil.example"})

    assert [200, 200] == [response.status_code for response in responses]
    assert (
        {
            "resource": RESOURCE,
            "authorization_servers": [provider.url],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["bills.read", "use"],
        }
        == responses[0].json()
        == responses[1].json()
    )
    assert [401, 401] == [response.status_code for response in others]
    assert 421 == foreign.status_code


async def test_refusals_contain_the_address_of_the_resource_metadata(
    open_gateway: OpenGateway, provider: Provider
) -> None:
    options = provider.options(scopes={"gw.write": ["catalog:write"]}, required_scopes=["use"])
    async with client_of(open_gateway, options) as client:
        missing = await client.post("/mcp", json={})
        token = provider.token(scope="use")
        bearer = {"Authorization": f"Bearer {token}"}
        lacking = await client.put("/api/entities/skill:a/b", json={}, headers=bearer)
        metrics = await client.get("/metrics", headers=bearer)

    end = f'resource_metadata="{URL}{METADATA}/mcp"'
    assert [401, 403, 403] == [response.status_code for response in (missing, lacking, metrics)]
    assert [
        f'Bearer realm="gateway", scope="use", {end}',
        f'Bearer realm="gateway", error="insufficient_scope", scope="gw.write", {end}',
        f'Bearer realm="gateway", error="insufficient_scope", {end}',
    ] == [response.headers["www-authenticate"] for response in (missing, lacking, metrics)]
    assert token not in lacking.text


@pytest.mark.parametrize("way", ["query", "query beside the header", "twice", "twice the same"])
async def test_token_is_accepted_only_in_one_header(
    open_gateway: OpenGateway, provider: Provider, way: str
) -> None:
    """Logs store addresses.

    With two headers, a proxy may have checked another token than the gateway.
    """
    good, bad = (f"Bearer {token}" for token in (provider.token(), "other"))
    headers = {
        "query": [],
        "query beside the header": [("Authorization", good)],
        "twice": [("Authorization", good), ("Authorization", bad)],
        "twice the same": [("Authorization", good)] * 2,
    }[way]
    query = {"access_token": provider.token()} if way.startswith("query") else {}
    async with client_of(open_gateway, provider.options()) as client:
        answer = await client.get("/api/search/tags", params=query, headers=headers)

    assert (400, "token_misplaced") == (answer.status_code, answer.json()["code"])
    assert 'error="invalid_request"' in answer.headers["www-authenticate"]


async def test_accepted_tokens_can_be_replaced_while_serving(
    open_gateway: OpenGateway, provider: Provider
) -> None:
    file = BearerToken.from_secret("ci", STATIC, Caller(user="ci"))
    options = replace(provider.options(), tokens=(file,))
    authenticator = Authenticator(options)
    async with client_of(open_gateway, options, authenticator) as client:

        async def statuses() -> list[int]:
            tokens = (STATIC, provider.token())
            bearers = [{"Authorization": f"Bearer {token}"} for token in tokens]
            responses = [await client.get("/api/search/tags", headers=bearer) for bearer in bearers]
            return [bearer.status_code for bearer in responses]

        before = await statuses()
        authenticator.replace(replace(options, tokens=()))
        without_file = await statuses()
        authenticator.replace(replace(options, issuers=(), resource=""))
        without_provider = await statuses()

    assert [[200, 200], [401, 200], [200, 401]] == [before, without_file, without_provider]
    assert 1 == provider.fetches


class Expiring(Authenticator):
    """Authenticator whose tokens expire almost immediately."""

    async def authenticate(self, authorization: Sequence[str], query: str = "") -> BearerToken:
        bearer = await super().authenticate(authorization, query)
        return replace(bearer, expires_at=time.time() + 0.05)


async def test_stream_ends_when_its_token_expires(provider: Provider) -> None:
    """Calls that are running when the token expires are not interrupted."""
    released, sent = asyncio.Event(), list[str]()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"1", "more_body": True})
        await released.wait()
        sent.append(scope["method"])
        await send({"type": "http.response.body", "body": b"2"})

    app = Starlette(routes=[Mount("/", answer)])
    guard = Guard(app, provider.options(), authenticator=Expiring(provider.options()))
    bearer = {"Authorization": f"Bearer {provider.token()}"}
    transport = httpx2.ASGITransport(app=guard)
    async with httpx2.AsyncClient(transport=transport, base_url=URL, headers=bearer) as client:
        stream = await client.get("/mcp")
        listened = await client.post("/mcp", headers={"Mcp-Method": "subscriptions/listen"})
        call = asyncio.create_task(client.post("/mcp"))
        await asyncio.wait({call}, timeout=0.1)
        released.set()
        called = await call

    assert ["1", "1", "12"] == [stream.text, listened.text, called.text]
    assert ["POST"] == sent


async def test_console_session_ends_with_its_token(provider: Provider) -> None:
    """A session also ends when the accepted tokens change."""
    options = provider.options()
    authenticator = Authenticator(options)
    sessions = Sessions(options, authenticator)
    claims = provider.claims()
    first = await sessions.begin(provider.token())
    late = await sessions.begin(provider.token(exp=claims["iat"], sub="bob"))

    assert ("", f"{provider.url}#ada") == (sessions.launch_token, first.caller.user)
    assert claims["exp"] + LEEWAY_S >= first.bearer.expires_at > late.bearer.expires_at
    assert first is sessions.find_by_cookie(first.key)
    late.bearer = replace(late.bearer, expires_at=claims["iat"] - 1)
    assert None is sessions.find_by_cookie(late.key)
    authenticator.replace(provider.options(user_claim="email"))
    assert None is sessions.find_by_cookie(first.key)

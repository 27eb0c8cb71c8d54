"""The gateway with a real authorization server (oidc-provider)."""

from __future__ import annotations

import httpx2
from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from gateway.gateway import Gateway
from gateway.serve.api.app import api_routes
from gateway.serve.auth import BearerToken
from gateway.serve.authenticator import Authenticator
from gateway.serve.http_options import HttpOptions
from gateway.serve.identity import RETRY_S, Issuer
from gateway.types import Access, Caller
from tests.apps.serve.conftest import SECRET, StartProvider, free_resource
from tests.apps.serve.identity.test_provider_keys import Time
from tests.apps.serve.test_http import HELLO, served
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool

STATIC = "s3cret-of-a-token-file"
BILLING = Access(scopes=frozenset({"billing"}))
ACCEPT = {"Accept": "application/json, text/event-stream"}


class Memory:
    """Token storage for the SDK's client."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def options_for(resource: str, *issuers: str) -> HttpOptions:
    """Return options of a server that accepts *issuers*, and one token of a token file."""
    entries = [
        Issuer.model_validate(
            {
                "issuer": issuer,
                "scopes": {"billing.read": ["billing"]},
                "groups": {"platform": ["catalog:write"]},
            }
        )
        for issuer in issuers
    ]
    file = BearerToken.from_secret("ci", STATIC, Caller(user="ci"))
    port = int(resource.removesuffix("/mcp").rpartition(":")[2])
    return HttpOptions(port=port, tokens=(file,), issuers=tuple(entries), resource=resource)


def shop(open_gateway: OpenGateway) -> Gateway:
    """Return a gateway with a tool for everyone, and a tool that needs the scope *billing*."""
    gateway = open_gateway((tool("greet"),))
    gateway.add_source(ListSource("bank", [tool("pay", "Pay a bill.")]), access=BILLING)
    return gateway


async def test_client_discovers_the_provider_and_gets_a_token(
    open_gateway: OpenGateway, start_provider: StartProvider
) -> None:
    """Steps: 401, metadata of the resource, metadata of the provider, token for this resource."""
    resource, gateway = free_resource()[0], shop(open_gateway)
    with start_provider("k1") as provider:
        options = options_for(resource, provider.url)
        auth = ClientCredentialsOAuthProvider(
            resource, Memory(), "clerk", SECRET, scope="billing.read", issuer=provider.url
        )
        async with (
            served(gateway, options, api_routes(gateway, options), expose="all") as url,
            httpx2.AsyncClient(auth=auth, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            tools = [tool.name for tool in (await client.list_tools()).tools]
            called = await client.call_tool("pay", {})
            api = url.replace("/mcp", "/api/entities")
            put = await http.put(f"{api}/skill:catalog/fold", json={"description": "Folds."})
            await http.delete(f"{api}/skill:catalog/fold")
            for_others = await provider.token("clerk", resource="https://other.example/mcp")
            async with httpx2.AsyncClient(trust_env=False) as plain:
                wrong = await plain.get(api, headers={"Authorization": f"Bearer {for_others}"})
                file = await plain.get(api, headers={"Authorization": f"Bearer {STATIC}"})

    assert ["greet", "pay"] == tools
    assert not called.is_error
    assert [201, 401, 200] == [put.status_code, wrong.status_code, file.status_code]


async def test_gateway_follows_key_rotation_and_outage_of_a_real_provider(
    open_gateway: OpenGateway, start_provider: StartProvider
) -> None:
    time = Time()
    with start_provider("k1") as provider:
        options = options_for("http://127.0.0.1:8930/mcp", provider.url)
        authenticator = Authenticator(options, clock=time)
        first = await provider.token("clerk")
        await authenticator.authenticate([f"Bearer {first}"])
    with start_provider("k2", provider.url.rpartition(":")[2]) as provider:
        time.now += RETRY_S
        second = await provider.token("clerk")
        rotated = await authenticator.authenticate([f"Bearer {second}"])
    down = await authenticator.authenticate([f"Bearer {second}"])

    assert f"{provider.url}#clerk" == rotated.caller.user == down.caller.user


async def test_mcp_session_belongs_to_one_user_of_one_issuer(
    open_gateway: OpenGateway, start_provider: StartProvider
) -> None:
    """Another client, another issuer's user and a token of the token file get 404."""
    resource, gateway = free_resource()[0], shop(open_gateway)
    with start_provider("a") as first, start_provider("b") as second:
        options = options_for(resource, first.url, second.url)
        tokens = [
            await first.token("clerk", resource=resource),
            await first.token("clerk", resource=resource, scope="billing.read"),
            await first.token("guest", resource=resource),
            await second.token("clerk", resource=resource),
            STATIC,
        ]
        async with served(gateway, options) as url, httpx2.AsyncClient(trust_env=False) as http:
            began = await http.post(
                url, json=HELLO, headers=ACCEPT | {"Authorization": f"Bearer {tokens[0]}"}
            )
            assert began.is_success, began.text
            session = {"Mcp-Session-Id": began.headers["mcp-session-id"]}
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            headers = [
                ACCEPT | session | {"Authorization": f"Bearer {response}"} for response in tokens
            ]
            answers = [await http.post(url, json=ping, headers=response) for response in headers]

    assert [200, 200, 404, 404, 404] == [response.status_code for response in answers]

"""Separation of callers in the MCP server: lists, notifications and waiting calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import PromptsListChanged, ToolsListChanged

from gateway.gateway import Gateway
from gateway.options import UsageOptions
from gateway.serve.api.app import api_routes
from gateway.serve.auth import BearerToken
from gateway.serve.http_options import HttpOptions
from gateway.types import ANYONE, Access, Caller, Hints
from tests.apps.serve.test_http import served
from tests.conftest import PATIENT, OpenGateway
from tests.core.call.test_resources import Shop, thing
from tests.fakes import ListSource, tool

CLERK = Caller(user="ada", tenant="acme", scopes=frozenset({"billing"}))
SECRETS = {"clerk": "s3cret-of-the-clerk", "guest": "s3cret-of-the-guest"}
OPTIONS = HttpOptions(
    port=0,
    tokens=(
        BearerToken.from_secret("clerk", SECRETS["clerk"], CLERK),
        BearerToken.from_secret("guest", SECRETS["guest"], ANYONE),
    ),
)
PAID = Access(scopes=frozenset({"billing"}))


def bearer(who: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {SECRETS[who]}"}


@asynccontextmanager
async def client_of(url: str, who: str) -> AsyncIterator[Client]:
    """Yield an MCP client that sends the token of the user *who*."""
    async with (
        httpx2.AsyncClient(headers=bearer(who), trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), cache=None) as client,
    ):
        yield client


async def test_callers_are_notified_only_of_changes_that_they_can_see(
    open_gateway: OpenGateway,
) -> None:
    """Changes of a hidden tool cause no notification, so the first one is about a prompt."""
    gateway = open_gateway((tool("a"),))
    async with (
        served(gateway, OPTIONS, expose="all") as url,
        client_of(url, "clerk") as clerk,
        client_of(url, "guest") as guest,
    ):
        for client in (clerk, guest):
            await client.list_tools()
            await client.list_prompts()
        notifications: Any = {"tools_list_changed": True, "prompts_list_changed": True}
        async with (
            clerk.listen(**notifications) as few,
            guest.listen(**notifications) as all_others,
        ):
            gateway.add_source(ListSource("bank", [tool("pay")]), access=PAID)
            first = await anext(few)
            gateway.add_source(Shop("more", thing("prompt", "p")))
            heard = [first, await anext(few), await anext(all_others)]

    assert [ToolsListChanged(), PromptsListChanged(), PromptsListChanged()] == heard


async def call(
    url: str, who: str, name: str, arguments: dict[str, object], **more: object
) -> httpx2.Response:
    """Return the response to a tool call that the user *who* sends without a session."""
    meta = {
        "protocolVersion": "2026-07-28",
        "clientInfo": {"name": "test", "version": "1"},
        "clientCapabilities": {"elicitation": {"form": {}}},
    }
    params = {
        "name": name,
        "arguments": arguments,
        "_meta": {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()},
        **more,
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with httpx2.AsyncClient(trust_env=False) as http:
        return await http.post(url, json=body, headers=headers | bearer(who))


async def test_waiting_call_is_continued_only_by_its_caller(open_gateway: OpenGateway) -> None:
    """Other callers that send the call's state get the same error as for an unknown state."""
    gateway = open_gateway((tool("wipe", hints=Hints(destructive=True)),))
    wipe: dict[str, object] = {"name": "wipe"}
    async with served(gateway, OPTIONS) as url:
        first_answer = (await call(url, "clerk", "call_tool", wipe)).json()["result"]
        answers = {
            key: {"action": "accept", "content": {}} for key in first_answer["inputRequests"]
        }
        more = {"requestState": first_answer["requestState"], "inputResponses": answers}
        stolen, own_response = [
            await call(url, who, "call_tool", wipe, **more) for who in ("guest", "clerk")
        ]

    assert "does not belong to a waiting call" in stolen.text
    assert "called wipe" in own_response.text


async def test_request_headers_are_checked_only_against_visible_tools(
    open_gateway: OpenGateway,
) -> None:
    """The SDK compares headers with the tool's schema.

    For a hidden tool, its errors would reveal that the tool exists.
    """
    secret = replace(
        tool("pay"),
        input_schema={
            "type": "object",
            "properties": {"account": {"type": "string", "x-mcp-header": "Account"}},
        },
    )
    gateway = open_gateway((tool("a"),))
    gateway.add_source(ListSource("bank", [secret]), access=PAID)
    async with served(gateway, OPTIONS, expose="all") as url, client_of(url, "clerk") as clerk:
        listed = [item.name for item in (await clerk.list_tools()).tools]
        mine, others = [await call(url, who, "pay", {"account": "7"}) for who in SECRETS]

    assert ["a", "pay"] == listed
    assert 400 == mine.status_code
    assert 200 == others.status_code
    assert "unknown tool" in others.text


@pytest.mark.parametrize("who", SECRETS)
async def test_token_identifies_the_caller_in_mcp_and_the_api(
    open_gateway: OpenGateway, tmp_path: Path, who: str
) -> None:
    options = replace(
        PATIENT, catalog_store_path=tmp_path / "catalog.sqlite3", usage=UsageOptions(record=True)
    )
    gateway: Gateway = open_gateway(options=options)
    gateway.add_source(ListSource("bank", [tool("pay", "Pay a bill.")]), access=PAID)
    routes = api_routes(gateway, OPTIONS)
    async with (
        served(gateway, OPTIONS, routes, expose="all") as url,
        client_of(url, who) as client,
        httpx2.AsyncClient(headers=bearer(who), trust_env=False) as http,
    ):
        tools = [item.name for item in (await client.list_tools()).tools]
        called = await client.call_tool("pay", {})
        body = {"query": "pay a bill"}
        response = await http.post(url.replace("/mcp", "/api/search/semantic"), json=body)
        unknown = await http.get(
            url.replace("/mcp", "/api/search/tags"), headers={"Authorization": ""}
        )

    may = who == "clerk"
    assert (["pay"] if may else []) == tools
    assert may == (not called.is_error) == ("bank/pay" in response.text)
    assert 401 == unknown.status_code
    assert [True] * may == [bool(line["tenant"]) for line in gateway.usage.call_log.lines()]


async def test_meta_tools_summarize_the_catalog_that_the_caller_sees(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway((tool("a"),))
    texts: dict[str, list[str]] = {"clerk": [], "guest": []}
    async with (
        served(gateway, OPTIONS) as url,
        client_of(url, "clerk") as clerk,
        client_of(url, "guest") as guest,
    ):
        clients = {"clerk": clerk, "guest": guest}

        async def note() -> None:
            for who, client in clients.items():
                search, _ = (await client.list_tools()).tools
                texts[who].append(search.description or "")

        await note()
        notifications: Any = {"tools_list_changed": True, "prompts_list_changed": True}
        await guest.list_prompts()
        async with clerk.listen(**notifications) as few, guest.listen(**notifications) as others:
            gateway.add_source(ListSource("bank", [tool("pay")]), access=PAID)
            heard = [await anext(few)]
            gateway.add_source(Shop("more", thing("prompt", "p")))
            heard.append(await anext(others))
        await note()
        gateway.set_rules({"bank": PAID, "bank/*": PAID, "shelf/a": PAID})
        await note()

    assert [ToolsListChanged(), PromptsListChanged()] == heard
    assert texts["guest"][0] == texts["guest"][1] == texts["clerk"][0]
    assert "bank (1: pay)" in texts["clerk"][1]
    assert texts["clerk"][1] == texts["clerk"][2]
    assert "The catalog" not in texts["guest"][2]

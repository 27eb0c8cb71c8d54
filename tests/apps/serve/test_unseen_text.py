"""Removal of invisible characters from texts for models and clients."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, types

from gateway.discovery import proxy
from gateway.gateway import Gateway
from gateway.mcp import StdioServer
from gateway.options import DiscoveryOptions
from gateway.serve.mcp_server import mcp_server
from gateway.types import ALL_SCOPES
from graphs import Document
from tests.apps.serve.api.client import open_client
from tests.conftest import PATIENT, OpenGateway
from tests.core.mcp.servers.unseen import KINDS, ODD, SCHEMA
from tests.fakes import ListSource, tool

SERVER = Path(__file__).parents[2] / "core" / "mcp" / "servers" / "unseen.py"
WRITABLE = ODD.encode("utf-8", "ignore").decode()
"""The text `ODD` without lone surrogates, which an HTTP request cannot contain."""
Ask = Callable[[Gateway, Client], Awaitable[object]]


def sent_json(answer: object) -> str:
    """Return *answer* as the JSON text sent to a client, which must be strict UTF-8."""
    if hasattr(answer, "model_dump"):
        answer = answer.model_dump(mode="json", by_alias=True)
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False, default=list)
    text.encode("utf-8")
    return text


def texts_in(value: object) -> Iterator[str]:
    """Yield all strings in JSON, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def check(answer: object) -> None:
    """Check that *answer* contains all visible characters of `ODD`, and no invisible ones."""
    value = json.loads(sent_json(answer))
    texts = [*texts_in(value)]
    assert any("marked xx" in text for text in texts), sent_json(answer)[:500]
    unseen = {char for text in texts for char in text if char in KINDS}
    assert set() == unseen
    assert {"Cc", "Cf", "Cs", "Co"}.isdisjoint(
        unicodedata.category(char) for text in texts for char in text if char not in "\n\t"
    )


@asynccontextmanager
async def open_session(
    open_gateway: OpenGateway, folder: Path, heard: list[object]
) -> AsyncIterator[tuple[Gateway, Client]]:
    """Yield a gateway in front of the test's MCP server, and an MCP client of the gateway.

    The client appends the requests for input that it receives to *heard*.
    """

    async def fill_in(_context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        heard.append(params)
        return types.ElicitResult(action="decline")

    documents = [Document(id="kg:mail", title=f"Mail {ODD}", summary=ODD, aliases=(f"Post {ODD}",))]
    gateway = open_gateway(
        graph=documents, options=replace(PATIENT, catalog_store_path=folder / "catalog.sqlite3")
    )
    gateway.add_server("unseen", server=StdioServer(sys.executable, (str(SERVER),)))
    own_tool = replace(tool("fold_letter", f"Fold a letter {ODD}."), input_schema=SCHEMA)
    gateway.add_source(ListSource("own", [own_tool], trusted=True))
    gateway.add_tool(lambda: {ODD: [ODD, float("nan")]}, name="answer", description="Answer.")
    gateway.add_tool(fail, name="fail", description="Fail.")
    server = mcp_server(gateway)
    answered: Any = fill_in
    async with Client(server, mode="legacy", elicitation_callback=answered) as client:
        yield gateway, client


def fail() -> None:
    raise ValueError(ODD)


def calling(name: str) -> Ask:
    def call(_gateway: Gateway, client: Client) -> Awaitable[object]:
        return client.call_tool("call_tool", {"name": name, "arguments": {}})

    return call


async def listed(gateway: Gateway, _client: Client) -> object:
    page = await gateway.catalog.list()
    entities = [entity for entity in page.entities if entity.server == "unseen"]
    assert {"odd_key", "odd_out", "odd\ufe01name"}.isdisjoint(item.name for item in entities)
    assert {"tool", "resource", "prompt", "server"} == {item.kind for item in entities}
    for entity in entities:
        if entity.name != "plain":
            check(asdict(entity.definition))
    return [asdict(entity) for entity in entities]


async def model_tools(gateway: Gateway, _client: Client) -> object:
    """Return the tools that a model sees, including the host's own tools."""
    tools = await gateway.list_tools()
    return [proxy(entity, DiscoveryOptions()) for entity in tools if entity.name != "plain"]


async def asked(_gateway: Gateway, client: Client) -> object:
    heard: list[object] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append([progress, total, message])

    await client.call_tool(
        "call_tool", {"name": "ask", "arguments": {}}, progress_callback=progress
    )
    return heard


CHANNELS: dict[str, Ask] = {
    "definitions": listed,
    "tools of a model": model_tools,
    "search": lambda _, client: client.call_tool("search_tools", {"query": "fold a letter"}),
    "result": calling("call"),
    "refusal": calling("refuse"),
    "progress": asked,
    "function": calling("answer"),
    "error of a function": calling("fail"),
    "resource": lambda _, client: client.read_resource("gateway:/unseen/a://notes"),
    "prompt": lambda _, client: client.get_prompt("unseen/write", {}),
    "completion": lambda _, client: client.complete(
        types.PromptReference(name="unseen/write"), {"name": "c", "value": ""}
    ),
}


@pytest.mark.parametrize("channel", CHANNELS)
async def test_answers_to_models_and_clients_contain_no_invisible_characters(
    open_gateway: OpenGateway, tmp_path: Path, channel: str
) -> None:
    """Invisible text may contain instructions, and a lone surrogate would end the session."""
    async with open_session(open_gateway, tmp_path, []) as (gateway, client):
        check(await CHANNELS[channel](gateway, client))


async def test_requests_for_input_contain_no_invisible_characters(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    heard: list[Any] = []
    async with open_session(open_gateway, tmp_path, heard) as (gateway, client):
        await asked(gateway, client)

    (question,) = heard
    check(question)


async def test_http_responses_contain_no_invisible_characters(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    entry = {
        "kind": "agent",
        "name": "folder",
        "title": WRITABLE[:256],
        "description": f"Folds letters {WRITABLE}"[:8192],
        "hints": {"aliases": [WRITABLE[:256]], "tags": [WRITABLE[:60]]},
        "metadata": {"a": {WRITABLE: [WRITABLE]}},
    }
    async with (
        open_session(open_gateway, tmp_path, []) as (gateway, _),
        open_client(gateway, scopes=(ALL_SCOPES,)) as client,
    ):
        response = await client.post("/api/entities", json=entry)
        assert 201 == response.status_code, response.text
        tagged = await client.patch("/api/entities/unseen/plain", json={"tags": [WRITABLE[:60]]})
        kinds = ["a2a_agent", "tool", "mcp_server", "resource", "prompt"]
        search = {"query": "fold a letter marked", "entity_types": kinds, "max_results": 50}
        answers = [
            response,
            tagged,
            await client.post("/api/search/semantic", json=search),
            await client.get("/api/entities", params={"limit": 500}),
            await client.get("/api/search/tags"),
        ]

    for answer in answers:
        assert answer.is_success, answer.text
        check(json.loads(answer.content.decode("utf-8")))

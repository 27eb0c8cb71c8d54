"""Limits on HTTP answers."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from gateway.errors import UpstreamError
from gateway.mcp import HttpServer, OAuth
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.storage import FileTokens
from tests.core.mcp.conftest import opened, served

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "x", "version": "0"},
}
GOOD = {"name": "good", "description": "Works.", "inputSchema": {"type": "object"}}


def answering(tools: list[dict[str, Any]], write: Callable[[str, str], Response]) -> Starlette:
    """Return an HTTP server of *tools*. *write* creates each answer from the MCP method and its
    JSON.
    """
    results = {"initialize": HELLO, "tools/list": {"tools": tools}}

    async def answer(request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = json.loads(await request.body())
        if "id" not in message:
            return Response(status_code=202)
        method = message["method"]
        unknown = {"error": {"code": -32601, "message": "no such method"}}
        outcome = {"result": results[method]} if method in results else unknown
        return write(method, json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}))

    return Starlette(routes=[Route("/mcp", answer, methods=["POST", "GET", "DELETE"])])


def app(size: int, *, packed: bool = False, endless: bool = False) -> Starlette:
    """Return an HTTP server of one tool, whose description has *size* characters.

    *packed* compresses the answers, and *endless* makes the answer to a listing endless.
    """

    def write(method: str, body: str) -> Response:
        if endless and method == "tools/list":
            return StreamingResponse(_endless(), media_type="application/json")
        headers = {"content-encoding": "gzip"} if packed else {}
        content = gzip.compress(body.encode()) if packed else body
        return Response(content, media_type="application/json", headers=headers)

    return answering([{**GOOD, "description": "x" * size}], write)


async def _endless() -> AsyncIterator[bytes]:
    yield b'{"jsonrpc": "2.0", "id": 1, "result": "'
    while True:
        yield b"x" * 65536
        await asyncio.sleep(0)  # lets the server notice a closed connection


OPTIONS = UpstreamOptions(max_message_bytes=100_000)


def target(port: int, auth: OAuth | None = None) -> HttpServer:
    return HttpServer(f"http://127.0.0.1:{port}/mcp", auth=auth)


async def test_http_answer_within_the_length_limit_is_accepted(bridge: Bridge) -> None:
    async with served(bridge, app(50_000)) as port, opened(bridge, target(port), OPTIONS) as source:
        listing = await source.list_tools()

    assert ["good"] == [tool.name for tool in listing.tools]


@pytest.mark.parametrize("endless", [False, True])
async def test_too_long_json_answer_fails_only_its_request(
    bridge: Bridge, *, endless: bool
) -> None:
    """The SDK alone would read the whole answer into memory."""
    async with (
        served(bridge, app(200_000, endless=endless)) as port,
        opened(bridge, target(port), OPTIONS) as source,
    ):
        for _ in range(2):
            with pytest.raises(UpstreamError, match="max_message_bytes"):
                await source.list_tools()
        states = source.supervisor.breaker.is_open, source.state

    assert (False, "active") == states


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("size", range(1, 14))
async def test_tool_with_unpaired_surrogates_is_accepted(
    bridge: Bridge, size: int, *, is_stream: bool
) -> None:
    """JSON can contain unpaired surrogates as escapes. The SDK would reject the whole listing."""
    texts = ["\ud83d\ude00", "\ud83d", "\\ud800", "\\", "\ude00\ud83d", '"\n']
    tools = [
        {**GOOD, "name": f"t{number}", "description": f"a{text}b"}
        for number, text in enumerate(texts)
    ]

    def write(_method: str, body: str) -> Response:
        kind = "text/event-stream" if is_stream else "application/json"
        text = f"event: message\ndata: {body}\n\n" if is_stream else body
        return StreamingResponse(_pieces(text.encode(), size), media_type=kind)

    async with (
        served(bridge, answering(tools, write)) as port,
        opened(bridge, target(port), OPTIONS) as source,
    ):
        listing = await source.list_tools()

    expected = ["a\U0001f600b", "a?b", "a\\ud800b", "a\\b", "a??b", 'a"\nb']
    assert expected == [tool.description for tool in listing.tools]


async def _pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def test_compressed_http_answer_is_refused(bridge: Bridge) -> None:
    """Two hundred bytes expand to fifty thousand, so the length limit would be too late."""
    async with (
        served(bridge, app(50_000, packed=True)) as port,
        opened(bridge, target(port), OPTIONS) as source,
    ):
        with pytest.raises(UpstreamError, match="DecodingError"):
            await source.list_tools()


async def test_length_limit_applies_to_a_refusal_with_the_type_of_an_event_stream(
    bridge: Bridge, tmp_path: Path
) -> None:
    """A refusal is read whole before the token is refreshed, so it must not be endless like a
    stream.
    """

    async def refuse(_request: Request) -> Response:
        return StreamingResponse(_endless(), status_code=401, media_type="text/event-stream")

    tokens = FileTokens(tmp_path / "tokens")
    client = {"client_id": "me", "redirect_uris": ["http://127.0.0.1/"]}
    token = {"access_token": "a", "token_type": "Bearer", "refresh_token": "r"}
    tokens.write(json.dumps({"tokens": token, "client": client}))
    routes = [Route(path, refuse, methods=["POST", "GET"]) for path in ("/mcp", "/token")]
    async with (
        served(bridge, Starlette(routes=routes)) as port,
        opened(bridge, target(port, OAuth(tokens=tokens)), OPTIONS) as source,
    ):
        with pytest.raises(UpstreamError, match="gateway login srv"):
            await source.list_tools()

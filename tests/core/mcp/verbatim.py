"""Raw servers that send given answers."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.mcp import HttpServer, StdioServer
from gateway.runtime.background_loop import Bridge
from gateway.sources import McpSource
from tests.core.mcp.conftest import HERE, opened, served

Answers = Mapping[str, Sequence[str | None]]
TOOL = {"name": "good", "description": "Works.", "inputSchema": {"type": "object"}}


def result(fields: str) -> str:
    return f'{{"jsonrpc": "2.0", "id": ID, "result": {fields}}}'


def error(fields: Mapping[str, Any]) -> str:
    return f'{{"jsonrpc": "2.0", "id": ID, "error": {json.dumps(fields)}}}'


def opening(capabilities: str = '{"tools": {}}') -> str:
    server = '"protocolVersion": "2025-06-18", "serverInfo": {"name": "v", "version": "1"}'
    return result(f'{{{server}, "capabilities": {capabilities}}}')


PONG = result('{"content": [{"type": "text", "text": "pong"}]}')
ANSWERS: Answers = {
    "initialize": [opening()],
    "tools/list": [result(json.dumps({"tools": [TOOL]}))],
    "tools/call": [PONG],
}


def over_stdio(folder: Path, answers: Answers) -> StdioServer:
    """Return a server with its files in *folder*."""
    file = folder / "answers.json"
    file.write_text(json.dumps({**ANSWERS, **answers}), "utf-8")
    return StdioServer(
        sys.executable, (str(HERE / "verbatim.py"), str(file), str(folder / "record"))
    )


def over_http(answers: Answers, kind: str) -> Starlette:
    """Return a server that sends the media type *kind*."""
    remaining = {method: list(lines) for method, lines in {**ANSWERS, **answers}.items()}

    async def answer(request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        unknown = error({"code": -32601, "message": "no such method"})
        lines = remaining.get(message["method"], [unknown])
        line = (lines.pop(0) if len(lines) > 1 else lines[0]) or ""
        text = line.replace("ID", str(message["id"]))
        body = f"event: message\ndata: {text}\n\n" if kind == "text/event-stream" else text
        return Response(body, media_type=kind)

    return Starlette(routes=[Route("/mcp", answer, methods=["POST", "GET", "DELETE"])])


@asynccontextmanager
async def answering(
    bridge: Bridge, folder: Path, transport: str, answers: Answers
) -> AsyncIterator[McpSource]:
    """Yield a source of a server that sends *answers*."""
    if transport == "stdio":
        async with opened(bridge, over_stdio(folder, answers)) as source:
            yield source
        return
    async with (
        served(bridge, over_http(answers, transport)) as port,
        opened(bridge, HttpServer(f"http://127.0.0.1:{port}/mcp")) as source,
    ):
        yield source

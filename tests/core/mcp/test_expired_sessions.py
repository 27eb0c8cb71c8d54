"""HTTP servers that no longer know their sessions, and the answers by which they report it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from gateway.mcp import HttpServer
from gateway.runtime.background_loop import Bridge
from tests.core.mcp.conftest import opened, served
from tests.core.mcp.verbatim import TOOL

Refuse = Callable[[Any], Response]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "x", "version": "0"},
}


def refusal(status: int, code: int, message: str, *, own_id: bool = False) -> Refuse:
    def answer(request: Any) -> Response:
        error = {"code": code, "message": message}
        body = {"jsonrpc": "2.0", "id": request if own_id else None, "error": error}
        return JSONResponse(body, status_code=status)

    return answer


EXPIRED: dict[str, Refuse] = {
    "plain": lambda _: PlainTextResponse("Not Found", status_code=404),
    "empty": lambda _: Response(status_code=404),
    "detail": lambda _: JSONResponse({"detail": "Session not found"}, status_code=404),
    "page": lambda _: Response("<h1>404</h1>", status_code=404, media_type="text/html"),
    "typescript": refusal(404, -32001, "Session not found"),
    "own id": refusal(404, -32001, "Session not found", own_id=True),
    "python": refusal(404, -32600, "Session has expired"),
    "server error": refusal(404, -32000, "unknown"),
    "no valid id": refusal(400, -32000, "Bad Request: No valid session ID provided"),
    "not initialized": refusal(400, -32000, "Bad Request: Server not initialized", own_id=True),
    "text": lambda _: PlainTextResponse("Invalid session ID", status_code=400),
    "gone": lambda _: PlainTextResponse("the session is gone", status_code=410),
    "rust": lambda _: PlainTextResponse("Unexpected message, expect initialize", status_code=422),
}
REFUSED: dict[str, Refuse] = {
    "arguments": refusal(400, -32602, "unknown session of the user", own_id=True),
    "request": refusal(400, -32600, "what is that?", own_id=True),
    "method": refusal(404, -32601, "no such method", own_id=True),
    "failure": refusal(500, -32603, "the session broke", own_id=True),
}


class SessionServer:
    """An HTTP server with sessions. *refuse* creates its answer to a request of an unknown
    session.
    """

    def __init__(self, refuse: Refuse) -> None:
        self.refuse = refuse
        self.sessions = set[str]()
        self.opened = count(1)
        self.refused_calls = 0
        """Number of refused calls."""

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/mcp", self.answer, methods=["POST", "GET", "DELETE"])])

    async def answer(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        method, identity = message["method"], message.get("id")
        if method == "initialize":
            session = str(next(self.opened))
            self.sessions.add(session)
            body = {"jsonrpc": "2.0", "id": identity, "result": HELLO}
            return JSONResponse(body, headers={"mcp-session-id": session})
        if request.headers.get("mcp-session-id") not in self.sessions:
            self.refused_calls += method == "tools/call"
            return self.refuse(identity)
        if identity is None:
            return Response(status_code=202)
        pong = {"content": [{"type": "text", "text": "pong"}]}
        answers = {"tools/list": {"tools": [TOOL]}, "tools/call": pong}
        return JSONResponse({"jsonrpc": "2.0", "id": identity, "result": answers[method]})


@pytest.mark.parametrize("form", EXPIRED)
async def test_expired_session_is_replaced_and_the_call_sent_again(
    bridge: Bridge, form: str
) -> None:
    """The server refused the call without running it, so it cannot run twice."""
    server = SessionServer(EXPIRED[form])
    async with (
        served(bridge, server.app()) as port,
        opened(bridge, HttpServer(f"http://127.0.0.1:{port}/mcp")) as source,
    ):
        before = await source.call("good", {}, tool_id="x")
        server.sessions.clear()
        after = await source.call("good", {}, tool_id="x")
        server.sessions.clear()
        listing = await source.list_tools()

    assert ("pong", "pong", 1) == (before.text, after.text, server.refused_calls)
    assert ["good"] == [tool.name for tool in listing.tools]
    assert 4 == next(server.opened)


@pytest.mark.parametrize("form", REFUSED)
async def test_json_rpc_error_with_an_http_error_status_is_not_sent_again(
    bridge: Bridge, form: str
) -> None:
    """The request reached its handler, so the tool may have run."""
    server = SessionServer(REFUSED[form])
    async with (
        served(bridge, server.app()) as port,
        opened(bridge, HttpServer(f"http://127.0.0.1:{port}/mcp")) as source,
    ):
        await source.list_tools()
        server.sessions.clear()
        answer = await source.call("good", {}, tool_id="x")

    assert (True, 1, 2) == (answer.is_error, server.refused_calls, next(server.opened))

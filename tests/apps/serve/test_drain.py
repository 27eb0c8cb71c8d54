"""Graceful shutdown, with a manual clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from gateway.serve.drain import Drain

SESSION = {MCP_SESSION_ID_HEADER: "one"}
KEEP_ALIVE = {"connection": "keep-alive"}


class Service:
    """An application behind `Drain`. Tests set its clock, and end its calls with `let_go`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()
        routes = [
            Route("/mcp", self._call, methods=["POST"]),
            Route("/mcp", self._stream, methods=["GET"]),
            *(Route(path, self._page) for path in ("/more", "/livez")),
        ]
        app = Starlette(routes=routes)
        always = frozenset({"/livez"})
        self.drain = Drain(app, delay_s=5, timeout_s=20, always=always, clock=lambda: self.now)
        transport = httpx2.ASGITransport(app=self.drain)
        self.http = httpx2.AsyncClient(transport=transport, base_url="http://gateway")

    async def _page(self, _request: Request) -> PlainTextResponse:
        return PlainTextResponse("here", headers=KEEP_ALIVE)

    async def _call(self, request: Request) -> PlainTextResponse:
        if not await request.body():
            return PlainTextResponse("noted")
        self.begun.set()
        await self.let_go.wait()
        return PlainTextResponse("done")

    async def _stream(self, _request: Request) -> StreamingResponse:
        async def events() -> AsyncIterator[str]:
            yield "data: first\n\n"
            self.begun.set()
            await asyncio.Event().wait()

        return StreamingResponse(events(), media_type="text/event-stream", headers=KEEP_ALIVE)


@asynccontextmanager
async def service() -> AsyncIterator[Service]:
    new_service = Service()
    async with new_service.http:
        yield new_service


async def test_requests_are_refused_after_the_shutdown_delay() -> None:
    async with service() as drained:
        before = await drained.http.get("/more")
        drained.drain.begin()
        drained.now = 4.9
        late, ready = await drained.http.get("/more"), await drained.http.get("/readyz")
        was_over, drained.now = drained.drain.is_over, 5.0
        refused = await drained.http.get("/more")
        alive = await drained.http.get("/livez")

    assert (200, "keep-alive") == (before.status_code, before.headers["connection"])
    assert (200, "close") == (late.status_code, late.headers["connection"])
    assert (503, "draining") == (ready.status_code, ready.json()["status"])
    assert (503, "draining", "close") == (
        refused.status_code,
        refused.json()["code"],
        refused.headers["connection"],
    )
    assert 200 == alive.status_code
    assert (False, True) == (was_over, drained.drain.is_over)


async def test_shutdown_waits_for_a_running_call_and_accepts_its_session() -> None:
    """The call may wait for input from its client."""
    async with service() as drained, asyncio.TaskGroup() as tasks:
        held_call = tasks.create_task(drained.http.post("/mcp", content=b"call", headers=SESSION))
        await drained.begun.wait()
        drained.drain.begin(delayed=False)
        response = await drained.http.post("/mcp", headers=SESSION)
        other = await drained.http.post("/mcp", headers={MCP_SESSION_ID_HEADER: "other"})
        none = await drained.http.post("/mcp")
        at_first, drained.now = drained.drain.is_over, 20.0
        when_time_is_over, drained.now = drained.drain.is_over, 1.0
        drained.let_go.set()
        done = await held_call

    assert [200, 503, 503] == [item.status_code for item in (response, other, none)]
    assert (False, True, True) == (at_first, when_time_is_over, drained.drain.is_over)
    assert ("done", "close") == (done.text, done.headers["connection"])


async def test_open_stream_ends_cleanly_at_shutdown() -> None:
    async with service() as drained, asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(drained.http.get("/mcp"))
        await drained.begun.wait()
        drained.drain.begin(delayed=False)
        is_over = drained.drain.is_over
        drained.drain.ending.set()
        stream = await listening

    assert is_over
    assert "data: first\n\n" == stream.text

"""Graceful shutdown of the served gateway, and the probes ``/livez`` and ``/readyz``.

1. ``/readyz`` answers 503, and each response closes its connection. Requests are still answered,
   until load balancers notice.
2. New requests are refused with 503, except in a session with a running call, because they may
   contain its input. Running calls end within a time limit.
3. Streams end, and then all connections.

The probes need no token, because they contain only states and counts.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Literal

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from pydantic import BaseModel, ConfigDict
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.gateway import Gateway
from gateway.runtime.cache import Clock
from gateway.serve.api.problems import ApiResponse, RefusedError, problem
from gateway.serve.auth import LIVEZ, READYZ
from gateway.serve.guard import LISTEN
from gateway.types import Code

_EVENTS = "text/event-stream"


class Drain:
    """Middleware that counts running calls, and refuses new ones during shutdown.

    Args:
        delay_s: Time after `begin` in which new requests are still answered.
        timeout_s: Maximum time that running calls have after the delay.
        always: Paths that are answered during the whole shutdown.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        delay_s: float,
        timeout_s: float,
        always: frozenset[str] = frozenset(),
        clock: Clock = time.monotonic,
    ) -> None:
        self._app = app
        self._delay_s = delay_s
        self._timeout_s = timeout_s
        self._always = always
        self._clock = clock
        self._refuses_at: float | None = None
        self._calls = Counter[str]()
        """Number of running calls, keyed by session id, or "" without a session."""
        self.ending = asyncio.Event()
        """Tells all open streams to end."""

    def begin(self, *, delayed: bool = True) -> None:
        """Start the shutdown once. Without *delayed*, refuse new requests immediately."""
        if self._refuses_at is None:
            self._refuses_at = self._clock() + (self._delay_s if delayed else 0)

    @property
    def has_begun(self) -> bool:
        """True if the shutdown has started."""
        return self._refuses_at is not None

    @property
    def calls(self) -> int:
        """Number of running calls."""
        return self._calls.total()

    @property
    def is_over(self) -> bool:
        """True if the delay has passed, and no calls are running or their time limit has passed."""
        if self._refuses_at is None or not self._refuses:
            return False
        return not self.calls or self._clock() >= self._refuses_at + self._timeout_s

    @property
    def _refuses(self) -> bool:
        return self._refuses_at is not None and self._clock() >= self._refuses_at

    def count(self, session: str, change: int) -> None:
        """Count the start (1) or end (-1) of a call in *session*."""
        self._calls[session] += change
        if not self._calls[session]:
            del self._calls[session]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, or refuse it during shutdown."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(self, scope, receive, send)
        answer = self._shutdown_response(scope["path"], exchange.session) or self._app
        with exchange:
            await answer(scope, exchange.receive, exchange.send)
            await exchange.complete()

    def _shutdown_response(self, path: str, session: str) -> ASGIApp | None:
        if self.has_begun and path == READYZ:
            return readiness_response(Readiness(status="draining"))
        belongs_to_call = bool(session) and session in self._calls
        if not self._refuses or path in self._always or belongs_to_call:
            return None
        detail = "the server is shutting down and did not process the request; send it again"
        return problem(RefusedError(503, "draining", detail, headers={"Retry-After": "1"}))


class _Exchange:
    """A request and its response, counted as a running call unless it is a long stream."""

    def __init__(self, drain: Drain, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self.session = headers.get(MCP_SESSION_ID_HEADER, "")
        self._drain = drain
        self._receive = receive
        self._send = send
        self._is_get = scope["method"] == "GET"
        self._counts = headers.get("mcp-method") != LISTEN
        self._is_open = False
        """True while the response is an open stream."""

    def __enter__(self) -> None:
        if self._counts:
            self._drain.count(self.session, 1)

    def __exit__(self, *_error: object) -> None:
        self._stop_counting()

    def _stop_counting(self) -> None:
        if self._counts:
            self._counts = False
            self._drain.count(self.session, -1)

    async def receive(self) -> Message:
        """Return the client's next message, which for streams is a disconnect at shutdown."""
        if not self._is_get:
            return await self._receive()
        message = asyncio.ensure_future(self._receive())
        ending = asyncio.ensure_future(self._drain.ending.wait())
        try:
            await asyncio.wait({message, ending}, return_when=asyncio.FIRST_COMPLETED)
            return message.result() if message.done() else {"type": "http.disconnect"}
        finally:
            message.cancel()
            ending.cancel()

    async def send(self, message: Message) -> None:
        """Send a message. During shutdown, the response closes its connection."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=[*message.get("headers", ())])
            if self._is_get and headers.get("content-type", "").startswith(_EVENTS):
                self._stop_counting()
                self._is_open = True
            if self._drain.has_begun:
                headers["connection"] = "close"
                message = {**message, "headers": headers.raw}
        elif not message.get("more_body", False):
            self._is_open = False
        await self._send(message)

    async def complete(self) -> None:
        """End a stream's response after its disconnect at shutdown."""
        if self._is_open and self._drain.ending.is_set():
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


_UNAVAILABLE = 503
_UNLISTED: Code = "source_load_failed"
_BUILDING: Code = "index_building"
_STORE_FAILURES: frozenset[Code] = frozenset({"catalog_unavailable", "store_unavailable"})


class Liveness(BaseModel):
    """Response body of ``/livez``."""

    model_config = ConfigDict(frozen=True)

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """Response body of ``/readyz``.

    The HTTP status is 200 for ``ready`` and ``partial``, else 503.
    """

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    status: Literal["ready", "partial", "starting", "draining"]
    """``partial`` means that some upstream servers could not be listed, or that vectors are still
    being computed."""
    failed_servers: int = 0
    """Number of upstream servers that could not be listed."""
    degraded: bool = False
    """True if a store failed. The replica stays ready, because searches still work and the other
    replicas use the same store."""


def probe_routes(gateway: Gateway) -> list[Route]:
    """Return the routes of ``/livez`` and ``/readyz``."""

    async def live(_request: Request) -> Response:
        return ApiResponse(Liveness())

    async def ready(_request: Request) -> Response:
        return readiness_response(await _readiness(gateway))

    return [Route(LIVEZ, live, methods=["GET"]), Route(READYZ, ready, methods=["GET"])]


def readiness_response(readiness: Readiness) -> Response:
    """Return the response of ``/readyz``."""
    is_ready = readiness.status in {"ready", "partial"}
    return ApiResponse(readiness, 200 if is_ready else _UNAVAILABLE)


async def _readiness(gateway: Gateway) -> Readiness:
    # Starts the first index build in the background.
    report = await gateway.report(wait=False)
    if not gateway.index_builds:
        return Readiness(status="starting")
    codes = [note.code for note in report.diagnostics]
    is_partial = _UNLISTED in codes or _BUILDING in codes
    return Readiness(
        status="partial" if is_partial else "ready",
        failed_servers=codes.count(_UNLISTED),
        degraded=not _STORE_FAILURES.isdisjoint(codes),
    )

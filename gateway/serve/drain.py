"""The end of a served gateway, in which no call is lost.

1. `/readyz` says 503 and each response closes its connection, so that requests go elsewhere. Those
   that still come are answered, for some seconds: a load balancer takes a while to notice.
2. Further requests are refused with 503. Those of a session with a call under way are not: they
   may answer what that call asks for. Calls under way end, within a time limit.
3. Streams are ended, and with them all connections.

`/livez` and `/readyz`: whether an orchestrator leaves the process alone, and sends it requests.

Neither needs a token, and neither names anything: counts alone are told.
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
    """A middleware that counts calls, and at the end refuses more of them.

    Args:
        app: All that is served.
        delay_s: How long requests are still answered after `begin`.
        timeout_s: How long calls under way may take from then on.
        always: The paths that are answered to the end.
        clock: Seconds that only grow.
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
        """How many calls each session has under way; those without a session are under ``""``."""
        self.ending = asyncio.Event()
        """Set when streams are to end."""

    def begin(self, *, delayed: bool = True) -> None:
        """Begin the end; without the delay if not *delayed*. A second time changes nothing."""
        if self._refuses_at is None:
            self._refuses_at = self._clock() + (self._delay_s if delayed else 0)

    @property
    def has_begun(self) -> bool:
        """Whether the end has begun."""
        return self._refuses_at is not None

    @property
    def calls(self) -> int:
        """How many calls are under way."""
        return self._calls.total()

    @property
    def is_over(self) -> bool:
        """Whether nothing is waited for any more: no call is under way, or the time is over."""
        if self._refuses_at is None or not self._refuses:
            return False
        return not self.calls or self._clock() >= self._refuses_at + self._timeout_s

    @property
    def _refuses(self) -> bool:
        return self._refuses_at is not None and self._clock() >= self._refuses_at

    def count(self, session: str, change: int) -> None:
        """Note that a call of *session* begins (1) or ends (-1)."""
        self._calls[session] += change
        if not self._calls[session]:
            del self._calls[session]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(self, scope, receive, send)
        answer = self._own_answer(scope["path"], exchange.session) or self._app
        with exchange:
            await answer(scope, exchange.receive, exchange.send)
            await exchange.complete()

    def _own_answer(self, path: str, session: str) -> ASGIApp | None:
        if self.has_begun and path == READYZ:
            return readiness_response(Readiness(status="draining"))
        belongs_to_call = bool(session) and session in self._calls
        if not self._refuses or path in self._always or belongs_to_call:
            return None
        detail = "this server is ending, and nothing was done: send the request again"
        return problem(RefusedError(503, "draining", detail, headers={"Retry-After": "1"}))


class _Exchange:
    """One request and its response. A block of it counts the request as a call, unless its
    response turns out to be a stream that lasts.
    """

    def __init__(self, drain: Drain, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self.session = headers.get(MCP_SESSION_ID_HEADER, "")
        self._drain = drain
        self._receive = receive
        self._send = send
        self._is_get = scope["method"] == "GET"
        self._counts = headers.get("mcp-method") != LISTEN
        self._is_open = False
        """Whether a stream of ours was begun and not completed."""

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
        """Return the next message; at the end, a stream hears that its client has gone."""
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
        """Send a message of the response."""
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
        """End a stream that heard that its client has gone, though it has not."""
        if self._is_open and self._drain.ending.is_set():
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


_UNAVAILABLE = 503
_UNLISTED: Code = "source_load_failed"
_BUILDING: Code = "index_building"
_STORE_FAILURES: frozenset[Code] = frozenset({"catalog_unavailable", "store_unavailable"})


class Liveness(BaseModel):
    """The body of `/livez`."""

    model_config = ConfigDict(frozen=True)

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """The body of `/readyz`: 200 for ``ready`` and ``partial``, else 503."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    status: Literal["ready", "partial", "starting", "draining"]
    """``partial`` lacks servers, or vectors that are still being made."""
    failed_servers: int = 0
    """How many could not be listed."""
    degraded: bool = False
    """Whether a store failed. Searches go on, and all replicas would have the same: it is ready."""


def probe_routes(gateway: Gateway) -> list[Route]:
    """Return the routes of both probes."""

    async def live(_request: Request) -> Response:
        return ApiResponse(Liveness())

    async def ready(_request: Request) -> Response:
        return readiness_response(await _readiness(gateway))

    return [Route(LIVEZ, live, methods=["GET"]), Route(READYZ, ready, methods=["GET"])]


def readiness_response(readiness: Readiness) -> Response:
    """Return the response of `/readyz` that says *readiness*."""
    is_ready = readiness.status in {"ready", "partial"}
    return ApiResponse(readiness, 200 if is_ready else _UNAVAILABLE)


async def _readiness(gateway: Gateway) -> Readiness:
    # It starts the first build, in the background.
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

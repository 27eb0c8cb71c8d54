"""The end of a served gateway, in which no call is lost.

1. `/readyz` says 503 and each response closes its connection, so that requests go elsewhere. Those
   that still come are answered, for some seconds: a load balancer takes a while to notice.
2. Further requests are refused with 503. Those of a session with a call under way are not: they
   may answer what that call asks for. Calls under way end, within a time limit.
3. Streams are ended, and with them all connections.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.runtime.cache import Clock
from gateway.serve.api.problems import RefusedError, problem
from gateway.serve.auth import READYZ
from gateway.serve.guard import LISTEN
from gateway.serve.probes import Readiness, readiness_response

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

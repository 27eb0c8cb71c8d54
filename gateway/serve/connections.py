"""Connections of clients to the served gateway: how many, and how long a request may take to come.

uvicorn limits requests that have come whole; one that is half sent would hold its connection for
ever.

Sessions of the served gateway: no caller fills them, each has a share.

A client of before 2026-07-28 begins a session and need not end it. Beyond its caller's share the
session that was not used for longest is ended; one with a request under way only if all have one.
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol


class ConnectionLimits:
    """The limits of one server, and its connections that wait for a request.

    Args:
        max_connections: A further one takes the place of the one that has waited longest; if none
            waits, it is refused.
        request_timeout_s: How long a request may take to come whole.
    """

    def __init__(self, max_connections: int, request_timeout_s: float) -> None:
        self._max_connections = max_connections
        self._request_timeout_s = request_timeout_s
        self._waiting: dict[H11Protocol, asyncio.TimerHandle] = {}

    def __call__(self, **options: Any) -> H11Protocol:
        """Return a new connection, as uvicorn makes one."""
        return _Connection(self, **options)

    def make_room(self, new: H11Protocol) -> None:
        """Abort a connection if there are too many."""
        if len(new.connections) > self._max_connections:
            self._abort(next(iter(self._waiting), new))

    def note_request(self, connection: H11Protocol) -> None:
        """Start the timer of *connection*, unless a whole request is being answered."""
        cycle = connection.cycle
        if cycle is not None and not (cycle.response_complete or cycle.more_body):
            self.forget(connection)
        elif connection not in self._waiting and not connection.transport.is_closing():
            self._waiting[connection] = connection.loop.call_later(
                self._request_timeout_s, self._abort, connection
            )

    def forget(self, connection: H11Protocol) -> None:
        """Stop the timer of *connection*."""
        if timer := self._waiting.pop(connection, None):
            timer.cancel()

    def _abort(self, connection: H11Protocol) -> None:
        self.forget(connection)
        connection.transport.abort()


class _Connection(H11Protocol):
    def __init__(self, limits: ConnectionLimits, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limits.make_room(self)
        self._limits.note_request(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._limits.note_request(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._limits.note_request(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._limits.forget(self)


_FIRST_ERROR = 400


class SessionShares:
    """A middleware that ends a session of a caller that has more than half of all.

    Args:
        app: Serves the protocol.
        max_sessions: How many sessions there may be of all callers.
    """

    def __init__(self, app: ASGIApp, max_sessions: int) -> None:
        self._app = app
        self._max_sessions = max_sessions
        self._max_own = max(max_sessions // 2, 1)
        self.noted: dict[tuple[str, str], int] = {}
        """By caller and session, how many requests are under way; the last used one is last. One
        that ended by itself stays until its turn comes."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        caller = getattr(scope.get("user"), "username", "")
        session = Headers(raw=scope.get("headers", [])).get(MCP_SESSION_ID_HEADER, "")

        async def note_session(message: Message) -> None:
            nonlocal session
            if message["type"] == "http.response.start" and message["status"] < _FIRST_ERROR:
                if scope["method"] == "DELETE":
                    self.noted.pop((caller, session), None)
                elif not session:
                    session = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER, "")
                    if session:
                        self.noted[caller, session] = 1
                        await self._end_surplus(caller, scope)
            await send(message)

        self._count(caller, session, 1)
        try:
            await self._app(scope, receive, note_session)
        finally:
            self._count(caller, session, -1)

    async def _end_surplus(self, caller: str, scope: Scope) -> None:
        async def ignore(_message: Message) -> None: ...

        own = [each for owner, each in self.noted if owner == caller]
        if len(own) > self._max_own:
            ended = next((each for each in own if not self.noted[caller, each]), own[0])
            del self.noted[caller, ended]
            header = (MCP_SESSION_ID_HEADER.encode(), ended.encode())
            await self._app({**scope, "method": "DELETE", "headers": [header]}, _no_body, ignore)
        if len(self.noted) > self._max_sessions:
            # There are never so many: one has ended by itself.
            over = next((each for each, requests in self.noted.items() if not requests), None)
            self.noted.pop(over or next(iter(self.noted)))

    def _count(self, caller: str, session: str, change: int) -> None:
        if (caller, session) in self.noted:
            self.noted[caller, session] = self.noted.pop((caller, session)) + change


async def _no_body() -> Message:
    return {"type": "http.request"}

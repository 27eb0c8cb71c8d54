"""Limits on connections, on the time to send a request, and on MCP sessions per caller.

uvicorn limits only complete requests. An incomplete one would occupy its connection forever.

Clients of protocol versions before 2026-07-28 need not end their sessions. If a caller exceeds its
share, its least recently used session ends, if possible one without a running request.
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol


class ConnectionLimits:
    """Connection limits of one server, and the connections that wait for a request.

    Args:
        max_connections: Maximum number of connections. Another connection closes the one that has
            waited longest for a request, or else itself.
        request_timeout_s: Maximum time to receive a complete request.
    """

    def __init__(self, max_connections: int, request_timeout_s: float) -> None:
        self._max_connections = max_connections
        self._request_timeout_s = request_timeout_s
        self._waiting: dict[H11Protocol, asyncio.TimerHandle] = {}

    def __call__(self, **options: Any) -> H11Protocol:
        """Return a new connection, as uvicorn's protocol factory."""
        return _Connection(self, **options)

    def make_room(self, new: H11Protocol) -> None:
        """Close a connection if the connection *new* exceeds the maximum."""
        if len(new.connections) > self._max_connections:
            self._abort(next(iter(self._waiting), new))

    def note_request(self, connection: H11Protocol) -> None:
        """Start the timer for the next request, or stop it during an answer."""
        cycle = connection.cycle
        if cycle is not None and not (cycle.response_complete or cycle.more_body):
            self.forget(connection)
        elif connection not in self._waiting and not connection.transport.is_closing():
            self._waiting[connection] = connection.loop.call_later(
                self._request_timeout_s, self._abort, connection
            )

    def forget(self, connection: H11Protocol) -> None:
        """Stop the request timer of *connection*."""
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
    """Middleware that lets one caller have at most half of *max_sessions*."""

    def __init__(self, app: ASGIApp, max_sessions: int) -> None:
        self._app = app
        self._max_sessions = max_sessions
        self._max_own = max(max_sessions // 2, 1)
        self.running_requests: dict[tuple[str, str], int] = {}
        """Number of running requests, keyed by caller and session id. The least recently used
        session is first. Sessions that the SDK ended stay until they are the first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, and count it for its session."""
        caller = getattr(scope.get("user"), "username", "")
        session = Headers(raw=scope.get("headers", [])).get(MCP_SESSION_ID_HEADER, "")

        async def note_session(message: Message) -> None:
            nonlocal session
            if message["type"] == "http.response.start" and message["status"] < _FIRST_ERROR:
                if scope["method"] == "DELETE":
                    self.running_requests.pop((caller, session), None)
                elif not session:
                    session = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER, "")
                    if session:
                        self.running_requests[caller, session] = 1
                        await self._end_surplus(caller, scope)
            await send(message)

        self._count(caller, session, 1)
        try:
            await self._app(scope, receive, note_session)
        finally:
            self._count(caller, session, -1)

    async def _end_surplus(self, caller: str, scope: Scope) -> None:
        async def ignore(_message: Message) -> None: ...

        sessions = [session for owner, session in self.running_requests if owner == caller]
        if len(sessions) > self._max_own:
            ended = next(
                (session for session in sessions if not self.running_requests[caller, session]),
                sessions[0],
            )
            del self.running_requests[caller, ended]
            header = (MCP_SESSION_ID_HEADER.encode(), ended.encode())
            await self._app({**scope, "method": "DELETE", "headers": [header]}, _no_body, ignore)
        if len(self.running_requests) > self._max_sessions:
            # The SDK limits its sessions too, so a recorded one has ended.
            over = next(
                (session for session, requests in self.running_requests.items() if not requests),
                None,
            )
            self.running_requests.pop(over or next(iter(self.running_requests)))

    def _count(self, caller: str, session: str, change: int) -> None:
        if (caller, session) in self.running_requests:
            self.running_requests[caller, session] = (
                self.running_requests.pop((caller, session)) + change
            )


async def _no_body() -> Message:
    return {"type": "http.request"}

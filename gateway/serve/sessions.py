"""Sessions of the served gateway: no caller fills them, each has a share.

A client of before 2026-07-28 begins a session and need not end it. Beyond its caller's share the
session that was not used for longest is ended; one with a request under way only if all have one.
"""

from __future__ import annotations

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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

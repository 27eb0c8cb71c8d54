"""Sessions of the served gateway: no caller fills them, each has a share.

A client of before 2026-07-28 begins a session and need not end it. Beyond its caller's share the
session that was not used for longest is ended; one with a request under way only if all have one.
"""

from __future__ import annotations

from collections import defaultdict

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
        self._max_own = max(max_sessions // 2, 1)
        self._sessions = defaultdict[str, dict[str, int]](dict)
        """By caller, how many requests each session has under way; the last used session is last.
        One that ended by itself, unused for longest, stays until its turn comes."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        own = self._sessions[getattr(scope.get("user"), "username", "")]
        session = Headers(raw=scope.get("headers", [])).get(MCP_SESSION_ID_HEADER, "")

        async def note_session(message: Message) -> None:
            nonlocal session
            if message["type"] == "http.response.start" and message["status"] < _FIRST_ERROR:
                if scope["method"] == "DELETE":
                    own.pop(session, None)
                elif not session:
                    session = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER, "")
                    own.update({session: 1} if session else {})
                    await self._end_surplus(own, scope)
            await send(message)

        _count(own, session, 1)
        try:
            await self._app(scope, receive, note_session)
        finally:
            _count(own, session, -1)

    async def _end_surplus(self, own: dict[str, int], scope: Scope) -> None:
        async def ignore(_message: Message) -> None: ...

        if len(own) > self._max_own:
            ended = next((each for each, requests in own.items() if not requests), next(iter(own)))
            del own[ended]
            header = (MCP_SESSION_ID_HEADER.encode(), ended.encode())
            await self._app({**scope, "method": "DELETE", "headers": [header]}, _no_body, ignore)


def _count(own: dict[str, int], session: str, change: int) -> None:
    if session in own:
        own[session] = own.pop(session) + change


async def _no_body() -> Message:
    return {"type": "http.request"}

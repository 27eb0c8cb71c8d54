"""A client of ours as the caller whom a server behind us may ask.

* Before 2026-07-28 a client is asked by a request of ours, on the stream of its own request.
* Since then it is told that input is required, and sends it with its next try: see `exchange`.

Servers' sessions live on another loop than clients': every method may be awaited on any loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping
from typing import Any, TypeVar

from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata

from gateway.errors import CallerError
from gateway.types import JsonObject

T = TypeVar("T")
Context = ServerRequestContext[Any]
STATELESS_SINCE = "2026-07-28"


def stateless(context: Context) -> bool:
    """Whether the client speaks a version in which only clients send requests."""
    return context.protocol_version >= STATELESS_SINCE


def who(context: Context) -> Hashable:
    """Give what tells clients apart: the session, the connection, or else the request itself."""
    headers = getattr(context.request, "headers", None)
    if headers is None:
        return id(context.lifespan_context)
    return headers.get("mcp-session-id") or object()


class SessionClient:
    """A client with a session, which answers requests.

    Args:
        context: Its call.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._who = who(context)

    @property
    def who(self) -> Hashable:
        """See `Caller.who`."""
        return self._who

    @property
    def capabilities(self) -> JsonObject:
        """See `Caller.capabilities`."""
        told = self._context.session.client_capabilities
        return told.model_dump(by_alias=True, mode="json", exclude_none=True) if told else {}

    @property
    def listens(self) -> bool:
        """See `Caller.listens`."""
        return "progress_token" in (self._context.meta or {})

    async def ask(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        """See `Caller.ask`."""
        said = await across(self._loop, lambda: self._ask(requests))
        return dict(zip(requests, said, strict=True))

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """See `Caller.progress`."""
        session = self._context.session
        await across(self._loop, lambda: session.report_progress(progress, total, message))

    async def _ask(self, requests: Mapping[str, types.InputRequest]) -> list[types.InputResponse]:
        return await asyncio.gather(*(self._one(request) for request in requests.values()))

    async def _one(self, request: types.InputRequest) -> types.InputResponse:
        related = ServerMessageMetadata(related_request_id=self._context.request_id)
        session = self._context.session
        try:
            if isinstance(request, types.CreateMessageRequest):
                many = request.params.tools is not None or request.params.tool_choice is not None
                kind = types.CreateMessageResultWithTools if many else types.CreateMessageResult
                return await session.send_request(request, kind, metadata=related)
            if isinstance(request, types.ElicitRequest):
                return await session.send_request(request, types.ElicitResult, metadata=related)
            return await session.send_request(request, types.ListRootsResult, metadata=related)
        except MCPError as error:
            told = f"the client refused {request.method} ({error.error.code})"
            raise CallerError("client", told, needed={}) from error


async def across(loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await *work* on *loop*; when the waiting is cancelled, so is the work."""
    if loop is asyncio.get_running_loop():
        return await work()
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), loop))

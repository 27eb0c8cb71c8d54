"""A client of ours, as the caller that an upstream server may ask for something.

* Before 2026-07-28 the client is asked by a request of ours, on the stream of its own request.
* Since then it is told that input is required, and sends it with its next try: see
  `gateway.serve.pending_calls`.

Sessions of servers live on another loop than clients: every method may be awaited on any loop.
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


def is_stateless(context: Context) -> bool:
    """Return whether the client speaks a version in which only clients send requests."""
    return context.protocol_version >= STATELESS_SINCE


def client_identity(context: Context) -> Hashable:
    """Return the identity of a client: its session, its connection, or else its request."""
    headers = getattr(context.request, "headers", None)
    if headers is None:
        return id(context.lifespan_context)
    return headers.get("mcp-session-id") or object()


class SessionClient:
    """A client with a session, which answers requests; see `gateway.mcp.server_requests.Caller`.

    Args:
        context: Its call.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self._loop = asyncio.get_running_loop()
        self._identity = client_identity(context)

    @property
    def who(self) -> Hashable:
        """See `Caller.who`."""
        return self._identity

    @property
    def capabilities(self) -> JsonObject:
        """See `Caller.capabilities`."""
        declared = self.context.session.client_capabilities
        return (
            declared.model_dump(by_alias=True, mode="json", exclude_none=True) if declared else {}
        )

    @property
    def listens(self) -> bool:
        """See `Caller.listens`."""
        return "progress_token" in (self.context.meta or {})

    async def ask(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        """See `Caller.ask`."""
        return await self._on_own_loop(lambda: self._send_all(requests))

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """See `Caller.progress`."""
        session = self.context.session
        await self._on_own_loop(lambda: session.report_progress(progress, total, message))

    async def _on_own_loop(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await *work* on the client's loop; when the waiting is cancelled, so is the work."""
        if self._loop is asyncio.get_running_loop():
            return await work()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))

    async def _send_all(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        responses = await asyncio.gather(*map(self._send, requests.values()))
        return dict(zip(requests, responses, strict=True))

    async def _send(self, request: types.InputRequest) -> types.InputResponse:
        metadata = ServerMessageMetadata(related_request_id=self.context.request_id)
        try:
            response: types.InputResponse = await self.context.session.send_request(
                request, _response_type(request), metadata=metadata
            )
        except MCPError as error:
            detail = f"the client refused {request.method} ({error.error.code})"
            raise CallerError("client", detail, needed={}) from error
        return response


def _response_type(request: types.InputRequest) -> type[Any]:
    if isinstance(request, types.ElicitRequest):
        return types.ElicitResult
    if isinstance(request, types.ListRootsRequest):
        return types.ListRootsResult
    has_tools = request.params.tools is not None or request.params.tool_choice is not None
    return types.CreateMessageResultWithTools if has_tools else types.CreateMessageResult

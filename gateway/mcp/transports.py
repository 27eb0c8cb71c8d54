"""From a target to an open client of the SDK, with every answer within its limit of size.

The SDK caps the events of a stream, but reads a JSON answer whole, whatever its length.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
from mcp import Client, types
from mcp.client.session import ClientRequestContext, MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer, Server

from gateway.errors import ConfigError
from gateway.mcp.lenient_transport import LenientTransport
from gateway.mcp.oauth_client import create_auth
from gateway.mcp.sdk_logging import open_stderr_log
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.mcp.ssrf_guard import check_literal, guarded_transport
from gateway.mcp.stdio import open_stdio
from gateway.options import UpstreamOptions

T = TypeVar("T")
_IDLE_TIMEOUT_S = 30.0
_READ_TIMEOUT_S = 600.0
_UNPACKED = frozenset({"", "identity"})
_NO_ENCODING = {"Accept-Encoding": "identity"}
"""A few packed bytes may unpack to any length."""
_EVENT_STREAM = "text/event-stream"

AnswerRequest = Callable[[types.InputRequest], Awaitable[types.InputResponse | types.ErrorData]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionCallbacks:
    """The callbacks of one connection."""

    on_end: Callable[[], None]
    """The connection is known to be over."""
    on_status: Callable[[int], None]
    """The status of each HTTP answer."""
    on_message: MessageHandlerFnT
    """What the server says unasked."""
    answer: AnswerRequest
    """Answers what the server asks of a caller."""
    can_be_asked: bool = False
    """Whether a session may say that callers can be asked."""


@asynccontextmanager
async def open_client(
    server: str, target: object, options: UpstreamOptions, callbacks: ConnectionCallbacks
) -> AsyncIterator[Client]:
    """Open a client for *target*, hold it, close it: all in one task (anyio's rule).

    Args:
        server: For the log.
        target: `StdioServer`, `HttpServer`, a server object or a transport of the SDK.
        options: Limits of size.
        callbacks: Hear what happens.

    Raises:
        ConfigError: *target* is none of these.
    """
    async with AsyncExitStack() as stack:
        transport: Any = target
        if isinstance(target, HttpServer):
            client = await stack.enter_async_context(
                await _http_client(target, options, callbacks.on_status)
            )
            transport = streamable_http_client(
                target.url, http_client=client, max_sse_event_size=options.max_message_bytes
            )
        elif isinstance(target, StdioServer):
            stderr = stack.enter_context(open_stderr_log(server, target.env.values()))
            transport = open_stdio(server, target, stderr, max_bytes=options.max_message_bytes)
        if isinstance(transport, AbstractAsyncContextManager):
            transport = LenientTransport(
                transport, on_end=callbacks.on_end, can_be_asked=callbacks.can_be_asked
            )
        elif not isinstance(transport, Server | MCPServer):
            raise ConfigError(
                f"{server!r}: {type(target).__name__!r} is no kind of server: "
                "pass a StdioServer, an HttpServer, or a server object of the mcp package"
            )
        yield await stack.enter_async_context(_client(transport, callbacks))


def _client(
    transport: LenientTransport | Server[Any] | MCPServer, callbacks: ConnectionCallbacks
) -> Client:
    async def answer(request: types.InputRequest, *kinds: type[T]) -> T | types.ErrorData:
        response: object = await callbacks.answer(request)
        for kind in kinds:
            if isinstance(response, kind):
                return response
        text = "the client answered something else"
        failure = types.ErrorData(code=types.INVALID_PARAMS, message=text)
        return response if isinstance(response, types.ErrorData) else failure

    async def sample(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        del context
        kinds = (types.CreateMessageResult, types.CreateMessageResultWithTools)
        return await answer(types.CreateMessageRequest(params=params), *kinds)

    async def elicit(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context
        return await answer(types.ElicitRequest(params=params), types.ElicitResult)

    async def list_roots(context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        del context
        return await answer(types.ListRootsRequest(), types.ListRootsResult)

    return Client(
        transport,
        cache=None,
        message_handler=callbacks.on_message,
        sampling_callback=sample,
        sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
        elicitation_callback=elicit,
        list_roots_callback=list_roots,
    )


async def _http_client(
    target: HttpServer, options: UpstreamOptions, on_status: Callable[[int], None]
) -> httpx2.AsyncClient:
    async def on_response(response: httpx2.Response) -> None:
        on_status(response.status_code)
        limit_response(response, max_bytes=options.max_message_bytes)

    async def on_request(request: httpx2.Request) -> None:
        check_literal(str(request.url), target.url, options.private_hosts)

    transport = guarded_transport(target.url, options.private_hosts)
    if transport is not None:
        # The SDK would tell of a refusal only that something failed.
        await transport.resolve_url(httpx2.URL(target.url))
    # Our own limits end a call sooner; these only keep a dead connection from living for ever.
    return httpx2.AsyncClient(
        headers={**target.headers, **_NO_ENCODING},
        timeout=httpx2.Timeout(_IDLE_TIMEOUT_S, read=_READ_TIMEOUT_S),
        transport=transport,
        auth=create_auth(target.url, target.auth) if target.auth is not None else None,
        event_hooks={"request": [on_request], "response": [on_response]},
    )


def limit_response(response: httpx2.Response, *, max_bytes: int) -> None:
    """Make reading *response* fail beyond *max_bytes*, unless it is a stream of events.

    Raises:
        httpx2.DecodingError: It is packed, which was not asked for.
    """
    if response.headers.get("content-encoding", "").strip().lower() not in _UNPACKED:
        raise httpx2.DecodingError("the answer is packed, which was not asked for")
    is_stream = response.headers.get("content-type", "").lower().startswith(_EVENT_STREAM)
    if not is_stream and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _LimitedStream(response.stream, max_bytes)


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                # Of the kind that the SDK takes for the failure of this one request.
                raise httpx2.StreamError("the answer is too long")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()

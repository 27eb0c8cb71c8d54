"""Transports for each type of target, with limits on answers, and the session opened on them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import httpx2
from mcp import Client, ClientSession, MCPError, types
from mcp.client.session import MessageHandlerFnT
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer, Server
from pydantic import ValidationError

from gateway.errors import ConfigError, missing_plugin
from gateway.mcp.bearer_auth import BearerAuth
from gateway.mcp.dispatcher import EXCHANGE, Exchange, LenientDispatcher
from gateway.mcp.oauth import LoopbackSignIn, oauth_client
from gateway.mcp.servers import HttpServer, StdioServer, TokenExchange
from gateway.mcp.ssrf_guard import guarded_transport
from gateway.mcp.stdio import open_stdio
from gateway.mcp.token_exchange import ExchangeAuth
from gateway.mcp.traffic import Traffic, ValueCounter
from gateway.mcp.validation import repair_message
from gateway.options import UpstreamOptions

_IDLE_TIMEOUT_S = 30.0
_READ_TIMEOUT_S = 600.0
_HEX = rb"[0-9a-fA-F]{2}"
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB]%b\\u[dD][c-fC-F]%b|(\\u[dD][89a-fA-F]%b)|\\\\" % (_HEX, _HEX, _HEX)
)
"""Pattern of the JSON escapes of surrogates and backslashes. Its group matches an unpaired
surrogate."""
_UNCOMPRESSED = frozenset({"", "identity"})
_IDENTITY_ENCODING = {"Accept-Encoding": "identity"}
"""Header that refuses compression, because a few compressed bytes may expand to any length."""
_EVENT_STREAM = "text/event-stream"
_LINE_COST_BYTES = 2000
"""Cost of each line of an event stream, as the number of bytes that take the same time to read."""
_PIECE_BYTES = 8192
_EMPTY_LINE = re.compile(rb"\n\r?\n|\r\r")


@dataclass(slots=True, kw_only=True)
class ConnectionCallbacks:
    """Callbacks and traffic counter of one connection."""

    on_end: Callable[[], None]
    on_message: MessageHandlerFnT
    """Called with each notification of the server."""
    answer: Callable[[types.InputRequest], Awaitable[types.InputResponse | types.ErrorData]]
    """Returns the caller's answer to a request of the server."""
    can_be_asked: bool = False
    """True if the session may declare that callers can be asked."""
    sign_in: LoopbackSignIn | None = None
    """Handler of a sign-in; None if no person can be asked."""
    traffic: Traffic = field(default_factory=lambda: Traffic(UpstreamOptions()))
    """Counts and limits the data that the server sends."""


@asynccontextmanager
async def open_session(
    server: str, target: object, callbacks: ConnectionCallbacks
) -> AsyncIterator[ClientSession]:
    """Open a session with *target*, and close it after the block, in one task as anyio requires.

    *target* is a `StdioServer`, an `HttpServer`, or a server object or transport of the SDK.

    Raises:
        ConfigError: If *target* has another type.
    """
    answer = callbacks.answer
    session_options: dict[str, Any] = {
        "message_handler": callbacks.on_message,
        "sampling_callback": lambda _, params: answer(types.CreateMessageRequest(params=params)),
        "sampling_capabilities": types.SamplingCapability(tools=types.SamplingToolsCapability()),
        "elicitation_callback": lambda _, params: answer(types.ElicitRequest(params=params)),
        "list_roots_callback": lambda _: answer(types.ListRootsRequest()),
    }
    if isinstance(target, HttpServer) and target.openapi:
        if target.opener is None:
            raise missing_plugin(repr(server), "openapi")
        async with await _http_client(target, callbacks) as client:
            api = await target.opener(target, client, callbacks.traffic.options.max_message_bytes)
            async with open_session(server, api, callbacks) as session:
                yield session
        return
    if isinstance(target, Server | MCPServer):
        async with Client(target, cache=None, **session_options) as client:
            yield client.session
        return
    async with (
        _transport(server, target, callbacks) as (read, write),
        ClientSession(
            dispatcher=LenientDispatcher(read, write, callbacks), **session_options
        ) as session,
    ):
        await _negotiate(session)
        yield session


async def _negotiate(session: ClientSession) -> None:
    """Agree on protocol version 2026-07-28 if the server supports it, or else on an older one."""
    try:
        await session.discover()
    except (MCPError, ValidationError, RuntimeError):
        try:
            await session.initialize()
        except MCPError as error:
            if error.code != types.UNSUPPORTED_PROTOCOL_VERSION:
                raise
            # The server supports only newer versions, and its first answer probably came too late.
            await session.discover()


def _transport(
    server: str, target: object, callbacks: ConnectionCallbacks
) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    if isinstance(target, HttpServer):
        return _open_http(target, callbacks)
    if isinstance(target, StdioServer):
        return open_stdio(server, target, callbacks.traffic)
    if isinstance(target, AbstractAsyncContextManager):
        return target
    raise ConfigError(
        f"{server!r}: {type(target).__name__!r} is not a supported server: "
        "pass a StdioServer, an HttpServer, or a server object of the mcp package"
    )


async def _http_client(target: HttpServer, callbacks: ConnectionCallbacks) -> httpx2.AsyncClient:
    """Return an unopened HTTP client for *target* with all guards and limits."""
    traffic, options = callbacks.traffic, callbacks.traffic.options
    # Checked here, because the SDK would hide the reason of a refusal.
    transport = guarded_transport(target.url, options.private_hosts)
    await transport.resolve_url(httpx2.URL(target.url))
    # The API's document may be on another host, which must not get the headers.
    headers = {} if target.openapi else target.headers
    client = guarded_client(target.url, traffic, headers)
    auth = target.auth
    if isinstance(auth, TokenExchange):
        client.auth = ExchangeAuth(auth.token) if auth.token is not None else httpx2.Auth()
    elif auth is not None and callbacks.sign_in is not None:
        client.auth = oauth_client(target.url, auth, callbacks.sign_in)
    elif auth is not None:
        client.auth = BearerAuth(
            target.url,
            auth,
            lambda: guarded_client(target.url, Traffic(options)),
            timeout_s=options.connect_timeout_s,
        )
    return client


def guarded_client(
    url: str, traffic: Traffic, headers: Mapping[str, str] = MappingProxyType({})
) -> httpx2.AsyncClient:
    """Return an unopened HTTP client for *url* and its redirects, with all guards and limits.

    *traffic* counts the incoming data. *headers* are sent with every request.

    Raises:
        ConfigError: If *url* is not allowed.
    """

    async def on_response(response: httpx2.Response) -> None:
        traffic.status = response.status_code
        _limit_response(response, traffic)
        exchange = EXCHANGE.get()
        if exchange is not None and _EVENT_STREAM in response.request.headers.get("accept", ""):
            await exchange.note(response)

    return httpx2.AsyncClient(
        headers={**headers, **_IDENTITY_ENCODING},
        # Only for dead connections. The gateway's own limits end a call sooner.
        timeout=httpx2.Timeout(_IDLE_TIMEOUT_S, read=_READ_TIMEOUT_S),
        transport=guarded_transport(url, traffic.options.private_hosts),
        event_hooks={"response": [on_response]},
    )


@asynccontextmanager
async def _open_http(
    target: HttpServer, callbacks: ConnectionCallbacks
) -> AsyncIterator[tuple[Any, Any]]:
    client = await _http_client(target, callbacks)
    if target.sse:
        # `sse_client` opens and closes the client.
        async with sse_client(target.url, httpx_client_factory=lambda *_, **__: client) as streams:
            yield streams
        return
    async with (
        client,
        streamable_http_client(
            target.url,
            http_client=client,
            max_sse_event_size=callbacks.traffic.options.max_message_bytes,
        ) as streams,
    ):
        yield streams


def _limit_response(response: httpx2.Response, traffic: Traffic) -> None:
    """Count the body of *response* while it is read, and fail if it exceeds the limits.

    Raises:
        httpx2.DecodingError: If the body is compressed, although this was not requested.
    """
    if response.headers.get("content-encoding", "").strip().lower() not in _UNCOMPRESSED:
        raise httpx2.DecodingError("the answer is compressed, although this was not requested")
    # A body is an event stream only if one was requested and the request succeeded. Other bodies
    # are read whole.
    is_expected = response.is_success and _EVENT_STREAM in response.request.headers.get(
        "accept", ""
    )
    kind = response.headers.get("content-type", "").lower() if is_expected else ""
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _CountedStream(response.stream, traffic, kind)


def _repair(text: bytes, exchange: Exchange, request_id: types.RequestId | None = None) -> bytes:
    try:
        text = repair_message(text, request_id)
    except (ValueError, RecursionError):
        return text
    exchange.is_answered = True
    return text


def _repair_event(event: bytes, exchange: Exchange) -> bytes:
    lines = event.splitlines()
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
    if (repaired := _repair(data, exchange)) == data:
        return event
    others = (line for line in lines if line and not line.startswith(b"data:"))
    return b"\n".join((*others, b"data: " + repaired, b"", b""))


def _replace_surrogate(match: re.Match[bytes]) -> bytes:
    return b"?" if match[1] else match[0]


class _CountedStream(httpx2.AsyncByteStream):
    """Body of an HTTP answer, counted and repaired while it is read.

    An unpaired surrogate is replaced by ``?``, because the SDK would reject the whole message. If
    the body raises an error, the SDK fails only this request.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, traffic: Traffic, kind: str) -> None:
        self._inner = inner
        self._traffic = traffic
        self._has_events = kind.startswith(_EVENT_STREAM)
        self._is_answer = kind.startswith("application/json")
        self._size = 0
        self._line_ends = b""
        self._values = ValueCounter(traffic.options.max_message_values)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = EXCHANGE.get() or Exchange()
        buffer = bytearray()
        async for chunk in self._inner:
            for offset in range(0, len(chunk), _PIECE_BYTES):
                piece = chunk[offset : offset + _PIECE_BYTES]
                await self._count(piece)
                start = max(len(buffer) - 3, 0)
                buffer += piece
                while self._has_events and (end := _EMPTY_LINE.search(buffer, start)):
                    event = _ESCAPE.sub(_replace_surrogate, bytes(buffer[: end.end()]))
                    del buffer[: end.end()]
                    start = 0
                    yield _repair_event(event, exchange)
                    # If the SDK continues reading, the event was not the answer.
                    exchange.is_answered = False
            if self._has_events and len(buffer) > self._traffic.options.max_message_bytes:
                # Passed on, because the SDK rejects an incomplete event as too long.
                yield bytes(buffer)
                buffer.clear()
        body = _ESCAPE.sub(_replace_surrogate, bytes(buffer))
        yield _repair(body, exchange, exchange.request_id) if self._is_answer else body

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _count(self, piece: bytes) -> None:
        options, messages, size = self._traffic.options, [piece], len(piece)
        if self._has_events:
            messages = _EMPTY_LINE.split(self._line_ends + piece)
            self._line_ends = messages[-1][len(messages[-1].rstrip(b"\r\n")) :][-2:]
            size += _LINE_COST_BYTES * (piece.count(b"\n") + piece.count(b"\r"))
            if not await self._traffic.admit(len(messages) - 1):
                raise httpx2.StreamError("the server sent too much")
        else:
            self._size += size
        await self._traffic.pace(size)
        for number, message in enumerate(messages):
            if number:
                self._values = ValueCounter(options.max_message_values)
            if self._values.add(message) or self._size > options.max_message_bytes:
                raise httpx2.StreamError("the answer is too long")

"""Dispatcher that sends requests to a server and records how the server answered each of them.

The SDK uses the same errors for its own failures (such as a lost connection) and for answers of
the server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
from anyio.abc import ObjectSendStream
from mcp import MCPError, types
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId

from gateway.mcp.error_mapping import UNAUTHORIZED, NoAnswerError
from gateway.mcp.server_requests import declare_capabilities
from gateway.mcp.traffic import Traffic
from gateway.mcp.validation import hide_raw, read_message

_NOT_FOUND = 404
_SESSION_STATUSES = frozenset({400, _NOT_FOUND, 410, 422})
_SESSION_WORDS = re.compile(rb"session|initiali[sz]e", re.IGNORECASE)
_HANDLER_ERRORS = frozenset({types.INVALID_PARAMS, types.METHOD_NOT_FOUND, types.INTERNAL_ERROR})
"""JSON-RPC error codes which show that the request reached its handler."""
_MAX_SEARCH_BYTES = 4096


@dataclass(slots=True, eq=False)
class Exchange:
    """A request, and the state of its HTTP answer. Over other transports, the defaults stay."""

    request_id: RequestId | None = None
    status: int = 0
    """HTTP status of the last answer; 0 before an answer, and without HTTP."""
    is_answered: bool = True
    """False while the HTTP answer contains no message of the server. Errors then come from the
    SDK.
    """
    is_expired: bool = False
    """True if the server no longer knows the session, and so did not handle the request."""

    async def note(self, response: httpx2.Response) -> None:
        """Record the status of *response*, and read the body of an error."""
        self.status, self.is_answered = response.status_code, False
        if not response.is_error:
            return
        body, code = b"", None
        # The body may be too long, or not a JSON-RPC message.
        with suppress(httpx2.StreamError, ValueError, RecursionError):
            body = await response.aread()
            message = read_message(body)
            code = message.error.code if isinstance(message, JSONRPCError) else None
        self.is_answered = code is not None
        if "mcp-session-id" in response.request.headers and self.status in _SESSION_STATUSES:
            names_session = _SESSION_WORDS.search(body[:_MAX_SEARCH_BYTES]) is not None
            self.is_expired = code not in _HANDLER_ERRORS and (
                self.status == _NOT_FOUND or names_session
            )


EXCHANGE: ContextVar[Exchange | None] = ContextVar("gateway_exchange", default=None)
"""Exchange of the request that the current task sends, or whose answer it reads."""


class LenientDispatcher(JSONRPCDispatcher[TransportContext]):
    """SDK dispatcher that accepts more results, and reports the end of the connection."""

    def __init__(self, read: Any, write: Any, callbacks: Any) -> None:
        super().__init__(read, _LimitedSender(write, callbacks.traffic))
        self._callbacks = callbacks

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Any = None, **routing: Any
    ) -> dict[str, Any]:
        """Send a request with the capabilities of its caller; return the result after `hide_raw`.

        Raises:
            BrokenPipeError: If the server did not get the request, or no longer knows the session.
            NoAnswerError: If the server did not answer by JSON-RPC.
            MCPError: If the server answered with an error.
        """
        if self._closed:
            # The SDK would raise the same error as for a request that was lost in transit.
            raise BrokenPipeError
        self._callbacks.traffic.expect_answer()
        declared = declare_capabilities(
            method, params or {}, can_be_asked=self._callbacks.can_be_asked
        )
        exchange = Exchange()
        token = EXCHANGE.set(exchange)
        try:
            result = await super().send_raw_request(method, declared, opts, **routing)
        except MCPError as error:
            if exchange.is_expired:
                raise BrokenPipeError from error
            is_closed = self._closed and error.message == "Connection closed"
            if is_closed or not exchange.is_answered or exchange.status in UNAUTHORIZED:
                raise NoAnswerError(error, status=exchange.status) from error
            raise
        finally:
            EXCHANGE.reset(token)
        return hide_raw(method, result)

    async def run(self, *handlers: Any, **options: Any) -> None:
        """Read messages until the connection ends, then call ``on_end``."""
        await super().run(*handlers, **options)
        self._callbacks.on_end()


class _LimitedSender(ObjectSendStream[SessionMessage]):
    """Sends messages, but no answers while the server leaves too many unread."""

    def __init__(self, inner: Any, traffic: Traffic) -> None:
        self._inner = inner
        self._traffic = traffic

    async def send(self, item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            with self._traffic.answering() as is_allowed:
                if not is_allowed:
                    raise anyio.BrokenResourceError
                await self._inner.send(item)
            return
        if not isinstance(item.message, JSONRPCRequest):
            await self._inner.send(item)
            return
        (EXCHANGE.get() or Exchange()).request_id = item.message.id
        try:
            await self._inner.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            # The SDK would raise the same error as for a request that was lost in transit.
            raise BrokenPipeError from None

    async def aclose(self) -> None:
        await self._inner.aclose()

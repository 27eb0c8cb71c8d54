"""A transport around a transport: what the SDK would refuse whole is taken out before it looks.

The SDK validates a whole answer or loses it: one bad tool would cost all tools, one unknown content
block the whole result. So the answers to listings, calls and reads carry their raw form under
`RAW` in their ``_meta``, and the SDK is given the part of them that it surely accepts. A
result with a block of a known kind that is malformed is made one that the SDK refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from gateway.mcp.content_blocks import is_malformed
from gateway.mcp.listing_validation import TOOLS, drop_deep_nesting, find_fault
from gateway.mcp.server_requests import declare_capabilities
from gateway.types import JsonObject

RAW = "tool-gateway/raw"
"""The key in ``_meta``. Whatever a server itself puts there is overwritten."""
_CANCELLED = "notifications/cancelled"


@dataclass(slots=True)
class SendState:
    """What is known of one request on its way."""

    may_have_left: bool = False
    """True unless it is certain that the transport took nothing of it."""


CURRENT_SEND: ContextVar[SendState | None] = ContextVar("gateway_upstream_sending", default=None)
"""The request of this context; None if nobody needs to know whether it left."""


class _Stream(Protocol):
    async def aclose(self) -> None: ...

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool | None: ...


class _ReadStream(_Stream, Protocol):
    async def receive(self) -> SessionMessage | Exception: ...

    async def __anext__(self) -> SessionMessage | Exception: ...


class _WriteStream(_Stream, Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...


_S = TypeVar("_S", bound=_Stream)
_Transport = AbstractAsyncContextManager[tuple[_ReadStream, _WriteStream]]
_Strip = Callable[[JsonObject], JsonObject]
_Pending = dict[str, _Strip]
"""What to do with the result of each request that waits for one, by the request's id."""


class LenientTransport:
    """Wraps *inner*; calls *on_end* when nothing more can come from the server.

    What callers can be asked for is declared call by call, and for a whole session if
    *can_be_asked*.
    """

    def __init__(
        self, inner: _Transport, *, on_end: Callable[[], None], can_be_asked: bool = False
    ) -> None:
        self._inner = inner
        self._can_be_asked = can_be_asked
        self._on_end = on_end

    async def __aenter__(self) -> tuple[_Reader, _Writer]:
        read, write = await self._inner.__aenter__()
        pending: _Pending = {}
        return (
            _Reader(read, pending, self._on_end),
            _Writer(write, pending, can_be_asked=self._can_be_asked),
        )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class _Wrapper(Generic[_S]):
    def __init__(self, inner: _S, pending: _Pending) -> None:
        self._inner = inner
        self._pending = pending

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class _Writer(_Wrapper[_WriteStream]):
    """Remembers which requests have an answer that must be stripped."""

    def __init__(self, inner: _WriteStream, pending: _Pending, *, can_be_asked: bool) -> None:
        super().__init__(inner, pending)
        self._can_be_asked = can_be_asked

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        self._pending.pop(str(cancelled_request(message)), None)
        if not isinstance(message, JSONRPCRequest):
            await self._inner.send(item)
            return
        if message.method in _STRIPPERS:
            self._pending[str(message.id)] = _STRIPPERS[message.method]
        request = declare_capabilities(message, can_be_asked=self._can_be_asked)
        state = CURRENT_SEND.get() or SendState()
        # Before, not after: a send that is cancelled half-way may have left.
        state.may_have_left = True
        try:
            await self._inner.send(SessionMessage(request, item.metadata))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            state.may_have_left = False
            raise


class _Reader(_Wrapper[_ReadStream]):
    def __init__(self, inner: _ReadStream, pending: _Pending, on_end: Callable[[], None]) -> None:
        super().__init__(inner, pending)
        self._on_end = on_end

    @property
    def last_context(self) -> Context | None:
        """The context of the sender, which the SDK asks for by this name."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._strip(await self._inner.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return self._strip(await self._inner.__anext__())
        except StopAsyncIteration:
            self._on_end()
            raise

    def _strip(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if not isinstance(item, SessionMessage) or not isinstance(item.message, JSONRPCResponse):
            return item
        strip = self._pending.pop(str(item.message.id), None)
        if strip is None:
            return item
        result = strip(item.message.result)
        return SessionMessage(item.message.model_copy(update={"result": result}), item.metadata)


def cancelled_request(message: JSONRPCMessage) -> object:
    """Return the id of the request that *message* cancels; None if it cancels none."""
    if not isinstance(message, JSONRPCNotification) or message.method != _CANCELLED:
        return None
    return (message.params or {}).get("requestId")


def _strip_tools(result: JsonObject) -> JsonObject:
    tools = result.get("tools")
    if not isinstance(tools, list):
        return result
    raw: list[Any] = [drop_deep_nesting(tool) for tool in tools]
    # Name and schema are enough for the SDK: it reads the x-mcp-header marks from them.
    stripped = [
        {"name": tool["name"], "inputSchema": tool["inputSchema"]}
        for tool in raw
        if not find_fault(tool, TOOLS)
    ]
    return {**result, "tools": stripped, "_meta": _meta_with_raw(result, {"tools": raw})}


def _strip_content(result: JsonObject) -> JsonObject:
    content = result.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        return result
    if any(map(is_malformed, content)):
        return {**result, "content": None}
    raw = {key: result[key] for key in ("content", "structuredContent") if key in result}
    rest = {key: value for key, value in result.items() if key != "structuredContent"}
    return {**rest, "content": [], "_meta": _meta_with_raw(result, raw)}


def _strip_list(key: str) -> _Strip:
    def strip(result: JsonObject) -> JsonObject:
        items = result.get(key)
        if not isinstance(items, list):
            return result
        return {**result, key: [], "_meta": _meta_with_raw(result, {key: items})}

    return strip


def _meta_with_raw(result: JsonObject, raw: JsonObject) -> JsonObject:
    meta = result.get("_meta")
    return {**(meta if isinstance(meta, dict) else {}), RAW: raw}


_STRIPPERS: _Pending = {
    "tools/list": _strip_tools,
    "tools/call": _strip_content,
    "resources/list": _strip_list("resources"),
    "resources/templates/list": _strip_list("resourceTemplates"),
    "resources/read": _strip_list("contents"),
    "prompts/list": _strip_list("prompts"),
    "prompts/get": _strip_list("messages"),
}
"""By method."""

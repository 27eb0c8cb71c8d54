"""A transport around a transport: what the SDK would refuse whole is set aside before it looks.

The SDK validates a whole answer or loses it: one bad tool would cost all tools, one unknown content
block the whole result. So the answers to listings, calls and readings carry their raw form under
`RAW` in their ``_meta``, and the SDK is given the part of them that it surely accepts. A
result with a block of a known kind that is malformed is made one that the SDK refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from gateway.mcp.content_blocks import malformed
from gateway.mcp.listing_validation import fault, shallow
from gateway.mcp.server_requests import declaring
from gateway.types import JsonObject

RAW = "tool-gateway/raw"
"""The key in ``_meta``. Whatever a server itself puts there is overwritten."""


@dataclass(slots=True)
class Sending:
    """What is known of one request on its way."""

    left: bool = False
    """True unless it is certain that the transport took nothing of it."""


SENDING: ContextVar[Sending | None] = ContextVar("gateway_upstream_sending", default=None)
"""Set by who sends a request and wants to know."""

_CANCELLED = "notifications/cancelled"

_Asked = dict[str, Callable[[JsonObject], JsonObject]]
"""How to treat the answer to a request that is under way, by the request's id."""


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


class _Incoming(_Stream, Protocol):
    async def receive(self) -> SessionMessage | Exception: ...

    async def __anext__(self) -> SessionMessage | Exception: ...


class _Outgoing(_Stream, Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...


_Transport = AbstractAsyncContextManager[tuple[_Incoming, _Outgoing]]


class SetAside:
    """Wraps *inner*; tells through *ended* when nothing more can come from the server.

    What callers can be asked for is declared call by call, and for a whole session if *askable*.
    """

    def __init__(
        self, inner: _Transport, *, ended: Callable[[], None], askable: bool = False
    ) -> None:
        self._inner = inner
        self._askable = askable
        self._ended = ended

    async def __aenter__(self) -> tuple[_Reader, _Writer]:
        read, write = await self._inner.__aenter__()
        asked: _Asked = {}
        return _Reader(read, asked, self._ended), _Writer(write, asked, askable=self._askable)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class _Around:
    """Opens and closes what it stands around."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


class _Writer(_Around):
    """Remembers which requests have an answer that must be set aside."""

    def __init__(self, inner: _Outgoing, asked: _Asked, *, askable: bool) -> None:
        super().__init__(inner)
        self._inner = inner
        self._asked = asked
        self._askable = askable

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method in _ASIDE:
            self._asked[str(message.id)] = _ASIDE[message.method]
        if isinstance(message, JSONRPCRequest):
            item = SessionMessage(declaring(message, askable=self._askable), item.metadata)
        self._asked.pop(str(withdrawn(message)), None)
        sending = SENDING.get()
        if sending is None or not isinstance(message, JSONRPCRequest):
            await self._inner.send(item)
            return
        # Before, not after: a send that is cancelled half-way may have left.
        sending.left = True
        try:
            await self._inner.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            sending.left = False
            raise


class _Reader(_Around):
    def __init__(self, inner: _Incoming, asked: _Asked, ended: Callable[[], None]) -> None:
        super().__init__(inner)
        self._inner = inner
        self._asked = asked
        self._ended = ended

    @property
    def last_context(self) -> Context | None:
        """The context of the sender, which the SDK asks for by this name."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._set_aside(await self._inner.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return self._set_aside(await self._inner.__anext__())
        except StopAsyncIteration:
            self._ended()
            raise

    def _set_aside(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if not isinstance(item, SessionMessage) or not isinstance(item.message, JSONRPCResponse):
            return item
        treat = self._asked.pop(str(item.message.id), None)
        if treat is None:
            return item
        result = treat(item.message.result)
        return SessionMessage(item.message.model_copy(update={"result": result}), item.metadata)


def withdrawn(message: JSONRPCMessage) -> object:
    """Give the id of the request that *message* cancels; None if it cancels none."""
    if not isinstance(message, JSONRPCNotification) or message.method != _CANCELLED:
        return None
    return (message.params or {}).get("requestId")


def _tools_aside(result: JsonObject) -> JsonObject:
    tools = result.get("tools")
    if not isinstance(tools, list):
        return result
    raw: list[Any] = [shallow(tool) for tool in tools]
    # Name and schema are enough for the SDK: it reads the x-mcp-header marks from them.
    shown = [
        {"name": tool["name"], "inputSchema": tool["inputSchema"]}
        for tool in raw
        if not fault(tool)
    ]
    return {**result, "tools": shown, "_meta": _with_raw(result, {"tools": raw})}


def _content_aside(result: JsonObject) -> JsonObject:
    content = result.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        return result
    if any(map(malformed, content)):
        return {**result, "content": None}
    raw = {key: result[key] for key in ("content", "structuredContent") if key in result}
    shell = {key: value for key, value in result.items() if key != "structuredContent"}
    return {**shell, "content": [], "_meta": _with_raw(result, raw)}


def _list_aside(key: str) -> Callable[[JsonObject], JsonObject]:
    def aside(result: JsonObject) -> JsonObject:
        things = result.get(key)
        if not isinstance(things, list):
            return result
        return {**result, key: [], "_meta": _with_raw(result, {key: things})}

    return aside


def _with_raw(result: JsonObject, raw: JsonObject) -> JsonObject:
    meta = result.get("_meta")
    return {**(meta if isinstance(meta, dict) else {}), RAW: raw}


_ASIDE: _Asked = {
    "tools/list": _tools_aside,
    "tools/call": _content_aside,
    "resources/list": _list_aside("resources"),
    "resources/templates/list": _list_aside("resourceTemplates"),
    "resources/read": _list_aside("contents"),
    "prompts/list": _list_aside("prompts"),
    "prompts/get": _list_aside("messages"),
}

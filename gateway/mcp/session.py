"""One open MCP connection.

One task opens and closes it, because anyio requires that the task which entered a cancel scope also
leaves it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any

from mcp import ClientSession, MCPError, types

from gateway import errors
from gateway.mcp.error_mapping import (
    SDK_ERRORS,
    answer_text,
    connect_error,
    is_closed,
    request_error,
    timeout_error,
)
from gateway.mcp.listing import (
    Watchers,
    is_streamed,
    notify,
    read_listing,
    stream_changes,
    watch_lists,
)
from gateway.mcp.oauth import LoopbackSignIn, listen_for_sign_in
from gateway.mcp.server_requests import ActiveCalls, capability_error
from gateway.mcp.servers import HttpServer, OAuth
from gateway.mcp.ssrf_guard import check_url, is_local
from gateway.mcp.traffic import Traffic
from gateway.mcp.transports import ConnectionCallbacks, open_session
from gateway.mcp.validation import send_request
from gateway.options import UpstreamOptions
from gateway.runtime.json_schema import as_object, as_text
from gateway.runtime.library_logs import quiet_libraries
from gateway.runtime.text import clean
from gateway.types import Content, InvokeResult, JsonObject
from gateway.types.invocation import error_result
from gateway.types.listing import Listing, WatchCallbacks

_LIST_NOTIFICATIONS = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)
_RESOURCE_NOT_FOUND = -32002
_NOT_FOUND_CODES = frozenset({types.INVALID_PARAMS, _RESOURCE_NOT_FOUND})
"""Error codes of servers for an unknown resource. -32002 was used before 2026-07-28."""
_RESERVED_META_PREFIX = "io.modelcontextprotocol/"
"""Prefix of metadata keys that are not passed on to callers."""
_MAX_MESSAGE_CHARS = 4000
_UNSUBSCRIBE_TIMEOUT_S = 2.0
"""Maximum time to unsubscribe from a resource, in seconds."""


@dataclass(eq=False, repr=False)
class Session:
    """One MCP connection, which starts to open when the object is created.

    Create the object on the event loop that uses it.

    Args:
        target: As for `open_session`.
        on_change: Called when a list of the server (such as its tools) changed.
        can_be_asked: True if the session tells the server that callers can be asked.
        sign_in: Handler of a sign-in; None if no person can be asked.
    """

    close_timeout_s = 8.0
    """Maximum time that `close` waits, in seconds. A child that ignores SIGTERM needs over 4 s."""

    server: str
    target: object
    options: UpstreamOptions
    _: KW_ONLY
    on_change: Callable[[], None] = lambda: None
    can_be_asked: bool = False
    sign_in: LoopbackSignIn | None = None

    def __post_init__(self) -> None:
        self._calls = ActiveCalls(self.server, self.options)
        self._watchers: Watchers = []
        self._opened = asyncio.Event()
        self._ending = asyncio.Event()
        self._callbacks = ConnectionCallbacks(
            on_end=self._ending.set,
            on_message=self._receive,
            answer=self._calls.answer,
            can_be_asked=self.can_be_asked,
            sign_in=self.sign_in,
            traffic=Traffic(self.options, on_flood=self._ending.set),
        )
        self._session: ClientSession | None = None
        self._failure: errors.GatewayError | None = None
        self._is_closed = False
        self._owner = asyncio.create_task(self._run(), name=f"session of {self.server}")

    @property
    def alive(self) -> bool:
        """True if the session may still be usable."""
        return not self._ending.is_set()

    @property
    def flood(self) -> errors.UpstreamFloodError | None:
        """Error of a server that was disconnected because it sent too much, or None."""
        why = self._callbacks.traffic.flood
        return errors.UpstreamFloodError(self.server, why) if why else None

    async def ready(self) -> ClientSession:
        """Wait until the connection is open, and return the SDK's session.

        Raises:
            UpstreamError: If the connection could not be opened.
            ConfigError: If the type of the target is not supported.
        """
        await self._opened.wait()
        if self._failure is not None:
            raise self._failure
        if self._session is None:
            detail = "the connection was closed while it opened"
            raise errors.UpstreamError(self.server, detail, kind="connect", sent=False)
        return self._session

    async def list_tools(self) -> Listing:
        """Read every page of tools, resources and prompts, within the limits of the options."""
        session = await self.ready()
        with self._map_errors("tools/list", "list_timeout_s"):
            listing = await read_listing(session, self.server, self.options)
            if self._is_closed:
                # Closing the session may have cut the listing short.
                raise BrokenPipeError
            return listing

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call a tool once. See `Source.call`."""
        with self._map_errors("tools/call"):
            try:
                # `ClientSession.call_tool` would list the tools to check the answer, and lose the
                # answer if that fails.
                params = {"name": tool, "arguments": dict(arguments)}
                result = await self._send("tools/call", params)
            except MCPError as error:
                if (text := answer_text(error)) and not self._is_closed:
                    return error_result(tool_id, text)
                raise
            return _to_invoke_result(tool_id, result, max_bytes=self.options.max_result_bytes)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """See `ResourceSource.ask`."""
        with self._map_errors(method, not_found=_NOT_FOUND_CODES):
            result = await self._send(method, params)
            meta = result.pop("_meta", {})
            meta = {key: meta[key] for key in meta if not key.startswith(_RESERVED_META_PREFIX)}
            if meta:
                result["_meta"] = meta
            if len(json.dumps(result, ensure_ascii=False)) > self.options.max_result_bytes:
                detail = f"its answer to {method} is longer than UpstreamOptions.max_result_bytes"
                raise errors.UpstreamError(self.server, detail)
            return result

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """Report changes of *uri* until the session ends. See `Watchable.watch`."""
        session = await self.ready()
        not_found = _NOT_FOUND_CODES | {types.METHOD_NOT_FOUND}
        with self._map_errors("resources/subscribe", not_found=not_found):
            if is_streamed(session):
                await stream_changes(session, uri, callbacks, self.options.call_timeout_s)
            else:
                await self._subscribe(session, uri, callbacks)

    async def _subscribe(self, session: ClientSession, uri: str, callbacks: WatchCallbacks) -> None:
        capabilities = session.server_capabilities
        if not (capabilities and capabilities.resources and capabilities.resources.subscribe):
            raise errors.InvalidRequestError(f"the server does not report changes of {uri!r}")
        watcher = uri, callbacks
        self._watchers.append(watcher)
        try:
            with ExitStack() as stack:
                stack.callback(self._watchers.remove, watcher)
                async with asyncio.timeout(self.options.call_timeout_s):
                    await send_request(session, "resources/subscribe", {"uri": uri})
                callbacks.on_start()
                await self._ending.wait()
        except asyncio.CancelledError:
            if not any(watched == uri for watched, _ in self._watchers):
                with suppress(*SDK_ERRORS):
                    async with asyncio.timeout(_UNSUBSCRIBE_TIMEOUT_S):
                        await send_request(session, "resources/unsubscribe", {"uri": uri})
            raise

    async def close(self) -> None:
        """End the connection, and wait until the child process has ended."""
        self._is_closed = True
        self._ending.set()
        if not self._opened.is_set():
            self._owner.cancel()
        _, pending = await asyncio.wait({self._owner}, timeout=self.close_timeout_s)
        for owner in pending:
            owner.cancel()

    async def _send(self, method: str, params: JsonObject) -> dict[str, Any]:
        """Send a request. While its result requires input, ask the caller and send it again."""
        session = await self.ready()
        async with self._calls.start() as call:

            async def send(more: JsonObject) -> dict[str, Any]:
                return await send_request(
                    session, method, {**params, **more}, call.progress_listener
                )

            return await self._calls.input_rounds(call, send)

    async def _run(self) -> None:
        options = self.options
        try:
            with quiet_libraries(self.server):
                async with (
                    asyncio.timeout(options.connect_timeout_s) as limit,
                    open_session(self.server, self.target, self._callbacks) as session,
                    watch_lists(session, self.on_change),
                ):
                    limit.reschedule(None)
                    self._session = session
                    self._opened.set()
                    await self._ending.wait()
        except TimeoutError:
            self._failure = timeout_error(
                self.server, "connect", options, "connect_timeout_s", sent=False
            )
        except errors.ConfigError as error:
            self._failure = error
        except SDK_ERRORS as error:
            status = self._callbacks.traffic.status
            failure = connect_error(self.server, self.target, error, status=status)
            self._failure = self.flood or failure
        finally:
            if isinstance(self._failure, errors.UpstreamError):
                self._failure.stderr = tuple(self._callbacks.traffic.stderr.lines)
            self._ending.set()
            self._opened.set()

    async def _receive(self, message: types.ServerNotification | Exception) -> None:
        if isinstance(message, _LIST_NOTIFICATIONS):
            self.on_change()
        elif isinstance(message, types.ResourceUpdatedNotification):
            notify(self._watchers, message.params.uri)

    @contextmanager
    def _map_errors(
        self, method: str, limit: str = "call_timeout_s", *, not_found: frozenset[int] = frozenset()
    ) -> Iterator[None]:
        """Convert errors of the SDK in the block to errors of this package.

        *limit* names the option with the time limit. *not_found* are the error codes for a wrong
        request, for example an unknown URI.
        """
        try:
            with quiet_libraries(self.server):
                yield
        except errors.GatewayError:
            raise
        except TimeoutError as error:
            action = f"answer {method}"
            raise timeout_error(self.server, action, self.options, limit) from error
        except SDK_ERRORS as error:
            raise self._to_gateway_error(method, error, not_found) from error

    def _to_gateway_error(
        self, method: str, error: Exception, not_found: frozenset[int]
    ) -> errors.GatewayError:
        code = error.code if isinstance(error, MCPError) else 0
        if is_closed(error):
            self._ending.set()
        if flood := self.flood:
            return flood
        if isinstance(error, MCPError) and code in not_found:
            detail = clean(error.message, limit=_MAX_MESSAGE_CHARS)
            return errors.InvalidRequestError(f"{self.server!r} refused {method}: {detail}")
        if isinstance(error, MCPError) and code == types.MISSING_REQUIRED_CLIENT_CAPABILITY:
            return capability_error(self.server, error)
        return request_error(self.server, method, error, target=self.target)


def _to_invoke_result(tool_id: str, result: dict[str, Any], *, max_bytes: int) -> InvokeResult:
    """Return the result of a tool call; an error if its JSON is larger than *max_bytes*."""
    answer = {key: result[key] for key in ("content", "structuredContent") if key in result}
    size = len(json.dumps(answer, ensure_ascii=False))
    if size > max_bytes:
        return error_result(
            tool_id,
            f"The tool ran, but its answer of {size} characters is longer than "
            "UpstreamOptions.max_result_bytes: ask it for less.",
        )
    return InvokeResult(
        tool_id=tool_id,
        content=tuple(map(_to_content, result["content"])),
        structured=result.get("structuredContent"),
        is_error=bool(result.get("isError")),
    )


def _to_content(block: JsonObject) -> Content:
    text = (as_object(block.get("resource")) or block).get("text")
    return Content(type=str(block.get("type", "")), text=as_text(text), data=block)


async def sign_in(
    server: str, target: HttpServer, options: UpstreamOptions, on_address: Callable[[str], None]
) -> Listing:
    """Let a person sign in to *target*, store the tokens, and return the server's listing.

    A failed sign-in keeps the old tokens. ``connect_timeout_s`` limits the whole sign-in.

    Args:
        server: Name of the server in the gateway.
        target: Server. Its ``auth`` has the OAuth client and the token store.
        options: Limits of time and size.
        on_address: Called with the URL at which the person signs in.

    Raises:
        ConfigError: If the server does not use OAuth, or the callback port is not available.
        UpstreamError: If the sign-in or the listing after it failed.
    """
    auth = target.auth
    if not isinstance(auth, OAuth):
        raise errors.ConfigError(
            f'server {server!r} does not use OAuth: add "auth": {{"type": "oauth"}} next to its url'
        )

    def show_checked(url: str) -> None:
        # The person's browser opens this URL, so check it like requests.
        check_url(url, options.private_hosts, local=is_local(target.url))
        on_address(url)

    async with listen_for_sign_in(server, show_checked, port=auth.callback_port) as loopback:
        session = Session(server, target, options, sign_in=loopback)
        try:
            listing = await session.list_tools()
        finally:
            await session.close()
    if auth.tokens is not None and loopback.record:
        auth.tokens.write(loopback.record)
    return listing

"""One open MCP connection.

* One task opens, holds and closes it: anyio's cancel scopes must be left by the task that entered
  them.
* Other tasks of the same loop use it directly; when one is cancelled, the SDK tells the server.
* A session that ended stays ended. Nothing is ever sent twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from mcp import Client, MCPError, types
from pydantic import TypeAdapter

from gateway.errors import ConfigError, GatewayError, InvalidRequestError, UpstreamError
from gateway.mcp.error_mapping import FAULTS, failed, late, not_opened
from gateway.mcp.lenient_transport import SENDING, Sending
from gateway.mcp.listing import things_of, tools_of
from gateway.mcp.requests import NOT_FOUND, asked
from gateway.mcp.results import refusal, result_of
from gateway.mcp.sdk_logging import quietly
from gateway.mcp.server_requests import Backchannel, incapable
from gateway.mcp.subscriptions import Updates, follow
from gateway.mcp.transports import Ears, connected, following
from gateway.options import UpstreamOptions
from gateway.runtime.text import clean
from gateway.types import InvokeResult, JsonObject
from gateway.types.listing import Listing, WatchCallbacks

_Answer: TypeAlias = types.CallToolResult | types.InputRequiredResult
_ANSWER: TypeAdapter[_Answer] = TypeAdapter(_Answer)
_REFUSAL_CHARS = 4000


def _nobody() -> None:
    return


class Session:
    """A connection that begins to open when it is made, on the loop that uses it.

    Args:
        server: The host's name for the server.
        target: What `connected` takes.
        options: Limits of time and size.
        changed: Called when the server says that its lists changed.
        askable: Whether to tell servers that callers may be asked for something.
        close_timeout_s: How long `close` waits for the connection to end by itself.
    """

    def __init__(
        self,
        server: str,
        target: object,
        options: UpstreamOptions,
        *,
        changed: Callable[[], None] = _nobody,
        askable: bool = False,
        close_timeout_s: float = 8.0,
    ) -> None:
        # A child that ignores every signal but SIGKILL takes 4 s, and the SDK some time more.
        self._server = server
        self._target = target
        self._options = options
        self._changed = changed
        self._back = Backchannel(server, options)
        self._updates = Updates()
        self._askable = askable
        self._close_timeout_s = close_timeout_s
        self._opened = asyncio.Event()
        self._ending = asyncio.Event()
        self._client: Client | None = None
        self._failure: GatewayError | None = None
        self._status = 0
        self._owner = asyncio.create_task(self._hold(), name=f"session of {server}")

    @property
    def alive(self) -> bool:
        """Whether it may still be used, as far as is known."""
        return not self._ending.is_set()

    async def ready(self) -> None:
        """Wait until it is open.

        Raises:
            UpstreamError: It could not be opened.
            ConfigError: The target is no kind of server.
        """
        await self._ready()

    async def list_tools(self) -> Listing:
        """Read every page of tools, within the limits of the options, then what is besides."""
        client = await self._ready()
        with quietly(self._server):
            tools, more = await asyncio.gather(
                self._list(client), things_of(client, self._server, self._options)
            )
        more.heard(client.instructions or "")
        return more.beside(tools)

    async def _list(self, client: Client) -> Listing:
        limit_s = self._options.list_timeout_s
        sending = Sending()
        try:
            with _told(sending):
                async with asyncio.timeout(limit_s):
                    return await tools_of(client, self._server, self._options)
        except TimeoutError as error:
            raise late(self._server, "list its tools", limit_s, "list_timeout_s") from error
        except FAULTS as error:
            raise self._broken("tools/list", error, sending) from error

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call a tool, once; see `Source.call`."""
        client = await self._ready()
        limit_s = self._options.call_timeout_s
        sending = Sending()
        try:
            with quietly(self._server), _told(sending):
                async with self._back.call(limit_s) as call:
                    listener = self._back.listener(call)

                    async def send(said: types.InputResponses | None, state: str | None) -> _Answer:
                        # Not `Client.call_tool`: that lists the tools after the call to check the
                        # answer by their schemas, and loses it if the listing or the check fails.
                        return await client.session.send_request(
                            _request(tool, arguments, said, state),
                            _ANSWER,
                            progress_callback=listener,
                        )

                    answer = await self._back.rounds(call, send)
        except TimeoutError as error:
            raise late(self._server, "answer a call", limit_s, "call_timeout_s") from error
        except MCPError as error:
            if error.code == types.INVALID_PARAMS:
                return refusal(tool_id, error.message[:_REFUSAL_CHARS])
            raise self._broken("tools/call", error, sending) from error
        except FAULTS as error:
            raise self._broken("tools/call", error, sending) from error
        return result_of(tool_id, answer, max_bytes=self._options.max_result_bytes)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request that changes nothing; see `ResourceSource.ask`."""
        client = await self._ready()
        limit_s = self._options.call_timeout_s
        sending = Sending()
        try:
            with _told(sending):
                async with self._back.call(limit_s) as call:
                    return await asked(client, self._back, call, method, params, self._options)
        except TimeoutError as error:
            raise late(self._server, f"answer {method}", limit_s, "call_timeout_s") from error
        except MCPError as error:
            if error.code in NOT_FOUND:
                told = clean(error.message, limit=_REFUSAL_CHARS)
                raise InvalidRequestError(f"{self._server!r} refused {method}: {told}") from error
            raise self._broken(method, error, sending) from error
        except FAULTS as error:
            raise self._broken(method, error, sending) from error

    async def watch(self, uri: str, heard: WatchCallbacks) -> None:
        """Tell *heard* of changes of *uri* until the watching ends; see `Watchable.watch`."""
        client = await self._ready()
        limit_s = self._options.call_timeout_s
        method = "resources/subscribe"
        try:
            await follow(
                client,
                uri,
                heard,
                updates=self._updates,
                ended=self._ending.wait,
                limit_s=limit_s,
            )
        except InvalidRequestError:
            raise
        except TimeoutError as error:
            raise late(self._server, f"answer {method}", limit_s, "call_timeout_s") from error
        except MCPError as error:
            if error.code in NOT_FOUND or error.code == types.METHOD_NOT_FOUND:
                told = clean(error.message, limit=_REFUSAL_CHARS)
                raise InvalidRequestError(f"{self._server!r} refused {method}: {told}") from error
            raise self._broken(method, error, Sending()) from error
        except FAULTS as error:
            raise self._broken(method, error, Sending()) from error

    async def close(self) -> None:
        """End the connection and wait until the child is gone."""
        self._ending.set()
        if not self._opened.is_set():
            self._owner.cancel()
        _, late_ones = await asyncio.wait({self._owner}, timeout=self._close_timeout_s)
        for owner in late_ones:
            owner.cancel()

    async def _ready(self) -> Client:
        await self._opened.wait()
        if self._failure is not None:
            raise self._failure
        if self._client is None:
            told = "the connection was closed while it opened"
            raise UpstreamError(self._server, told, kind="connect", sent=False)
        return self._client

    async def _hold(self) -> None:
        limit_s = self._options.connect_timeout_s
        ears = Ears(
            ended=self._ending.set,
            status=self._hear,
            message=self._listen,
            asked=self._back.answer,
            askable=self._askable,
        )
        try:
            with quietly(self._server):
                async with (
                    asyncio.timeout(limit_s) as limit,
                    connected(self._server, self._target, self._options, ears) as client,
                    following(client, self._changed),
                ):
                    limit.reschedule(None)
                    self._client = client
                    self._opened.set()
                    await self._ending.wait()
        except TimeoutError:
            self._failure = late(self._server, "connect", limit_s, "connect_timeout_s", sent=False)
        except ConfigError as error:
            self._failure = error
        except FAULTS as error:
            self._failure = not_opened(self._server, self._target, error, status=self._status)
        finally:
            self._ending.set()
            self._opened.set()

    def _hear(self, status: int) -> None:
        self._status = status

    async def _listen(self, message: types.ServerNotification | Exception) -> None:
        if isinstance(message, _LIST_CHANGED):
            self._changed()
        elif isinstance(message, types.ResourceUpdatedNotification):
            self._updates.said(message.params.uri)

    def _broken(self, what: str, error: BaseException, sending: Sending) -> UpstreamError:
        if isinstance(error, MCPError) and error.code in _FATAL:
            self._ending.set()
        if isinstance(error, MCPError) and error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY:
            return incapable(self._server, error)
        return failed(
            self._server,
            what,
            error,
            sent=sending.left,
            status=self._status,
            target=self._target,
        )


_LIST_CHANGED = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)
_FATAL = frozenset({types.CONNECTION_CLOSED, types.INVALID_REQUEST})
"""Codes after which a connection is useless. The second is how the SDK says that an HTTP server has
forgotten the session."""


@contextmanager
def _told(sending: Sending) -> Iterator[None]:
    token = SENDING.set(sending)
    try:
        yield
    finally:
        SENDING.reset(token)


def _request(
    tool: str, arguments: JsonObject, said: types.InputResponses | None, state: str | None
) -> types.CallToolRequest:
    params = types.CallToolRequestParams(
        name=tool, arguments=dict(arguments), input_responses=said, request_state=state
    )
    return types.CallToolRequest(params=params)

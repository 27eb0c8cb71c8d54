"""One open MCP connection.

* One task opens, holds and closes it: anyio's cancel scopes must be left where they were entered.
* Other tasks of the same loop use it directly; when one is cancelled, the SDK tells the server.
* A session that ended stays ended. Nothing is ever sent twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mcp import Client, MCPError, types
from pydantic import TypeAdapter

from gateway.errors import ConfigError, GatewayError, UpstreamError
from gateway.limits import UpstreamOptions
from gateway.types import InvokeResult, JsonObject
from gateway.upstream.answers import refusal, result_of
from gateway.upstream.connect import Ears, connected, following
from gateway.upstream.faults import FAULTS, failed, late, not_opened
from gateway.upstream.quiet import quietly
from gateway.upstream.sieve import Sieve
from gateway.upstream.source import Listing
from gateway.upstream.transport import RAW, SENDING, Sending

_ANSWER: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)
_REFUSAL_CHARS = 4000


def _nobody() -> None:
    return


class Session:
    """A connection that opens at once; must be made on the loop that uses it.

    Args:
        server: The host's name for the server.
        target: What `connected` takes.
        options: Limits of time and size.
        changed: Called when the server says that its tools changed.
        close_timeout_s: How long `close` waits for the connection to end by itself.
    """

    def __init__(
        self,
        server: str,
        target: object,
        options: UpstreamOptions,
        *,
        changed: Callable[[], None] = _nobody,
        close_timeout_s: float = 8.0,
    ) -> None:
        # A child that ignores every signal but SIGKILL needs 4 s, and the SDK some time besides.
        self._server = server
        self._target = target
        self._options = options
        self._changed = changed
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
        """Read every page, within the limits of the options."""
        client = await self._ready()
        limit_s = self._options.list_timeout_s
        sending = Sending()
        try:
            with quietly(self._server), _told(sending):
                async with asyncio.timeout(limit_s):
                    return await self._walk(client)
        except TimeoutError as error:
            raise late(self._server, "list its tools", limit_s, "list_timeout_s") from error
        except FAULTS as error:
            raise self._broken("tools/list", error, sending) from error

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call a tool, once; see `Source.call`."""
        client = await self._ready()
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        )
        limit_s = self._options.call_timeout_s
        sending = Sending()
        try:
            with quietly(self._server), _told(sending):
                async with asyncio.timeout(limit_s):
                    # Not `Client.call_tool`: that lists the tools after the call to check the
                    # answer by their schemas, and loses it if the listing or the check fails.
                    answer = await client.session.send_request(request, _ANSWER)
        except TimeoutError as error:
            raise late(self._server, "answer a call", limit_s, "call_timeout_s") from error
        except MCPError as error:
            if error.code == types.INVALID_PARAMS:
                return refusal(tool_id, error.message[:_REFUSAL_CHARS])
            raise self._broken("tools/call", error, sending) from error
        except FAULTS as error:
            raise self._broken("tools/call", error, sending) from error
        if isinstance(answer, types.InputRequiredResult):
            raise UpstreamError(
                self._server, f"tool {tool!r} asks a person for input, which is not supported"
            )
        return result_of(tool_id, answer, max_bytes=self._options.max_result_bytes)

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
        ears = Ears(ended=self._ending.set, status=self._hear, message=self._listen)
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
        if isinstance(message, types.ToolListChangedNotification):
            self._changed()

    async def _walk(self, client: Client) -> Listing:
        sieve = Sieve(self._server, self._options)
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(self._options.max_pages):
            page = await client.list_tools(cursor=cursor)
            _take(sieve, page)
            cursor = page.next_cursor
            if cursor is None or sieve.full:
                return sieve.listing()
            if cursor in seen:
                sieve.cut("the same page again and again")
                return sieve.listing()
            seen.add(cursor)
        sieve.cut(f"more than {self._options.max_pages} pages")
        return sieve.listing()

    def _broken(self, what: str, error: BaseException, sending: Sending) -> UpstreamError:
        if isinstance(error, MCPError) and error.code in _FATAL:
            self._ending.set()
        return failed(
            self._server,
            what,
            error,
            sent=sending.left,
            status=self._status,
            target=self._target,
        )


_FATAL = frozenset({types.CONNECTION_CLOSED, types.INVALID_REQUEST})
"""Codes after which a connection is of no more use. The second is how the SDK says that an HTTP
server has forgotten the session."""


@contextmanager
def _told(sending: Sending) -> Iterator[None]:
    token = SENDING.set(sending)
    try:
        yield
    finally:
        SENDING.reset(token)


def _take(sieve: Sieve, page: types.ListToolsResult) -> None:
    raw = (page.meta or {}).get(RAW)
    if raw is None:
        tools = [
            tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in page.tools
        ]
        sieve.take(tools)
        return
    sieve.take(raw["tools"], passed=frozenset(tool.name for tool in page.tools))

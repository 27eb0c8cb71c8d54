"""From a target to an open client of the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client, types
from mcp.client.session import ClientRequestContext, MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer, Server

from gateway.errors import ConfigError
from gateway.mcp.error_mapping import FAULTS
from gateway.mcp.lenient_transport import SetAside
from gateway.mcp.oauth_client import authentication
from gateway.mcp.response_limit import PLAIN, cap
from gateway.mcp.sdk_logging import stderr_log
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.mcp.ssrf_guard import check_literal, guarded
from gateway.mcp.stdio import stdio
from gateway.mcp.subscriptions import STREAMED_SINCE
from gateway.options import UpstreamOptions

_IDLE_TIMEOUT_S = 30.0
_READ_TIMEOUT_S = 600.0


Answer = Callable[[types.InputRequest], Awaitable[types.InputResponse | types.ErrorData]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ears:
    """The callbacks of one connection."""

    ended: Callable[[], None]
    """The connection is known to be over."""
    status: Callable[[int], None]
    """The status of each HTTP answer."""
    message: MessageHandlerFnT
    """What the server says unasked."""
    asked: Answer
    """Answers what the server asks of a caller."""
    askable: bool = False
    """Whether a session may say that callers can be asked."""


@asynccontextmanager
async def connected(
    server: str, target: object, options: UpstreamOptions, ears: Ears
) -> AsyncIterator[Client]:
    """Open a client for *target*, hold it, close it: all in one task (anyio's rule).

    Args:
        server: For the log.
        target: `StdioServer`, `HttpServer`, a server object or a transport of the SDK.
        options: Limits of size.
        ears: Hear what happens.

    Raises:
        ConfigError: *target* is none of these.
    """
    place: SetAside | Server[Any] | MCPServer
    async with AsyncExitStack() as stack:
        if isinstance(target, HttpServer):
            client = await stack.enter_async_context(
                await _http_client(target, options, ears.status)
            )
            http = streamable_http_client(
                target.url, http_client=client, max_sse_event_size=options.max_message_bytes
            )
            place = SetAside(http, ended=ears.ended, askable=ears.askable)
        elif isinstance(target, StdioServer):
            stderr = stack.enter_context(stderr_log(server, target.env.values()))
            pipes = stdio(server, target, stderr, max_bytes=options.max_message_bytes)
            place = SetAside(pipes, ended=ears.ended, askable=ears.askable)
        else:
            place = _object(server, target, ears)
        yield await stack.enter_async_context(_client(place, ears))


def _client(place: SetAside | Server[Any] | MCPServer, ears: Ears) -> Client:
    answer = ears.asked

    async def sample(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        del context
        found = await answer(types.CreateMessageRequest(params=params))
        return found if isinstance(found, _SAMPLED) else _no(found)

    async def elicit(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context
        found = await answer(types.ElicitRequest(params=params))
        return found if isinstance(found, types.ElicitResult) else _no(found)

    async def roots(context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        del context
        found = await answer(types.ListRootsRequest())
        return found if isinstance(found, types.ListRootsResult) else _no(found)

    return Client(
        place,
        cache=None,
        message_handler=ears.message,
        sampling_callback=sample,
        sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
        elicitation_callback=elicit,
        list_roots_callback=roots,
    )


_SAMPLED = (types.CreateMessageResult, types.CreateMessageResultWithTools)


def _no(found: object) -> types.ErrorData:
    if isinstance(found, types.ErrorData):
        return found
    return types.ErrorData(code=types.INVALID_PARAMS, message="the client answered something else")


@asynccontextmanager
async def following(client: Client, changed: Callable[[], None]) -> AsyncIterator[None]:
    """Call *changed* whenever the server says that a list changed, if it says so in a stream.

    Since 2026-07-28 a client has to ask for that; before, servers just say it.
    """
    can = client.server_capabilities
    tools, prompts, resources = (
        each is not None and bool(each.list_changed)
        for each in (can.tools, can.prompts, can.resources)
    )
    if client.protocol_version < STREAMED_SINCE or not (tools or prompts or resources):
        yield
        return

    async def follow() -> None:
        # If the stream ends, so does the following: the listing still has its lifetime.
        with suppress(*FAULTS):
            async with client.listen(
                tools_list_changed=tools,
                prompts_list_changed=prompts,
                resources_list_changed=resources,
            ) as events:
                async for _ in events:
                    changed()

    task = asyncio.create_task(follow(), name="tools/list_changed")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


def _object(server: str, target: object, ears: Ears) -> SetAside | Server[Any] | MCPServer:
    if isinstance(target, Server | MCPServer):
        return target
    if isinstance(target, AbstractAsyncContextManager):
        return SetAside(target, ended=ears.ended, askable=ears.askable)
    raise ConfigError(
        f"{server!r}: {type(target).__name__!r} is no kind of server: "
        "pass a StdioServer, an HttpServer, or a server object of the mcp package"
    )


async def _http_client(
    target: HttpServer, options: UpstreamOptions, heard: Callable[[int], None]
) -> httpx2.AsyncClient:
    async def note(response: httpx2.Response) -> None:
        heard(response.status_code)
        cap(response, max_bytes=options.max_message_bytes)

    async def judge(request: httpx2.Request) -> None:
        check_literal(str(request.url), target.url, options.private_hosts)

    transport = guarded(target.url, options.private_hosts)
    if transport is not None:
        # The SDK would tell of a refusal only that something failed.
        await transport.judged(httpx2.URL(target.url))
    # Our own limits end a call sooner; these only keep a dead connection from living for ever.
    return httpx2.AsyncClient(
        headers={**target.headers, **PLAIN},
        timeout=httpx2.Timeout(_IDLE_TIMEOUT_S, read=_READ_TIMEOUT_S),
        transport=transport,
        auth=authentication(target.url, target.auth) if target.auth is not None else None,
        event_hooks={"request": [judge], "response": [note]},
    )

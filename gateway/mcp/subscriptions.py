"""Changes of lists and of single resources, as a server reports them.

* Since 2026-07-28 a client opens a stream for them; before, it hears them in its session, those of
  a resource after it subscribed.
* A server may report a change of a part of what is watched: then the whole has changed too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from mcp import ClientSession, types
from mcp.client.subscriptions import SubscriptionLost, listen

from gateway.errors import InvalidRequestError
from gateway.mcp.error_mapping import SDK_ERRORS
from gateway.mcp.raw_results import send_request
from gateway.types.listing import WatchCallbacks

_STREAMED_SINCE = "2026-07-28"
_UNSUBSCRIBE_TIMEOUT_S = 2.0
"""How long to try to tell a server that a resource is no longer watched."""


class Subscriptions:
    """The watched resources of a connection where the server reports changes unasked."""

    def __init__(self) -> None:
        self._watchers: list[tuple[str, WatchCallbacks]] = []

    def notify(self, uri: str) -> None:
        """Report a change to all that watch *uri*, or a whole that it is part of."""
        for watched, callbacks in tuple(self._watchers):
            if uri == watched or uri.startswith(f"{watched.rstrip('/')}/"):
                callbacks.on_change()

    def is_watched(self, uri: str) -> bool:
        """Whether *uri* is watched."""
        return any(watched == uri for watched, _ in self._watchers)

    @contextmanager
    def add(self, uri: str, callbacks: WatchCallbacks) -> Iterator[None]:
        """Report changes of *uri* for as long as the block runs."""
        watcher = (uri, callbacks)
        self._watchers.append(watcher)
        try:
            yield
        finally:
            self._watchers.remove(watcher)


async def subscribe(
    session: ClientSession,
    uri: str,
    callbacks: WatchCallbacks,
    *,
    subscriptions: Subscriptions,
    wait_ended: Callable[[], Awaitable[object]],
    limit_s: float,
) -> None:
    """Report changes of *uri* until the watching ends. Raises what the SDK raises.

    Args:
        session: The connection.
        uri: As its server calls the resource.
        callbacks: Called when the watching begins, and at each change.
        subscriptions: Hears what the server reports unasked.
        wait_ended: Waits until the connection is over.
        limit_s: How many seconds it may take to begin.

    Raises:
        InvalidRequestError: The server does not report changes of this one.
        TimeoutError: It did not begin in time.
    """
    if _is_streamed(session):
        await _stream_changes(session, uri, callbacks, limit_s)
        return
    capabilities = session.server_capabilities
    if not (capabilities and capabilities.resources and capabilities.resources.subscribe):
        raise _not_reported(uri)
    try:
        with subscriptions.add(uri, callbacks):
            async with asyncio.timeout(limit_s):
                await send_request(session, "resources/subscribe", {"uri": uri})
            callbacks.on_start()
            await wait_ended()
    except asyncio.CancelledError:
        if not subscriptions.is_watched(uri):
            with suppress(*SDK_ERRORS):
                async with asyncio.timeout(_UNSUBSCRIBE_TIMEOUT_S):
                    await send_request(session, "resources/unsubscribe", {"uri": uri})
        raise


async def _stream_changes(
    session: ClientSession, uri: str, callbacks: WatchCallbacks, limit_s: float
) -> None:
    async with (
        asyncio.timeout(limit_s) as limit,
        listen(session, resource_subscriptions=[uri]) as events,
    ):
        if uri not in (events.honored.resource_subscriptions or ()):
            raise _not_reported(uri)
        limit.reschedule(None)
        callbacks.on_start()
        # How a stream ends says nothing about the server's health.
        with suppress(SubscriptionLost):
            async for _ in events:
                callbacks.on_change()


def _is_streamed(session: ClientSession) -> bool:
    return (session.protocol_version or "") >= _STREAMED_SINCE


def _not_reported(uri: str) -> InvalidRequestError:
    return InvalidRequestError(f"the server does not report changes of {uri!r}")


@asynccontextmanager
async def watch_lists(session: ClientSession, on_change: Callable[[], None]) -> AsyncIterator[None]:
    """Call *on_change* whenever the server reports in a stream that a list changed."""
    capabilities = session.server_capabilities or types.ServerCapabilities()
    tools, prompts, resources = (
        capability is not None and bool(capability.list_changed)
        for capability in (capabilities.tools, capabilities.prompts, capabilities.resources)
    )
    if not _is_streamed(session) or not (tools or prompts or resources):
        yield
        return

    async def follow() -> None:
        # If the stream ends, so does the watching: the listing still has its lifetime.
        with suppress(*SDK_ERRORS):
            async with listen(
                session,
                tools_list_changed=tools,
                prompts_list_changed=prompts,
                resources_list_changed=resources,
            ) as events:
                async for _ in events:
                    on_change()

    task = asyncio.create_task(follow(), name="tools/list_changed")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})

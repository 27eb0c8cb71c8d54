"""Hearing of changes of single resources.

* Since 2026-07-28 a client opens a stream for it; before, it subscribes and hears in its session.
* A server may tell of a change of a part of what is watched: then the whole has changed too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from mcp import Client, types
from mcp.client.subscriptions import SubscriptionLost

from gateway.errors import InvalidRequestError
from gateway.mcp.error_mapping import FAULTS
from gateway.types.listing import WatchCallbacks

STREAMED_SINCE = "2026-07-28"
_LAST_WORD_S = 2.0
"""How long to try to tell a server that nobody watches any more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ear:
    uri: str
    heard: WatchCallbacks


class Updates:
    """Those who watch resources on a connection where the server tells of changes unasked."""

    def __init__(self) -> None:
        self._ears: list[_Ear] = []

    def said(self, uri: str) -> None:
        """Tell all who watch *uri*, or a whole that it is part of."""
        for ear in tuple(self._ears):
            if uri == ear.uri or uri.startswith(f"{ear.uri.rstrip('/')}/"):
                ear.heard.changed()

    def watched(self, uri: str) -> bool:
        """Whether anybody watches *uri*."""
        return any(ear.uri == uri for ear in self._ears)

    @asynccontextmanager
    async def heard(self, uri: str, heard: WatchCallbacks) -> AsyncIterator[None]:
        """Tell *heard* of changes of *uri* for as long as the block runs."""
        ear = _Ear(uri=uri, heard=heard)
        self._ears.append(ear)
        try:
            yield
        finally:
            self._ears.remove(ear)


async def follow(
    client: Client,
    uri: str,
    heard: WatchCallbacks,
    *,
    updates: Updates,
    ended: Callable[[], Awaitable[object]],
    limit_s: float,
) -> None:
    """Tell *heard* of changes of *uri* until the watching ends. Raises what the SDK raises.

    Args:
        client: The connection.
        uri: As its server calls the resource.
        heard: Told when the watching begins, and of each change.
        updates: Hears what the server says unasked.
        ended: Waits until the connection is over.
        limit_s: How many seconds it may take to begin.

    Raises:
        InvalidRequestError: The server does not tell of this one.
        TimeoutError: It did not begin in time.
    """
    if client.protocol_version >= STREAMED_SINCE:
        await _streamed(client, uri, heard, limit_s)
        return
    can = client.server_capabilities.resources
    if can is None or not can.subscribe:
        raise InvalidRequestError(f"the server does not tell of changes of {uri!r}")
    try:
        async with updates.heard(uri, heard):
            params = types.SubscribeRequestParams(uri=uri)
            async with asyncio.timeout(limit_s):
                await client.session.send_request(
                    types.SubscribeRequest(params=params), types.EmptyResult
                )
            heard.began()
            await ended()
    except asyncio.CancelledError:
        if not updates.watched(uri):
            await _unsubscribe(client, uri)
        raise


async def _streamed(client: Client, uri: str, heard: WatchCallbacks, limit_s: float) -> None:
    async with (
        asyncio.timeout(limit_s) as limit,
        client.listen(resource_subscriptions=[uri]) as events,
    ):
        if uri not in (events.honored.resource_subscriptions or ()):
            raise InvalidRequestError(f"the server does not tell of changes of {uri!r}")
        limit.reschedule(None)
        heard.began()
        # How a stream ends says nothing about the server's health.
        with suppress(SubscriptionLost):
            async for _ in events:
                heard.changed()


async def _unsubscribe(client: Client, uri: str) -> None:
    params = types.UnsubscribeRequestParams(uri=uri)
    with suppress(*FAULTS):
        async with asyncio.timeout(_LAST_WORD_S):
            await client.session.send_request(
                types.UnsubscribeRequest(params=params), types.EmptyResult
            )

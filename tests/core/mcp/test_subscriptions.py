"""Watching single resources over connections that end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from mcp import types
from mcp.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from gateway.errors import ClosedError, InvalidRequestError, UpstreamError
from gateway.mcp.listing import notify
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.sources import McpSource, TransformedSource
from gateway.types import WatchCallbacks
from tests.core.mcp.conftest import Hostile, lines, until, wait_for_lines


class WatchCounter:
    """Callbacks of a watch that count its starts and the reported changes. Thread-safe."""

    def __init__(self) -> None:
        self.begun: list[None] = []
        self.changes: list[None] = []
        self.callbacks = WatchCallbacks(
            on_start=lambda: self.begun.append(None), on_change=lambda: self.changes.append(None)
        )

    @property
    def counts(self) -> tuple[int, int]:
        """Number of starts, and number of reported changes."""
        return len(self.begun), len(self.changes)


async def test_watched_resource_is_watched_again_after_its_server_ended(
    hostile: Hostile, record: Path
) -> None:
    """A change is also reported, because the resource may have changed in between."""
    source, watcher = hostile("watched", backoff_s=0.01), WatchCounter()
    watching = asyncio.create_task(TransformedSource(source).watch("a:b", watcher.callbacks))
    await until(lambda: watcher.counts == (1, 1))

    os.kill(int(lines(record)[-1].split()[-1]), signal.SIGKILL)
    await until(lambda: watcher.counts == (2, 3))
    watching.cancel()
    await wait_for_lines(record, "unsubscribe a:b")

    assert not source.supervisor.breaker.is_open
    await source.close()


async def test_watching_a_resource_does_not_count_as_a_call_and_ends_with_the_source(
    hostile: Hostile, record: Path
) -> None:
    """The server is unsubscribed only after both watchers of the resource have ended."""
    source, first, second = hostile("watched", max_in_flight=1), WatchCounter(), WatchCounter()
    watching = asyncio.create_task(source.watch("a:b", first.callbacks))
    other = asyncio.create_task(source.watch("a:b", second.callbacks))
    await until(lambda: len(first.begun) == len(second.begun) == 1)

    answer = await source.call("good", {}, tool_id="x")
    watching.cancel()
    await asyncio.wait({watching})
    await source.close()
    with pytest.raises(ClosedError):
        await other

    assert "pong" == answer.text
    assert "unsubscribe a:b" not in lines(record)


async def test_second_watch_of_a_resource_is_also_unsubscribed_at_its_end(
    hostile: Hostile, record: Path
) -> None:
    """It begins while the unsubscription of the first watch is still pending."""
    source, first, second = hostile("watched"), WatchCounter(), WatchCounter()
    watching = asyncio.create_task(source.watch("a:slow", first.callbacks))
    await until(lambda: first.counts == (1, 1))
    watching.cancel()
    await wait_for_lines(record, "unsubscribe a:slow")
    other = asyncio.create_task(source.watch("a:slow", second.callbacks))
    await until(lambda: second.counts == (1, 1))
    other.cancel()
    await until(lambda: lines(record).count("unsubscribe a:slow") == 2)
    await source.close()
    await asyncio.wait({watching, other})

    assert (1, 1) == first.counts


@pytest.mark.parametrize(
    ("mode", "uri", "fault"),
    [
        ("plain", "a:b", InvalidRequestError),
        ("watched", "a:broken", UpstreamError),
        ("watched", "a:silent", UpstreamError),
        ("exits_at_start", "a:b", UpstreamError),
    ],
)
async def test_watching_a_resource_raises_an_error_if_it_cannot_begin(
    hostile: Hostile, mode: str, uri: str, fault: type[Exception]
) -> None:
    source, watcher = hostile(mode, backoff_s=0.001, call_timeout_s=0.5), WatchCounter()

    with pytest.raises(fault):
        await source.watch(uri, watcher.callbacks)
    assert (0, 0) == watcher.counts


async def test_ended_stream_of_changes_is_opened_again(bridge: Bridge) -> None:
    """The end of a stream does not count as a failure of the server."""
    bus = InMemorySubscriptionBus()
    listen = ListenHandler(bus)
    server: Server[object] = Server("streaming", on_subscriptions_listen=listen)
    options = UpstreamOptions(backoff_s=0.001, breaker_failures=1)
    source, watcher = McpSource("s", server, bridge=bridge, options=options), WatchCounter()
    watching = asyncio.create_task(source.watch("a:b", watcher.callbacks))
    await until(lambda: len(watcher.begun) == 1)

    await bridge.run(_closed(listen))
    await until(lambda: len(watcher.begun) == 2)
    await bridge.run(_closed(listen))
    await until(lambda: len(watcher.begun) == 3)
    await bridge.run(lambda: bus.publish(ResourceUpdated(uri="a:b")))
    await until(lambda: len(watcher.changes) == 3)

    watching.cancel()
    assert not source.supervisor.breaker.is_open
    await source.close()


async def test_watching_raises_an_error_if_the_server_does_not_acknowledge_the_resource(
    bridge: Bridge,
) -> None:

    async def listen(context: object, params: object) -> types.SubscriptionsListenResult:
        nothing = types.SubscriptionsListenRequestParams(notifications=types.SubscriptionFilter())
        del params
        return await ListenHandler(InMemorySubscriptionBus())(context, nothing)  # type: ignore[arg-type]  # as it came

    server: Server[object] = Server("deaf", on_subscriptions_listen=listen)
    source = McpSource("s", server, bridge=bridge, options=UpstreamOptions())

    with pytest.raises(InvalidRequestError, match="does not report changes of 'a:b'"):
        await source.watch("a:b", WatchCounter().callbacks)
    await source.close()


def _closed(listen: ListenHandler) -> Callable[[], Coroutine[None, None, None]]:
    async def close() -> None:
        listen.close()

    return close


def test_change_of_a_part_of_a_resource_is_reported_for_the_whole() -> None:
    """``a:b/c`` is a part of ``a:b``, but ``a:bc`` is not."""
    watcher = WatchCounter()
    watchers = [("a:b/", watcher.callbacks), ("a:d", watcher.callbacks)]
    for uri in ("a:b/", "a:b/c", "a:bc", "a:d", "a:de", "other"):
        notify(watchers, uri)

    assert 3 == len(watcher.changes)

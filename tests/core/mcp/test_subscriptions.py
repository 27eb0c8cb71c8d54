"""Hearing of changes of single resources, over connections that end."""

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
from tests.core.mcp.conftest import Hostile, lines, noted, until


class Ear:
    """Counts what is reported, on any thread."""

    def __init__(self) -> None:
        self.begun: list[None] = []
        self.changes: list[None] = []
        self.callbacks = WatchCallbacks(
            on_start=lambda: self.begun.append(None), on_change=lambda: self.changes.append(None)
        )

    @property
    def counts(self) -> tuple[int, int]:
        """How often the watching began, and how often a change was reported."""
        return len(self.begun), len(self.changes)


async def test_a_resource_is_watched_again_after_its_server_died(
    hostile: Hostile, record: Path
) -> None:
    """And told to be another one: nobody knows what happened meanwhile."""
    source, ear = hostile("watched", backoff_s=0.01), Ear()
    watching = asyncio.create_task(TransformedSource(source).watch("a:b", ear.callbacks))
    await until(lambda: ear.counts == (1, 1))

    os.kill(int(lines(record)[-1].split()[-1]), signal.SIGKILL)
    await until(lambda: ear.counts == (2, 3))
    watching.cancel()
    await noted(record, "unsubscribe a:b")

    assert not source.supervisor.breaker.is_open
    await source.close()


async def test_a_watch_takes_nobodys_turn_and_ends_with_the_source(
    hostile: Hostile, record: Path
) -> None:
    """Two who watch one resource are subscribed until the last is gone."""
    source, first, second = hostile("watched", max_in_flight=1), Ear(), Ear()
    one = asyncio.create_task(source.watch("a:b", first.callbacks))
    other = asyncio.create_task(source.watch("a:b", second.callbacks))
    await until(lambda: len(first.begun) == len(second.begun) == 1)

    answer = await source.call("good", {}, tool_id="x")
    one.cancel()
    await asyncio.wait({one})
    await source.close()
    with pytest.raises(ClosedError):
        await other

    assert "pong" == answer.text
    assert "unsubscribe a:b" not in lines(record)


async def test_a_watch_that_ended_hears_nothing_and_a_next_one_is_ended_too(
    hostile: Hostile, record: Path
) -> None:
    """Also while the server takes its time to unsubscribe the first."""
    source, first, second = hostile("watched"), Ear(), Ear()
    one = asyncio.create_task(source.watch("a:slow", first.callbacks))
    await until(lambda: first.counts == (1, 1))
    one.cancel()
    await noted(record, "unsubscribe a:slow")
    other = asyncio.create_task(source.watch("a:slow", second.callbacks))
    await until(lambda: second.counts == (1, 1))
    other.cancel()
    await until(lambda: lines(record).count("unsubscribe a:slow") == 2)
    await source.close()
    await asyncio.wait({one, other})

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
async def test_what_never_began_is_an_error(
    hostile: Hostile, mode: str, uri: str, fault: type[Exception]
) -> None:
    """Nobody waits for what will not come."""
    source, ear = hostile(mode, backoff_s=0.001, call_timeout_s=0.5), Ear()

    with pytest.raises(fault):
        await source.watch(uri, ear.callbacks)
    assert (0, 0) == ear.counts


async def test_a_stream_that_ends_is_opened_anew(bridge: Bridge) -> None:
    """It says nothing of the server's health."""
    bus = InMemorySubscriptionBus()
    listen = ListenHandler(bus)
    server: Server[object] = Server("streaming", on_subscriptions_listen=listen)
    options = UpstreamOptions(backoff_s=0.001, breaker_failures=1)
    source, ear = McpSource("s", server, bridge=bridge, options=options), Ear()
    watching = asyncio.create_task(source.watch("a:b", ear.callbacks))
    await until(lambda: len(ear.begun) == 1)

    await bridge.run(_closed(listen))
    await until(lambda: len(ear.begun) == 2)
    await bridge.run(_closed(listen))
    await until(lambda: len(ear.begun) == 3)
    await bridge.run(lambda: bus.publish(ResourceUpdated(uri="a:b")))
    await until(lambda: len(ear.changes) == 3)

    watching.cancel()
    assert not source.supervisor.breaker.is_open
    await source.close()


async def test_a_stream_that_promises_nothing_is_refused(bridge: Bridge) -> None:
    """What it acknowledges is what it tells."""

    async def listen(context: object, params: object) -> types.SubscriptionsListenResult:
        nothing = types.SubscriptionsListenRequestParams(notifications=types.SubscriptionFilter())
        del params
        return await ListenHandler(InMemorySubscriptionBus())(context, nothing)  # type: ignore[arg-type]  # as it came

    server: Server[object] = Server("deaf", on_subscriptions_listen=listen)
    source = McpSource("s", server, bridge=bridge, options=UpstreamOptions())

    with pytest.raises(InvalidRequestError, match="does not report changes of 'a:b'"):
        await source.watch("a:b", Ear().callbacks)
    await source.close()


def _closed(listen: ListenHandler) -> Callable[[], Coroutine[None, None, None]]:
    async def close() -> None:
        listen.close()

    return close


def test_a_part_is_of_the_whole_and_a_longer_name_is_not() -> None:
    """``a:b/c`` is a part of ``a:b``, ``a:bc`` is another."""
    ear = Ear()
    watchers = [("a:b/", ear.callbacks), ("a:d", ear.callbacks)]
    for uri in ("a:b/", "a:b/c", "a:bc", "a:d", "a:de", "other"):
        notify(watchers, uri)

    assert 3 == len(ear.changes)

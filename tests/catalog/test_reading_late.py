"""A start takes what is told of a tool list; its tools are read when they are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.runtime.background_loop import Bridge
from gateway.runtime.telemetry import Telemetry
from gateway.sources.cached import LastingSource
from gateway.sources.prefetch import Ahead
from gateway.sources.registry import Registry, list_sources, read_late
from gateway.storage.listing_store import SqliteRecords
from gateway.types import ToolDefinition
from gateway.types.listing import Listing
from tests.catalog.room import LiveSource, Room, names
from tests.fakes import tool
from tests.mcp.conftest import until


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    bridge = Bridge("lasting")
    yield Room(bridge, tmp_path)
    bridge.close()


def next_start(room: Room, live: LiveSource) -> LastingSource:
    """The source as a start has it that reads all lists in one go: without its tools."""
    ahead = Ahead(SqliteRecords(room.path, wall=room.wall))
    ahead.expect("f", "f")
    room.records = ahead
    source = room.source(live)
    assert source.at_hand() is not None
    return source


async def test_tools_are_read_when_they_are_wanted(room: Room) -> None:
    """They are the very ones that were listed, and those that stay are the same objects."""
    await room.source(LiveSource(tool("a"), tool("b"))).list_tools()
    source = next_start(room, LiveSource(tool("a"), tool("c")))
    before = (await source.list_tools()).tools

    source.expire()
    after = (await source.list_tools()).tools

    assert (["a", "b"], ["a", "c"]) == ([each.name for each in before], [x.name for x in after])
    assert before[0] is after[0]


async def test_what_another_process_listed_meanwhile_is_taken(room: Room) -> None:
    """The tools that were to be read are others by now; the server need not be asked for them."""
    await room.source(LiveSource(tool("a"))).list_tools()
    live = LiveSource(tool("never"))
    source = next_start(room, live)
    SqliteRecords(room.path, wall=room.wall).keep("f", "srv", Listing(tools=(tool("b"),)))

    assert ["b"] == names(await source.list_tools())
    assert not live.asked.is_set()


@pytest.mark.parametrize("tools", [(tool("b"),), (tool("a"), tool("b"))], ids=len)
@pytest.mark.parametrize("begin", [LastingSource.tend, LastingSource.outdate])
async def test_what_changed_is_told_of_though_nobody_can_read_what_was(
    room: Room, begin: Callable[[LastingSource], object], tools: tuple[ToolDefinition, ...]
) -> None:
    """Another process listed it first; the catalog still has what this one took at its start."""
    await room.source(LiveSource(tool("a"))).list_tools()
    source = next_start(room, LiveSource(*tools))
    SqliteRecords(room.path, wall=room.wall).keep("f", "srv", Listing(tools=tools))

    room.tick(100)
    begin(source)
    await until(lambda: room.changes == 1)

    assert [each.name for each in tools] == names(await source.list_tools())


async def test_what_was_forgotten_meanwhile_is_listed_anew(room: Room) -> None:
    """Also where a build has the list in its hands already."""
    await room.source(LiveSource(tool("a"))).list_tools()
    source = next_start(room, LiveSource(tool("new")))
    registry = Registry()
    registry.add(source, {})
    listed = await list_sources(registry.all(), {}, telemetry=Telemetry())
    room.records.forget("f")

    read = await read_late(registry.all(), listed, telemetry=Telemetry())

    assert 1 == len(listed["srv"].listing.tools)
    assert ["new"] == names(read["srv"].listing)

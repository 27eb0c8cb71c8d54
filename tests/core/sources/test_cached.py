"""A tool list that outlives its connection."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.catalog import COMMAND_LINE_PIN
from gateway.errors import InvalidRequestError, StoreError, UpstreamError, UpstreamTimeoutError
from gateway.options import Policy
from gateway.runtime.background_loop import Bridge
from gateway.runtime.telemetry import Telemetry
from gateway.sources import (
    Registration,
    Registry,
    StoredListing,
    StoredServer,
    list_sources,
    preload,
)
from gateway.storage import SqlCatalog
from gateway.testing import ManualClock
from gateway.types import JsonObject, Listing, ToolDefinition
from tests.core.mcp.conftest import until
from tests.core.sources.live_source import (
    OPTIONS,
    SILENT,
    BrokenStore,
    LiveSource,
    Room,
    codes,
    names,
    prompt,
    resource,
)
from tests.fakes import tool

TELEMETRY = Telemetry()
OLD = Path(__file__).parents[2] / "files" / "catalog-2.sql"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    bridge = Bridge("lasting")
    yield Room(bridge, tmp_path)
    bridge.close()


async def test_what_was_listed_once_is_known_at_the_next_start(room: Room) -> None:
    """Nothing is started for it; the source learns what it would have listed."""
    await room.source(LiveSource(tool("a"))).list_tools()
    live = LiveSource(tool("b"))

    listing = await room.source(live).list_tools()

    assert (["a"], 0, [listing]) == (names(listing), live.listings, live.learnt)


async def test_an_old_list_serves_while_it_is_read_anew(room: Room) -> None:
    await room.source(LiveSource(tool("a"))).list_tools()
    room.tick(99)
    live = LiveSource(tool("a"), tool("b"))
    source = room.source(live)
    before = await source.list_tools()
    source.refresh_if_stale()
    early = live.listings
    room.tick(1)
    source.refresh_if_stale()
    source.refresh_if_stale()
    await until(lambda: room.changes == 1)
    after = await source.list_tools()

    assert (0, 1) == (early, live.listings)
    assert (["a"], ["a", "b"]) == (names(before), names(after))


async def test_a_list_that_stayed_the_same_changes_nothing(room: Room) -> None:
    live = LiveSource(tool("a"))
    source = room.source(live)
    await source.list_tools()
    live.tools = [tool("a")]
    room.tick(100)
    source.refresh_if_stale()
    await until(lambda: live.listings == 2)
    await room.bridge.run(_nothing)
    await source.list_tools()

    assert 0 == room.changes


async def _nothing() -> None:
    return


async def test_a_server_that_says_that_it_changed_is_listed_again(room: Room) -> None:
    """Also when it says so while it is being listed."""
    live = LiveSource(tool("a"))
    source = room.source(live)
    source.invalidate()
    await source.list_tools()
    first = live.listings
    live.door.clear()
    live.reached.clear()
    live.tools = [tool("b")]
    source.invalidate()
    await until(live.reached.is_set)
    source.invalidate()
    live.door.set()
    await until(lambda: room.changes == 1)

    assert (1, 3) == (first, live.listings)
    assert ["b"] == names(await source.list_tools())


async def test_a_server_that_says_so_whenever_it_is_listed_is_listed_twice(room: Room) -> None:
    """And not for ever: some do."""
    live = LiveSource(tool("a"))
    source = room.source(live)
    await source.list_tools()
    live.when_listed = source.invalidate
    source.invalidate()
    await until(lambda: live.listings >= 3)
    live.reached.clear()
    for _ in range(20):
        await room.bridge.run(_nothing)
    listing = await source.list_tools()

    assert (["a"], 3, False) == (names(listing), live.listings, live.reached.is_set())


async def test_a_server_that_always_says_so_is_listed_a_few_times(room: Room) -> None:
    """Each listing that differs is a build: the others would wait for it.

    Five renewals, each of which reads once more if the list changed meanwhile.
    """
    live = LiveSource(tool("a"))
    source = room.source(live)
    await source.list_tools()
    for number in range(50):
        live.tools = [tool(f"a{number}")]
        source.invalidate()
        for _ in range(20):
            await room.bridge.run(_nothing)

    assert 3 <= live.listings <= 1 + 5 * 2


async def test_a_list_that_cannot_be_renewed_is_kept_and_says_so(room: Room) -> None:
    """A server that sleeps, or is gone for an hour, stays searchable; it is tried again."""
    live = LiveSource(tool("a"))
    source = room.source(live)
    await source.list_tools()
    live.fail_with = UpstreamError("srv", "down")
    room.tick(100)
    source.refresh_if_stale()
    await until(lambda: room.changes == 1)
    stale = await source.list_tools()
    room.tick(10)
    source.refresh_if_stale()
    await until(lambda: live.listings == 3)
    live.fail_with = None

    def renewed() -> bool:
        # That the source was asked is seen before that it failed: tick until it is due again.
        room.tick(10)
        source.refresh_if_stale()
        return room.changes == 2

    await until(renewed)
    fresh = await source.list_tools()

    assert (["a"], ["source_stale"]) == (names(stale), codes(stale))
    assert (["a"], ()) == (names(fresh), fresh.diagnostics)


async def test_the_first_listing_is_waited_for_but_not_for_long(room: Room) -> None:
    """One slow server must not hold the first search; its tools come in later."""
    room.options = replace(OPTIONS, first_listing_s=0.01)
    live = LiveSource(tool("a"))
    live.door.clear()
    source = room.source(live)

    with pytest.raises(UpstreamTimeoutError, match="come as soon as they are"):
        await source.list_tools()
    live.door.set()
    await until(lambda: room.changes == 1)

    assert (["a"], 1) == (names(await source.list_tools()), live.listings)


async def test_an_expired_list_is_read_anew_by_the_next_caller(room: Room) -> None:
    """A refresh that fails leaves the old list and says so; the next one tries again."""
    live = LiveSource(tool("a"))
    source = room.source(live)
    await source.list_tools()
    live.tools = [tool("b")]
    live.fail_with = UpstreamError("srv", "down")
    source.expire()
    stale = await source.list_tools()
    live.fail_with = None
    source.expire()

    assert (["a"], ["source_stale"]) == (names(stale), codes(stale))
    assert ["b"] == names(await source.list_tools()) == names(await source.list_tools())
    assert 3 == live.listings


@pytest.mark.parametrize(
    ("fault", "expected"),
    [(None, (["b"], [])), (UpstreamError("s", "down"), (["a"], ["source_stale"]))],
)
@pytest.mark.parametrize("passed_s", [150.5, -60.5])
async def test_a_list_of_another_start_that_is_too_old_is_read_first(
    room: Room, fault: Exception | None, expected: tuple[list[str], list[str]], passed_s: float
) -> None:
    """If it can be read; better old tools than none. A stamp of the future says no age at all."""
    room.options = replace(OPTIONS, max_stale_s=50)
    await room.source(LiveSource(tool("a"))).list_tools()
    room.wall = ManualClock(room.wall() + passed_s)
    live = LiveSource(tool("b"))
    live.fail_with = fault
    source = room.source(live)

    listing = await source.list_tools()
    await source.list_tools()

    assert expected == (names(listing), codes(listing))
    assert 1 == live.listings


async def test_a_source_that_is_forgotten_is_listed_at_the_next_start(room: Room) -> None:
    """It left the configuration."""
    source = room.source(LiveSource(tool("a")))
    await source.list_tools()
    source.forget()
    live = LiveSource(tool("b"))

    assert ["b"] == names(await room.source(live).list_tools())


class Counted(SqlCatalog):
    """Counts how often it is read."""

    reads = 0

    def read(self, owners: Mapping[str, str]) -> Mapping[str, StoredServer]:
        self.reads += 1
        return super().read(owners)

    def listing(self, fingerprint: str) -> StoredListing | None:
        self.reads += 1
        return super().listing(fingerprint)

    def record_seen(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        self.reads += 1
        return super().record_seen(owner, digests)


def registered(room: Room, **tools: ToolDefinition) -> Registry:
    """Servers of one tool each, by name."""
    registry = Registry()
    for name, item in tools.items():
        live = LiveSource(item)
        live.instructions = name
        source = room.source(live, fingerprint=name)
        source.server = name
        registry.add(Registration(source))
    return registry


async def test_what_is_stored_of_many_servers_is_read_at_once(room: Room) -> None:
    """At a start where nothing changed: lists and pins of all of them."""
    await list_sources(
        registered(room, one=tool("a"), two=tool("b"), six=tool("c")).all(), {}, telemetry=TELEMETRY
    )
    room.store = store = Counted.in_files(room.path, wall=room.wall)

    listed = await list_sources(
        registered(room, one=tool("x"), two=tool("y"), six=tool("z")).all(), {}, telemetry=TELEMETRY
    )

    assert [["a"], ["b"], ["c"]] == [names(each.listing) for each in listed.values()]
    assert 1 == store.reads


async def test_what_was_read_at_once_is_compared_and_used_once(room: Room) -> None:
    """A change that nobody approved is reported; an approval meanwhile counts."""
    await room.source(LiveSource(tool("a"))).list_tools()
    changed = room.source(LiveSource(tool("a", "Now with more.")))
    changed.expire()
    await changed.list_tools()
    source = room.source(LiveSource(tool("a")))
    preload([source, "no source"])
    before = await source.list_tools()
    room.store.approve("f", ["a"])
    source.recheck()

    assert ["tool_changed"] == codes(before)
    assert [] == codes(await source.list_tools())


async def test_a_store_that_cannot_be_read_at_once_is_reported_by_each_server(room: Room) -> None:
    """A full disk must not cost a tool."""
    room.store = BrokenStore()
    registry = registered(room, one=tool("a"), two=tool("b"))

    listed = await list_sources(registry.all(), {}, telemetry=TELEMETRY)

    assert [["catalog_unavailable"]] * 2 == [codes(each.listing) for each in listed.values()]


class Forgetful(SqlCatalog):
    """Knows lists, but not what was approved, as long as its disk is full."""

    full = True

    def record_seen(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        if self.full:
            raise StoreError("full")
        return super().record_seen(owner, digests)


async def test_without_a_store_lists_live_in_memory_and_say_so(room: Room) -> None:
    """A full disk must not cost a tool."""
    room.store = BrokenStore()
    source = room.source(LiveSource(tool("a")))

    listing = await source.list_tools()
    source.forget()

    assert (["a"], ["catalog_unavailable"]) == (names(listing), codes(listing))


@pytest.mark.parametrize(("policy", "left"), [("warn", ["a"]), ("block", [])])
async def test_a_list_that_could_not_be_compared_with_what_was_approved_says_so(
    room: Room, policy: Policy, left: list[str]
) -> None:
    """It is used, unless the host wants nothing that was not approved."""
    await room.source(LiveSource(tool("a"))).list_tools()
    room.options = replace(OPTIONS, on_change=policy)
    room.store = Forgetful.in_files(room.path, wall=room.wall)
    remembered = await room.source(LiveSource(tool("a"))).list_tools()
    source = room.source(LiveSource(tool("a", "Now with more.")))
    source.expire()

    fresh = await source.list_tools()

    assert (left, left) == (names(remembered), names(fresh))
    (note,) = (note for note in fresh.diagnostics if note.stage == "store")
    assert note in remembered.diagnostics
    assert ("store", "catalog_unavailable") == (note.stage, note.code)
    assert "'srv' was not compared with what was approved: full" == note.detail


async def test_a_command_line_is_compared_as_soon_as_the_store_works_again(room: Room) -> None:
    """A store that was busy for a moment lets nothing run, and keeps nothing out for good."""
    room.options = replace(OPTIONS, on_change="block")
    await room.source(LiveSource(tool("a")), launch="old").list_tools()
    room.store = store = Forgetful.in_files(room.path, wall=room.wall)
    same, other = (room.source(LiveSource(tool("a")), launch=each) for each in ("old", "new"))
    for source in (same, other):
        with pytest.raises(UpstreamError, match="not compared with what was approved: full"):
            await source.call("a", {}, tool_id="srv/a")

    store.full = False

    assert () == (await same.list_tools()).diagnostics
    with pytest.raises(UpstreamError, match="what would run is not what was approved"):
        await other.list_tools()


async def test_tools_that_could_not_be_compared_are_listed_again_soon(room: Room) -> None:
    """Not only when their list is old."""
    room.options = replace(OPTIONS, on_change="block")
    room.store = store = Forgetful.in_files(room.path, wall=room.wall)
    source = room.source(LiveSource(tool("a")))
    before = await source.list_tools()
    store.full = False
    room.tick(OPTIONS.retry_after_s)
    source.refresh_if_stale()
    await until(lambda: room.changes == 1)

    assert ([], ["a"]) == (names(before), names(await source.list_tools()))


def junk(path: Path) -> None:
    path.write_bytes(b"junk" * 4096)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("damage", [junk, cut, emptied, zeroed, Path.unlink])
async def test_a_store_that_is_lost_approves_nothing(
    room: Room, damage: Callable[[Path], object]
) -> None:
    """What was approved lies in a second file; that the first one is lost is said."""
    room.options = replace(OPTIONS, on_change="block")
    await room.source(LiveSource(tool("a"), tool("b")), launch="old").list_tools()
    room.store.close()
    damage(room.path)

    same = room.source(LiveSource(tool("a"), tool("b", "Now with more."), tool("c")), launch="old")
    listing = await same.list_tools()
    again = await room.source(LiveSource(tool("a")), launch="old").list_tools()

    assert ["a", "c"] == names(listing)
    assert {"store_rebuilt", "tool_changed"} == {*codes(listing)}
    assert "store_rebuilt" not in codes(again)
    with pytest.raises(UpstreamError, match="what would run is not what was approved"):
        await room.source(LiveSource(tool("a")), launch="new").list_tools()


async def test_a_second_file_that_is_lost_is_completed(room: Room) -> None:
    """From the first, at its next cleaning."""
    room.options = replace(OPTIONS, on_change="block")
    await room.source(LiveSource(tool("a"))).list_tools()
    room.store.close()
    room.path.with_name("catalog.approvals.sqlite3").unlink()
    room.store.sweep()
    room.store.close()
    room.path.unlink()

    listing = await room.source(LiveSource(tool("a", "Now with more."))).list_tools()

    assert [] == names(listing)


async def test_an_old_file_that_cannot_be_brought_up_is_reported(room: Room) -> None:
    """Nothing of it can be read either: what it approved is lost on this start."""
    with contextlib.closing(sqlite3.connect(room.path, isolation_level=None)) as other:
        other.executescript(OLD.read_text(encoding="utf-8"))
        other.execute("BEGIN IMMEDIATE")
        room.store = SqlCatalog.in_files(room.path, busy_s=0)
        listing = await room.source(LiveSource(tool("a"))).list_tools()

    (note,) = listing.diagnostics
    assert "catalog_unavailable" == note.code
    assert "not compared with what was approved: catalog store" in note.detail


async def test_calls_and_closing_go_to_the_source(room: Room) -> None:
    """It adds nothing to them."""
    live = LiveSource(tool("a"))
    source = room.source(live)
    answer = await source.call("a", {}, tool_id="srv/a")
    read = await source.ask("resources/read", {"uri": "a://b"})
    await source.close()

    assert ("called a", "srv", False) == (answer.text, source.server, source.trusted)
    assert {"method": "resources/read", "uri": "a://b"} == read
    with pytest.raises(Exception, match="closed"):
        await source.call("a", {}, tool_id="srv/a")


def doubts(listing: Listing) -> list[tuple[str, bool]]:
    return [(note.code, "left out" in note.detail) for note in listing.diagnostics]


@pytest.mark.parametrize(("policy", "left"), [("warn", ["a", "b"]), ("block", ["b"])])
async def test_a_definition_that_changed_is_reported_until_it_is_approved(
    room: Room, policy: Policy, left: list[str]
) -> None:
    """A server that was harmless yesterday may not be so today."""
    room.options = replace(OPTIONS, on_change=policy)
    await room.source(LiveSource(tool("a"), tool("b"))).list_tools()
    live = LiveSource(tool("a", "Now with more."), tool("b"), tool("c"))
    live.tools.pop()
    source = room.source(live)
    source.expire()

    changed = await source.list_tools()
    later = await room.source(LiveSource()).list_tools()
    room.store.approve("f", ["a"])
    approved = await room.source(LiveSource()).list_tools()

    assert (left, [("tool_changed", policy == "block")]) == (names(changed), doubts(changed))
    assert (left, doubts(changed)) == (names(later), doubts(later))
    assert (["a", "b"], []) == (names(approved), doubts(approved))


PROMPT = prompt("p", "Report.")
FILES = resource("file:///{path}")
NOTES = resource("file:///notes.txt")


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "p"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}}),
        ("resources/read", {"uri": "file:///{path}"}),
        ("resources/read", {"uri": "file:///other.txt"}),
    ],
)
async def test_a_thing_that_changed_is_left_out_and_not_read_until_it_is_approved(
    room: Room, method: str, params: JsonObject
) -> None:
    """Neither by its name nor by what a template makes; what is listed itself still is."""
    room.options = replace(OPTIONS, on_change="block")
    live = LiveSource(PROMPT, FILES, NOTES)
    await room.source(live).list_tools()
    live.tools = [replace(PROMPT, title="New"), replace(FILES, title="New"), NOTES]
    source = room.source(live)
    source.expire()
    changed = await source.list_tools()

    assert [NOTES] == list(changed.definitions)
    assert 2 * [("tool_changed", True)] == doubts(changed)
    assert "gateway approve srv/prompt:p;" in changed.diagnostics[0].detail
    with pytest.raises(InvalidRequestError, match="is left out"):
        await source.ask(method, params)
    with pytest.raises(InvalidRequestError, match="is left out"):
        await source.watch("file:///other.txt", SILENT)
    assert "method" in await source.ask("resources/read", {"uri": "file:///notes.txt"})
    room.store.approve("f", ["prompt:p", "resource:file:///{path}"])
    assert source.recheck()
    assert [] == doubts(await source.list_tools())
    assert "method" in await source.ask(method, params)


async def test_files_of_a_skill_that_changed_are_not_read_until_it_is_approved(room: Room) -> None:
    """It is pinned with the digests of its files."""
    room.options = replace(OPTIONS, on_change="block")
    skill = ToolDefinition(kind="skill", name="skill://pay/refunds/SKILL.md")
    live = LiveSource(skill, NOTES)
    await room.source(live).list_tools()
    live.tools = [replace(skill, description="Pay anybody."), NOTES]
    source = room.source(live)
    source.expire()
    changed = await source.list_tools()
    params = {"uri": "skill://pay/refunds/forms/form.md"}

    assert ([NOTES], [("tool_changed", True)]) == (list(changed.definitions), doubts(changed))
    with pytest.raises(InvalidRequestError, match="is left out"):
        await source.ask("resources/read", params)
    room.store.approve("f", ["skill:skill://pay/refunds/SKILL.md"])
    assert source.recheck()
    assert [] == doubts(await source.list_tools())
    assert "method" in await source.ask("resources/read", params)


@pytest.mark.parametrize(("policy", "left"), [("warn", "New."), ("block", "")])
async def test_what_a_server_says_of_itself_lasts_and_is_held_to_it(
    room: Room, policy: Policy, left: str
) -> None:
    """Another word is a change, and told as that of a tool is."""
    room.options = replace(OPTIONS, on_change=policy)
    live = LiveSource(tool("a"))
    live.instructions = "Old."
    await room.source(live).list_tools()
    source = room.source(live)
    before = await source.list_tools()
    live.instructions = "New."
    room.tick(100)
    source.refresh_if_stale()
    await until(lambda: room.changes == 1)
    after = await source.list_tools()

    assert ("Old.", left) == (before.instructions, after.instructions)
    assert [("tool_changed", policy == "block")] == doubts(after)
    assert "gateway approve srv/server:srv" in after.diagnostics[0].detail


@pytest.mark.parametrize("policy", ["warn", "block"])
async def test_a_command_line_that_changed_in_a_file_is_reported_before_it_runs(
    room: Room, policy: Policy
) -> None:
    """Whoever can write a configuration could run anything under a name that was trusted."""
    room.options = replace(OPTIONS, on_change=policy)
    await room.source(LiveSource(tool("a")), launch="old").list_tools()
    live = LiveSource(tool("a"))
    source = room.source(live, fingerprint="g", launch="new")

    if policy == "block":
        for _ in range(2):
            with pytest.raises(UpstreamError, match="gateway approve srv"):
                await source.list_tools()
        with pytest.raises(UpstreamError, match="not what was approved"):
            await source.call("a", {}, tool_id="srv/a")
        assert 0 == live.listings
        room.store.approve("mcp.json#srv", [COMMAND_LINE_PIN])
        source = room.source(live, fingerprint="g", launch="new")
        assert [] == doubts(await source.list_tools())
    else:
        assert [("server_changed", False)] == doubts(await source.list_tools())

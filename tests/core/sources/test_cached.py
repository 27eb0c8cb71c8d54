"""Cached source: stored listings, renewals and approvals."""

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


async def test_stored_listing_is_used_at_the_next_start(room: Room) -> None:
    """The server is not asked. The stored listing shows which tools may be called twice."""
    await room.source(LiveSource(tool("a"))).list_tools()
    live = LiveSource(tool("b"))

    listing = await room.source(live).list_tools()

    assert (["a"], 0, [listing]) == (names(listing), live.listings, live.learnt)


async def test_old_listing_is_used_until_the_new_one_arrives(room: Room) -> None:
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


async def test_unchanged_listing_causes_no_change_callback(room: Room) -> None:
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


async def test_reported_change_causes_a_new_listing(room: Room) -> None:
    """If another change is reported during this listing, the server is listed once more."""
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


async def test_change_reported_at_every_listing_causes_two_listings(room: Room) -> None:
    """Some servers report a change whenever they are listed."""
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


async def test_constantly_reported_changes_cause_a_limited_number_of_listings(room: Room) -> None:
    """Each different listing causes an index build.

    Five renewals are allowed. Each of them may list twice, because of a change during the listing.
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


async def test_failed_renewal_keeps_the_old_listing_with_a_diagnostic(room: Room) -> None:
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
        # The failure may be recorded after the request was seen, so advance the clock until the
        # retry.
        room.tick(10)
        source.refresh_if_stale()
        return room.changes == 2

    await until(renewed)
    fresh = await source.list_tools()

    assert (["a"], ["source_stale"]) == (names(stale), codes(stale))
    assert (["a"], ()) == (names(fresh), fresh.diagnostics)


async def test_slow_first_listing_times_out_and_arrives_later(room: Room) -> None:
    room.options = replace(OPTIONS, first_listing_s=0.01)
    live = LiveSource(tool("a"))
    live.door.clear()
    source = room.source(live)

    with pytest.raises(UpstreamTimeoutError, match="added when they are listed"):
        await source.list_tools()
    live.door.set()
    await until(lambda: room.changes == 1)

    assert (["a"], 1) == (names(await source.list_tools()), live.listings)


async def test_expired_listing_is_read_again_by_the_next_caller(room: Room) -> None:
    """If reading fails, the expired listing stays in use with a diagnostic."""
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
async def test_expired_stored_listing_is_used_only_if_a_new_listing_fails(
    room: Room, fault: Exception | None, expected: tuple[list[str], list[str]], passed_s: float
) -> None:
    """A stored listing with a timestamp in the future also counts as expired."""
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


async def test_forgotten_source_is_listed_at_the_next_start(room: Room) -> None:
    source = room.source(LiveSource(tool("a")))
    await source.list_tools()
    source.forget()
    live = LiveSource(tool("b"))

    assert ["b"] == names(await room.source(live).list_tools())


class CountingStore(SqlCatalog):
    """A store that counts its reads."""

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


def registry_of(room: Room, **tools: ToolDefinition) -> Registry:
    """Return a registry of servers with one tool each, keyed by server name."""
    registry = Registry()
    for name, item in tools.items():
        live = LiveSource(item)
        live.instructions = name
        source = room.source(live, fingerprint=name)
        source.server = name
        registry.add(Registration(source))
    return registry


async def test_listings_and_approvals_of_all_servers_are_read_in_one_store_read(room: Room) -> None:
    await list_sources(
        registry_of(room, one=tool("a"), two=tool("b"), six=tool("c")).all(),
        {},
        telemetry=TELEMETRY,
    )
    room.store = store = CountingStore.in_files(room.path, wall=room.wall)

    listed = await list_sources(
        registry_of(room, one=tool("x"), two=tool("y"), six=tool("z")).all(),
        {},
        telemetry=TELEMETRY,
    )

    assert [["a"], ["b"], ["c"]] == [names(result.listing) for result in listed.values()]
    assert 1 == store.reads


async def test_preloaded_approvals_are_used_for_one_comparison_only(room: Room) -> None:
    """The next comparison therefore includes an approval that was given after the preload."""
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


async def test_failed_preload_is_reported_by_each_server(room: Room) -> None:
    room.store = BrokenStore()
    registry = registry_of(room, one=tool("a"), two=tool("b"))

    listed = await list_sources(registry.all(), {}, telemetry=TELEMETRY)

    assert [["catalog_unavailable"]] * 2 == [codes(result.listing) for result in listed.values()]


class StoreWithoutApprovals(SqlCatalog):
    """A store that can read listings but fails to compare approvals while `full` is true."""

    full = True

    def record_seen(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        if self.full:
            raise StoreError("full")
        return super().record_seen(owner, digests)


async def test_listing_stays_in_memory_with_a_diagnostic_if_the_store_fails(room: Room) -> None:
    room.store = BrokenStore()
    source = room.source(LiveSource(tool("a")))

    listing = await source.list_tools()
    source.forget()

    assert (["a"], ["catalog_unavailable"]) == (names(listing), codes(listing))


@pytest.mark.parametrize(("policy", "left"), [("warn", ["a"]), ("block", [])])
async def test_failed_comparison_with_approvals_leaves_a_diagnostic(
    room: Room, policy: Policy, left: list[str]
) -> None:
    """The tools stay usable, except under the policy ``block``."""
    await room.source(LiveSource(tool("a"))).list_tools()
    room.options = replace(OPTIONS, on_change=policy)
    room.store = StoreWithoutApprovals.in_files(room.path, wall=room.wall)
    remembered = await room.source(LiveSource(tool("a"))).list_tools()
    source = room.source(LiveSource(tool("a", "Now with more.")))
    source.expire()

    fresh = await source.list_tools()

    assert (left, left) == (names(remembered), names(fresh))
    (note,) = (note for note in fresh.diagnostics if note.stage == "store")
    assert note in remembered.diagnostics
    assert ("store", "catalog_unavailable") == (note.stage, note.code)
    assert "'srv' could not be compared with its approval: full" == note.detail


async def test_command_line_is_compared_with_its_approval_after_the_store_recovers(
    room: Room,
) -> None:
    room.options = replace(OPTIONS, on_change="block")
    await room.source(LiveSource(tool("a")), launch="old").list_tools()
    room.store = store = StoreWithoutApprovals.in_files(room.path, wall=room.wall)
    same, other = (room.source(LiveSource(tool("a")), launch=command) for command in ("old", "new"))
    for source in (same, other):
        with pytest.raises(UpstreamError, match="could not be compared with its approval: full"):
            await source.call("a", {}, tool_id="srv/a")

    store.full = False

    assert () == (await same.list_tools()).diagnostics
    with pytest.raises(UpstreamError, match="the command or URL changed since it was approved"):
        await other.list_tools()


async def test_tools_blocked_by_a_store_failure_are_listed_again_soon(room: Room) -> None:
    """The source does not wait until the lifetime of the listing ends."""
    room.options = replace(OPTIONS, on_change="block")
    room.store = store = StoreWithoutApprovals.in_files(room.path, wall=room.wall)
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
async def test_changes_stay_unapproved_if_the_store_is_damaged(
    room: Room, damage: Callable[[Path], object]
) -> None:
    """A second file also contains the approvals. A diagnostic reports the loss of the first
    file.
    """
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
    with pytest.raises(UpstreamError, match="the command or URL changed since it was approved"):
        await room.source(LiveSource(tool("a")), launch="new").list_tools()


async def test_lost_approvals_file_is_restored_by_the_sweep(room: Room) -> None:
    room.options = replace(OPTIONS, on_change="block")
    await room.source(LiveSource(tool("a"))).list_tools()
    room.store.close()
    room.path.with_name("catalog.approvals.sqlite3").unlink()
    room.store.sweep()
    room.store.close()
    room.path.unlink()

    listing = await room.source(LiveSource(tool("a", "Now with more."))).list_tools()

    assert [] == names(listing)


async def test_failed_migration_of_an_old_store_is_reported(room: Room) -> None:
    with contextlib.closing(sqlite3.connect(room.path, isolation_level=None)) as other:
        other.executescript(OLD.read_text(encoding="utf-8"))
        other.execute("BEGIN IMMEDIATE")
        room.store = SqlCatalog.in_files(room.path, busy_s=0)
        listing = await room.source(LiveSource(tool("a"))).list_tools()

    (note,) = listing.diagnostics
    assert "catalog_unavailable" == note.code
    assert "could not be compared with its approval: catalog store" in note.detail


async def test_cached_source_passes_calls_and_close_to_its_live_source(room: Room) -> None:
    live = LiveSource(tool("a"))
    source = room.source(live)
    answer = await source.call("a", {}, tool_id="srv/a")
    read = await source.ask("resources/read", {"uri": "a://b"})
    await source.close()

    assert ("called a", "srv", False) == (answer.text, source.server, source.trusted)
    assert {"method": "resources/read", "uri": "a://b"} == read
    with pytest.raises(Exception, match="closed"):
        await source.call("a", {}, tool_id="srv/a")


def change_notes(listing: Listing) -> list[tuple[str, bool]]:
    return [(note.code, "left out" in note.detail) for note in listing.diagnostics]


@pytest.mark.parametrize(("policy", "left"), [("warn", ["a", "b"]), ("block", ["b"])])
async def test_changed_definition_is_reported_until_it_is_approved(
    room: Room, policy: Policy, left: list[str]
) -> None:
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

    assert (left, [("tool_changed", policy == "block")]) == (names(changed), change_notes(changed))
    assert (left, change_notes(changed)) == (names(later), change_notes(later))
    assert (["a", "b"], []) == (names(approved), change_notes(approved))


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
async def test_changed_prompt_or_resource_is_not_read_until_it_is_approved(
    room: Room, method: str, params: JsonObject
) -> None:
    """A URI made from a changed template is also refused, unless it is listed itself."""
    room.options = replace(OPTIONS, on_change="block")
    live = LiveSource(PROMPT, FILES, NOTES)
    await room.source(live).list_tools()
    live.tools = [replace(PROMPT, title="New"), replace(FILES, title="New"), NOTES]
    source = room.source(live)
    source.expire()
    changed = await source.list_tools()

    assert [NOTES] == list(changed.definitions)
    assert 2 * [("tool_changed", True)] == change_notes(changed)
    assert "gateway approve srv/prompt:p;" in changed.diagnostics[0].detail
    with pytest.raises(InvalidRequestError, match="is left out"):
        await source.ask(method, params)
    with pytest.raises(InvalidRequestError, match="is left out"):
        await source.watch("file:///other.txt", SILENT)
    assert "method" in await source.ask("resources/read", {"uri": "file:///notes.txt"})
    room.store.approve("f", ["prompt:p", "resource:file:///{path}"])
    assert source.recheck()
    assert [] == change_notes(await source.list_tools())
    assert "method" in await source.ask(method, params)


async def test_files_of_a_changed_skill_are_not_read_until_it_is_approved(room: Room) -> None:
    room.options = replace(OPTIONS, on_change="block")
    skill = ToolDefinition(kind="skill", name="skill://pay/refunds/SKILL.md")
    live = LiveSource(skill, NOTES)
    await room.source(live).list_tools()
    live.tools = [replace(skill, description="Pay anybody."), NOTES]
    source = room.source(live)
    source.expire()
    changed = await source.list_tools()
    params = {"uri": "skill://pay/refunds/forms/form.md"}

    assert ([NOTES], [("tool_changed", True)]) == (list(changed.definitions), change_notes(changed))
    with pytest.raises(InvalidRequestError, match="is left out"):
        await source.ask("resources/read", params)
    room.store.approve("f", ["skill:skill://pay/refunds/SKILL.md"])
    assert source.recheck()
    assert [] == change_notes(await source.list_tools())
    assert "method" in await source.ask("resources/read", params)


@pytest.mark.parametrize(("policy", "left"), [("warn", "New."), ("block", "")])
async def test_changed_instructions_need_approval(room: Room, policy: Policy, left: str) -> None:
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
    assert [("tool_changed", policy == "block")] == change_notes(after)
    assert "gateway approve srv/server:srv" in after.diagnostics[0].detail


@pytest.mark.parametrize("policy", ["warn", "block"])
async def test_changed_command_line_is_reported_before_it_runs(room: Room, policy: Policy) -> None:
    """Without approvals, anyone who can write the configuration file could run any command."""
    room.options = replace(OPTIONS, on_change=policy)
    await room.source(LiveSource(tool("a")), launch="old").list_tools()
    live = LiveSource(tool("a"))
    source = room.source(live, fingerprint="g", launch="new")

    if policy == "block":
        for _ in range(2):
            with pytest.raises(UpstreamError, match="gateway approve srv"):
                await source.list_tools()
        with pytest.raises(UpstreamError, match="changed since it was approved"):
            await source.call("a", {}, tool_id="srv/a")
        assert 0 == live.listings
        room.store.approve("mcp.json#srv", [COMMAND_LINE_PIN])
        source = room.source(live, fingerprint="g", launch="new")
        assert [] == change_notes(await source.list_tools())
    else:
        assert [("server_changed", False)] == change_notes(await source.list_tools())

"""Virtual servers: what they show, what they call, and what their aliases are pinned to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.catalog.identity import definition_digest
from gateway.errors import ClosedError, ConfigError, StoreError, UpstreamError
from gateway.options import Options, UpstreamOptions
from gateway.options.upstream import Policy
from gateway.sources.protocol import Source
from gateway.sources.transforms import Filter
from gateway.sources.virtual import Alias, VirtualServer, VirtualSource
from gateway.storage.listing_store import SqliteListingStore
from gateway.types import Filters, ToolDefinition
from gateway.types.listing import Listing
from tests.conftest import OpenGateway
from tests.fakes import ListSource, Shelf, names, tool

TABLE = VirtualServer(
    name="work",
    tools={
        "ticket": Alias(of="jira/get", description="Read a ticket."),
        "issue": Alias(of="hub/create"),
    },
)


def digest(definition: ToolDefinition) -> str:
    return hashlib.sha256(repr(definition).encode()).hexdigest()


class Digested(ListSource):
    """A source that tells digests, as servers do."""

    async def list_tools(self) -> Listing:
        listing = await super().list_tools()
        return replace(listing, digests={each.name: digest(each) for each in listing.tools})


class Desk:
    """Two sources, and virtual servers over them."""

    def __init__(self, folder: Path) -> None:
        self.hub = Digested("hub", [tool("create", "Create."), tool("drop")], trusted=True)
        self.jira = ListSource("jira", [tool("get", "Get.")])
        self.there: dict[str, Source] = {"hub": self.hub, "jira": self.jira}
        self.records = SqliteListingStore(folder / "catalog.sqlite3")

    def source(self, table: VirtualServer = TABLE, policy: Policy = "warn") -> VirtualSource:
        return VirtualSource(
            table,
            sources=lambda: self.there,
            store=self.records,
            owner="mcp.json#work",
            options=UpstreamOptions(on_change=policy),
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def shown(listing: Listing) -> dict[str, str]:
    return {each.name: each.description for each in listing.tools}


def told(listing: Listing) -> list[str]:
    return [note.detail for note in listing.diagnostics]


async def test_aliases_are_shown_in_their_order_with_their_texts(desk: Desk) -> None:
    """And nothing else of the servers behind."""
    source = desk.source()
    listing = await source.list_tools()

    assert ["ticket", "issue"] == list(shown(listing))
    assert {"ticket": "Read a ticket.", "issue": "Create."} == shown(listing)
    assert ([], "work", False) == (told(listing), source.server, source.trusted)
    assert ["called get", "called create", "unknown tool 'create'"] == [
        (await source.call(name, {}, tool_id="t")).text for name in ("ticket", "issue", "create")
    ]


async def test_what_is_missing_is_told_and_the_rest_works(desk: Desk) -> None:
    """Servers come and go; a table stays."""
    desk.hub.tools.pop(0)
    del desk.there["jira"]
    source = desk.source()
    listing = await source.list_tools()

    assert {} == shown(listing)
    assert [
        "virtual server 'work': alias 'ticket': there is no server 'jira'",
        "virtual server 'work': alias 'issue': 'hub/create' is not there, or is left out",
    ] == told(listing)
    with pytest.raises(UpstreamError, match="no server 'jira'") as raised:
        await source.call("ticket", {}, tool_id="t")
    assert not raised.value.sent


async def test_a_server_that_cannot_be_listed_leaves_the_others(desk: Desk) -> None:
    """Its aliases stay as they were; none of all is an error."""
    source = desk.source()
    await source.list_tools()
    desk.jira.fail_with = UpstreamError("jira", "is down")
    listing = await source.list_tools()
    desk.hub.fail_with = UpstreamError("hub", "is down")

    assert ["ticket", "issue"] == list(shown(listing))
    assert [("source_load_failed", "'work': 'jira': is down")] == [
        (note.code, note.detail) for note in listing.diagnostics
    ]
    with pytest.raises(UpstreamError, match="is down"):
        await source.list_tools()


@pytest.mark.parametrize(("policy", "kept"), [("warn", ["ticket", "issue"]), ("block", [])])
async def test_an_original_that_changed_is_told_until_the_alias_is_approved(
    desk: Desk, policy: Policy, kept: list[str]
) -> None:
    """The text of an alias was written for what the tool was then."""
    source = desk.source(policy=policy)
    await source.list_tools()
    assert not source.recheck()
    desk.hub.tools[0] = tool("create", "Create, and more.")
    desk.jira.tools[0] = tool("get", "Get, and more.")
    changed = await source.list_tools()
    assert source.recheck()
    desk.records.approve("mcp.json#work", ["ticket", "issue"])
    approved = await source.list_tools()

    assert kept == list(shown(changed))
    assert ["tool_changed"] * 2 == [note.code for note in changed.diagnostics]
    assert "gateway approve work/ticket" in told(changed)[0]
    assert (["ticket", "issue"], []) == (list(shown(approved)), told(approved))


@pytest.mark.parametrize(("policy", "kept"), [("warn", ["issue"]), ("block", [])])
async def test_a_pin_in_the_table_is_held_whatever_was_seen(
    desk: Desk, policy: Policy, kept: list[str]
) -> None:
    """A file that is shared brings its pins along; whoever looks at the change writes the new."""
    pinned = (await desk.hub.list_tools()).digests["create"]
    right = VirtualServer(name="work", tools={"issue": Alias(of="hub/create", pin=pinned)})
    wrong = VirtualServer(name="work", tools={"issue": Alias(of="hub/create", pin="a" * 64)})

    fits = await desk.source(right, policy).list_tools()
    differs = await desk.source(wrong, policy).list_tools()

    assert (["issue"], []) == (list(shown(fits)), told(fits))
    assert kept == list(shown(differs))
    (note,) = told(differs)
    assert f"was made for another 'hub/create'; look at it, then pin {pinned}" in note
    assert (policy == "block") == note.endswith("it is left out")


async def test_without_a_store_pins_of_the_table_hold_all_the_same(desk: Desk) -> None:
    """What cannot be remembered is not guessed."""

    class Broken(SqliteListingStore):
        def see(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
            raise StoreError("the disk is gone")

    desk.records = Broken(Path("none"))
    listing = await desk.source().list_tools()

    assert (["ticket", "issue"], []) == (list(shown(listing)), told(listing))


async def test_a_closed_one_refuses_and_leaves_the_servers_open(desk: Desk) -> None:
    """They are not its own."""
    source = desk.source()
    await source.close()

    for work in (source.list_tools(), source.call("issue", {}, tool_id="t")):
        with pytest.raises(ClosedError, match="'work'"):
            await work
    assert 2 == len((await desk.hub.list_tools()).tools)


@pytest.mark.parametrize("of", ["create", "/create", "hub/"])
def test_an_alias_stands_for_one_tool_of_one_server(of: str) -> None:
    with pytest.raises(ConfigError, match="server/tool"):
        Alias(of=of)


def test_names_that_nothing_may_have_are_refused() -> None:
    for name, alias in (("no name", "a"), ("work", "no name")):
        with pytest.raises(ConfigError, match="cannot be used"):
            VirtualServer(name=name, tools={alias: Alias(of="a/b")})


async def test_through_the_gateway_aliases_follow_the_servers_behind(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Found by their own texts, called as themselves; a server that shows nothing serves them."""
    gateway = open_gateway(options=Options(catalog_store_path=tmp_path / "catalog.sqlite3"))
    gateway.add_virtual_server("work", {"open_ticket": Alias(of="shelf/a", description="Ask.")})
    gateway.add_virtual_server("other", {"again": "shelf/b", "local": "local/now"})
    before = await gateway.list_tools()
    shelf = Shelf([tool("a"), tool("b")])
    gateway.add_server("shelf", server=shelf.server, transforms=[Filter(allow=())])
    gateway.add_tool(now)
    found = await gateway.search("ask", filters=Filters(servers=frozenset({"work"})))
    listed = await gateway.list_tools()
    called = [(await gateway.invoke(name, {})).text for name in ("work/open_ticket", "again")]
    await gateway.remove_server("shelf")

    assert () == before
    assert ["open_ticket"] == names(found)
    assert ["again", "local", "now", "open_ticket"] == sorted(each.name for each in listed)
    assert ["called a", "called b"] == called
    assert ["local", "now"] == [each.name for each in await gateway.list_tools()]
    assert "12:00" == (await gateway.invoke("other/local", {})).text


async def test_a_virtual_server_is_found_itself_by_who_looks_for_servers(
    open_gateway: OpenGateway,
) -> None:
    """By what it is for and by what it has; a search for tools does not meet it."""
    gateway = open_gateway()
    gateway.add_tool(now)
    gateway.add_virtual_server("work", {"clock": "local/now"}, description="What an office needs.")
    servers = Filters(kinds=frozenset({"virtual_server"}))

    found = await gateway.search("office clock", filters=servers)
    tools = await gateway.search("office clock")

    assert [("work", "virtual_server:work")] == [(each.server, each.id) for each in found.matches]
    assert "work" not in names(tools)


def now() -> str:
    """Tell the time."""
    return "12:00"


NOTES = ToolDefinition(kind="resource", name="file:///notes.txt", description="Notes.")
FILES = ToolDefinition(kind="resource", name="file:///{path}", details={"template": True})
WEEKLY = ToolDefinition(kind="prompt", name="weekly", description="Report.")
SHELF = VirtualServer(
    name="shelf",
    tools={},
    resources={
        "docs:today": Alias(of="hub/file:///notes.txt", description="What is on today."),
        "docs:{path}": Alias(of="hub/file:///{path}"),
    },
    prompts={"report": Alias(of="hub/weekly"), "gone": Alias(of="hub/no-such")},
)


class Furnished(Digested):
    """A source that has more than tools."""

    def __init__(self, *things: ToolDefinition) -> None:
        super().__init__("hub", [tool("create")])
        self.things = list(things)
        self.doubts: dict[str, tuple[str, ...]] = {}

    async def list_tools(self) -> Listing:
        listing = await super().list_tools()
        return replace(listing, things=tuple(self.things), suspicions=self.doubts)


def things(listing: Listing) -> dict[str, str]:
    return {each.name: each.description for each in listing.things if each.name != "shelf"}


async def test_resources_and_prompts_have_aliases_too(desk: Desk) -> None:
    """Shown under names and texts of the table; what is missing is told."""
    desk.there["hub"] = Furnished(NOTES, FILES, WEEKLY)
    source = desk.source(SHELF)
    listing = await source.list_tools()

    assert {"docs:today": "What is on today.", "docs:{path}": "", "report": "Report."} == things(
        listing
    )
    assert ("hub", "file:///notes.txt") == source.resolve("resource", "docs:today")
    assert ("hub", "file:///a") == source.resolve("resource", "docs:a")
    assert ("hub", "weekly") == source.resolve("prompt", "report")
    assert [None, None] == [source.resolve("prompt", each) for each in ("gone", "weekly")]
    assert ["virtual server 'shelf': alias 'gone': 'hub/no-such' is not there, or is left out"] == [
        each for each in told(listing) if "hub/no-such" in each
    ]


@pytest.mark.parametrize(("policy", "left"), [("warn", True), ("block", False)])
async def test_a_thing_that_changed_is_told_until_it_is_approved(
    desk: Desk, policy: Policy, left: bool
) -> None:
    """Another text under the same name is another prompt."""
    hub = Furnished(WEEKLY)
    desk.there["hub"] = hub
    table = replace(SHELF, resources={}, prompts={"report": Alias(of="hub/weekly")})
    source = desk.source(table, policy)
    await source.list_tools()
    hub.things = [replace(WEEKLY, description="Another.")]

    listing = await source.list_tools()
    desk.records.approve("mcp.json#work", ("prompt:report",))
    after = await source.list_tools()

    assert left == ("report" in things(listing))
    assert left == (source.resolve("prompt", "report") is not None) or left is False
    assert "gateway approve shelf/prompt:report" in " ".join(told(listing))
    assert (["report"], []) == (list(things(after)), told(after))


async def test_a_pin_and_a_doubt_hold_for_things_as_for_tools(desk: Desk) -> None:
    """What is not as it was pinned, or looks like an attack, is told under its alias."""
    hub = Furnished(WEEKLY)
    hub.doubts = {"prompt:weekly": ("override",)}
    desk.there["hub"] = hub
    pinned = {"report": Alias(of="hub/weekly", pin="0" * 64)}
    table = replace(SHELF, resources={}, prompts=pinned)

    warned = await desk.source(table).list_tools()
    blocked = await desk.source(table, "block").list_tools()

    assert (["report"], []) == (list(things(warned)), list(things(blocked)))
    assert ["tool_suspicious", "tool_changed"] == [note.code for note in warned.diagnostics]


class Told(Furnished):
    """A source that tells the digests of its things, as servers do."""

    async def list_tools(self) -> Listing:
        listing = await super().list_tools()
        return replace(listing, digests={"prompt:weekly": digest(self.things[0])})


@pytest.mark.parametrize("pin", [definition_digest("hub", WEEKLY), ""])
async def test_a_pin_of_an_earlier_release_holds(desk: Desk, pin: str) -> None:
    """It is the digest of what a search reads; one that was kept is brought up to date."""
    desk.there["hub"] = hub = Told(WEEKLY)
    former = {"prompt:report": definition_digest("hub", WEEKLY)}
    desk.records.record_seen("mcp.json#work", former)
    report = {"report": Alias(of="hub/weekly", pin=pin)}
    source = desk.source(replace(SHELF, resources={}, prompts=report), "block")

    before = await source.list_tools()
    kept = desk.records.record_seen("mcp.json#work", {"prompt:report": digest(WEEKLY)})
    hub.things = [replace(WEEKLY, description="Another.")]
    after = await source.list_tools()

    assert (["report"], []) == (list(things(before)), told(before))
    assert bool(pin) == bool(kept)
    assert ([], ["tool_changed"]) == (
        list(things(after)),
        [note.code for note in after.diagnostics],
    )

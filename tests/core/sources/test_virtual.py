"""Virtual servers: aliases, calls and approvals."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.errors import ClosedError, ConfigError, UpstreamError
from gateway.options import Options, Policy, UpstreamOptions
from gateway.sources import Alias, Filter, ListingStore, Source, VirtualServer, VirtualSource
from gateway.storage import SqlCatalog
from gateway.types import Filters, Hints, Listing, ToolDefinition, pin_key
from tests.conftest import OpenGateway
from tests.core.sources.live_source import BrokenStore, codes, details, prompt, resource
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


class DigestingSource(ListSource):
    """A source whose listing contains digests, like the listing of a server."""

    doubts: Mapping[str, tuple[str, ...]] = {}

    async def list_tools(self) -> Listing:
        listing = await super().list_tools()
        digests = {pin_key(item.kind, item.name): digest(item) for item in listing.definitions}
        return replace(listing, digests=digests, suspicions=self.doubts)


class Desk:
    """Two sources with tools, from which virtual servers are made."""

    def __init__(self, folder: Path) -> None:
        self.hub = DigestingSource("hub", [tool("create", "Create."), tool("drop")], trusted=True)
        self.jira = ListSource("jira", [tool("get", "Get.")])
        self.there: dict[str, Source] = {"hub": self.hub, "jira": self.jira}
        self.store: ListingStore = SqlCatalog.in_files(folder / "catalog.sqlite3")

    def source(self, table: VirtualServer = TABLE, policy: Policy = "warn") -> VirtualSource:
        return VirtualSource(
            table,
            sources=lambda: self.there,
            store=self.store,
            owner="mcp.json#work",
            options=UpstreamOptions(on_change=policy),
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Two sources, and a function that creates a virtual server over them."""
    return Desk(tmp_path)


def descriptions(listing: Listing) -> dict[str, str]:
    """Return the description of each item, keyed by name."""
    return {
        item.name: item.description for item in listing.definitions if item.kind != "virtual_server"
    }


async def test_listing_contains_only_the_aliases_in_their_order(desk: Desk) -> None:
    source = desk.source()
    listing = await source.list_tools()

    assert ["ticket", "issue"] == list(descriptions(listing))
    assert {"ticket": "Read a ticket.", "issue": "Create."} == descriptions(listing)
    assert ([], "work", False) == (details(listing), source.server, source.trusted)
    assert ["called get", "called create", "unknown tool 'create'"] == [
        (await source.call(name, {}, tool_id="t")).text for name in ("ticket", "issue", "create")
    ]


async def test_diagnostic_reports_an_alias_whose_original_is_missing(desk: Desk) -> None:
    desk.hub.tools.pop(0)
    del desk.there["jira"]
    source = desk.source()
    listing = await source.list_tools()

    assert {} == descriptions(listing)
    assert [
        "virtual server 'work': alias 'ticket': server 'jira' was not found",
        (
            "virtual server 'work': alias 'issue': 'hub/create' was not found: its server does not "
            "offer it, or a rule leaves it out; correct the alias"
        ),
    ] == details(listing)
    with pytest.raises(UpstreamError, match="server 'jira' was not found") as raised:
        await source.call("ticket", {}, tool_id="t")
    assert not raised.value.sent


async def test_aliases_stay_listed_while_their_server_fails(desk: Desk) -> None:
    """If all servers fail, the listing raises an error."""
    source = desk.source()
    await source.list_tools()
    desk.jira.fail_with = UpstreamError("jira", "is down")
    listing = await source.list_tools()
    desk.hub.fail_with = UpstreamError("hub", "is down")

    assert ["ticket", "issue"] == list(descriptions(listing))
    assert [("source_load_failed", "'work': 'jira': is down")] == [
        (note.code, note.detail) for note in listing.diagnostics
    ]
    with pytest.raises(UpstreamError, match="is down"):
        await source.list_tools()


@pytest.mark.parametrize("policy", ["warn", "block"])
async def test_changed_original_is_reported_until_the_alias_is_approved(
    desk: Desk, policy: Policy
) -> None:
    """The description of an alias was written for the earlier definition."""
    desk.hub.tools.append(WEEKLY)
    source = desk.source(replace(TABLE, prompts={"report": Alias(of="hub/weekly")}), policy)
    await source.list_tools()
    assert not source.recheck()
    desk.jira.tools[0] = tool("get", "Get, and more.")
    desk.hub.tools[0] = tool("create", "Create, and more.")
    desk.hub.tools[-1] = replace(WEEKLY, description="Another.")
    changed = await source.list_tools()
    is_read = source.resolve("prompt", "report") is not None
    assert source.recheck()
    desk.store.approve("mcp.json#work", ["ticket", "issue", "prompt:report"])
    approved = await source.list_tools()

    every = ["ticket", "issue", "report"]
    assert (every if policy == "warn" else []) == list(descriptions(changed))
    assert (policy == "warn") == is_read
    assert ["tool_changed"] * 3 == codes(changed)
    assert "gateway approve work/ticket" in details(changed)[0]
    assert "gateway approve work/prompt:report" in details(changed)[2]
    assert (every, []) == (list(descriptions(approved)), details(approved))


@pytest.mark.parametrize(("policy", "left"), [("warn", ["issue"]), ("block", [])])
async def test_digest_in_the_table_overrides_the_first_digest_seen(
    desk: Desk, policy: Policy, left: list[str]
) -> None:
    """A shared configuration file contains the digests that were approved."""
    pinned = (await desk.hub.list_tools()).digests["create"]
    right = VirtualServer(name="work", tools={"issue": Alias(of="hub/create", pin=pinned)})
    wrong = VirtualServer(name="work", tools={"issue": Alias(of="hub/create", pin="a" * 64)})

    fits = await desk.source(right, policy).list_tools()
    differs = await desk.source(wrong, policy).list_tools()

    assert (["issue"], []) == (list(descriptions(fits)), details(fits))
    assert left == list(descriptions(differs))
    (note,) = details(differs)
    assert f"is not as it was approved; look at it, then: pin {pinned}" in note
    assert (policy == "block") == note.endswith("it is left out")


async def test_search_text_of_an_original_needs_no_approval(desk: Desk) -> None:
    """The host writes search texts, so they need no approval."""
    await desk.source().list_tools()
    desk.jira.tools = [tool("get", "Get.", hints=Hints(search_text="Read a bug."))]

    assert "tool_changed" not in codes(await desk.source().list_tools())


async def test_aliases_stay_listed_if_the_approval_store_fails(desk: Desk) -> None:
    desk.store = BrokenStore()
    listing = await desk.source().list_tools()

    assert (["ticket", "issue"], []) == (list(descriptions(listing)), details(listing))


async def test_closed_virtual_server_refuses_calls_and_leaves_servers_open(desk: Desk) -> None:
    source = desk.source()
    await source.close()

    for work in (source.list_tools(), source.call("issue", {}, tool_id="t")):
        with pytest.raises(ClosedError, match="'work'"):
            await work
    assert 2 == len((await desk.hub.list_tools()).tools)


async def test_gateway_updates_aliases_with_their_servers(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Aliases also work for a server whose own tools are all hidden."""
    gateway = open_gateway(options=Options(catalog_store_path=tmp_path / "catalog.sqlite3"))
    gateway.add_virtual_server("work", {"open_ticket": Alias(of="shelf/a", description="Ask.")})
    gateway.add_virtual_server("other", {"again": "shelf/b", "local": "local/now"})
    before = await gateway.list_tools()
    shelf = Shelf([tool("a"), tool("b")])
    gateway.add_server("shelf", server=shelf.server, transforms=[Filter(allow=())])
    gateway.add_tool(now)
    result = await gateway.search("ask", filters=Filters(servers=frozenset({"work"})))
    listed = await gateway.list_tools()
    called = [(await gateway.invoke(name, {})).text for name in ("work/open_ticket", "again")]
    await gateway.remove_server("shelf")

    assert () == before
    assert ["open_ticket"] == names(result)
    assert ["again", "local", "now", "open_ticket"] == sorted(item.name for item in listed)
    assert ["called a", "called b"] == called
    assert ["local", "now"] == [item.name for item in await gateway.list_tools()]
    assert "12:00" == (await gateway.invoke("other/local", {})).text


async def test_search_for_servers_finds_a_virtual_server(open_gateway: OpenGateway) -> None:
    """A search for tools does not return it."""
    gateway = open_gateway()
    gateway.add_tool(now)
    gateway.add_virtual_server("work", {"clock": "local/now"}, description="What an office needs.")
    servers = Filters(kinds=frozenset({"virtual_server"}))

    result = await gateway.search("office clock", filters=servers)
    tools = await gateway.search("office clock")

    assert [("work", "virtual_server:work")] == [(item.server, item.id) for item in result.matches]
    assert "work" not in names(tools)


def now() -> str:
    """Tell the time."""
    return "12:00"


NOTES = resource("file:///notes.txt", "Notes.")
FILES = resource("file:///{path}")
WEEKLY = prompt("weekly", "Report.")
SHELF = VirtualServer(
    name="shelf",
    tools={},
    resources={
        "docs:today": Alias(of="hub/file:///notes.txt", description="What is on today."),
        "docs:{path}": Alias(of="hub/file:///{path}"),
    },
    prompts={"report": Alias(of="hub/weekly"), "gone": Alias(of="hub/no-such")},
)


async def test_resources_and_prompts_have_aliases(desk: Desk) -> None:
    desk.hub.tools += [NOTES, FILES, WEEKLY]
    source = desk.source(SHELF)
    listing = await source.list_tools()

    assert {
        "docs:today": "What is on today.",
        "docs:{path}": "",
        "report": "Report.",
    } == descriptions(listing)
    assert ("hub", "weekly") == source.resolve("prompt", "report")
    assert [None, None] == [source.resolve("prompt", item) for item in ("gone", "weekly")]
    assert [
        (
            "virtual server 'shelf': alias 'gone': 'hub/no-such' was not found: its server does "
            "not offer it, or a rule leaves it out; correct the alias"
        )
    ] == [item for item in details(listing) if "hub/no-such" in item]


async def test_changed_or_suspicious_prompt_is_reported_under_its_alias(desk: Desk) -> None:
    desk.hub.tools.append(WEEKLY)
    desk.hub.doubts = {"prompt:weekly": ("override",)}
    pinned = {"report": Alias(of="hub/weekly", pin="0" * 64)}
    table = replace(SHELF, resources={}, prompts=pinned)

    warned = await desk.source(table).list_tools()
    blocked = await desk.source(table, "block").list_tools()

    assert (["report"], []) == (list(descriptions(warned)), list(descriptions(blocked)))
    assert {"tool_suspicious", "tool_changed"} == set(codes(warned))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("docs:today", ("files", "file:///notes.txt")),
        ("docs:{path}", ("files", "file:///{path}")),
        ("docs:a/b.txt", ("files", "file:///a/b.txt")),
        ("docs:old/a", ("attic", "box://a")),
        ("doc:x", None),
    ],
)
async def test_alias_resolves_to_its_original(
    desk: Desk, name: str, expected: tuple[str, str] | None
) -> None:
    """If a URI matches several aliases of templates, the longest one is used."""
    desk.there["files"] = ListSource("files", [NOTES, FILES])
    desk.there["attic"] = ListSource("attic", [resource("box://{path}")])
    aliases = {
        "docs:today": Alias(of="files/file:///notes.txt"),
        "docs:{path}": Alias(of="files/file:///{path}"),
        "docs:old/{path}": Alias(of="attic/box://{path}"),
    }
    source = desk.source(VirtualServer(name="v", tools={}, resources=aliases))
    await source.list_tools()

    assert expected == source.resolve("resource", name)


@pytest.mark.parametrize(
    ("alias", "of", "message"),
    [
        ("today", "files/a:b", "is a URI"),
        ("docs:\u200b", "files/a:b", "visible characters"),
        (" ", "files/a:b", "visible characters"),
        ("d:" + "x" * 2000, "files/a:b", "visible characters"),
        ("docs:{id}", "files/file:///{path}", "must end as"),
        ("docs:x", "files/file:///{path}", "must end as"),
        ("docs:x", "files", "server/URI"),
    ],
)
def test_invalid_alias_is_refused(alias: str, of: str, message: str) -> None:
    """The limit for names of prompts is lower than the limit for URIs."""
    with pytest.raises(ConfigError, match=message):
        VirtualServer(name="v", tools={}, resources={alias: Alias(of=of)})
    with pytest.raises(ConfigError, match="1 to 128 visible characters"):
        VirtualServer(name="v", tools={}, prompts={"p" * 129: Alias(of="a/b")})
    for name, shown_name in (("no name", "a"), ("work", "no name")):
        with pytest.raises(ConfigError, match="cannot be used"):
            VirtualServer(name=name, tools={shown_name: Alias(of="a/b")})


def test_fingerprint_of_a_table_is_stable() -> None:
    """Approvals are stored under the fingerprint. Another fingerprint would lose them."""
    plain = VirtualServer(name="v", tools={"a": Alias(of="s/b")})
    more = VirtualServer(name="v", tools=plain.tools, prompts={"p": Alias(of="s/q")})

    assert plain.fingerprint.startswith("f616347d")
    assert plain.fingerprint != more.fingerprint

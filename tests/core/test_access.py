"""Rules of the host (status, scopes, enabled) and their effect on searches and calls."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from mcp.server.mcpserver import MCPServer

from gateway import Approval
from gateway.catalog import Entry
from gateway.chat.loop import ClientContext
from gateway.config.mcp_json import parse_manifest, read_manifest
from gateway.discovery import MetaNames, ToolList, ToolListBuilder, ToolListRequest
from gateway.discovery.call_handler import ToolCall, handle_call
from gateway.errors import ConfigError, InvalidRequestError, UnknownToolError
from gateway.gateway import Gateway
from gateway.options import CatalogOptions, Options
from gateway.sources import FunctionSource, Prefix, TransformedSource
from gateway.types import Access, Caller, Filters, Hints, SearchResult
from tests.conftest import PATIENT, OpenGateway
from tests.fakes import ListSource, every_id, tool

ADMIN = Caller(user="ada", tenant="acme", scopes=frozenset({"admin"}))
KEEPER = Access(scopes=frozenset({"admin"}))


def send_letter(to: str) -> str:
    """Send a letter to a person."""
    return f"sent to {to}"


def burn_letter(to: str) -> str:
    """Burn the letter to a person."""
    return f"burnt the one to {to}"


def forecast(city: str) -> str:
    """Tell the weather of a city."""
    return f"rain in {city}"


def shop() -> MCPServer:
    """Return a real server with a harmless tool and a restricted one."""
    server = MCPServer("shop")
    server.add_tool(send_letter)
    server.add_tool(burn_letter)
    return server


def notes() -> MCPServer:
    """Return a real server with one resource and a resource template."""
    server = MCPServer("notes")

    @server.resource("note://a")
    def a() -> str:
        return "the secret"

    @server.resource("note://of/{name}")
    def note_of(name: str) -> str:
        return f"the secret of {name}"

    return server


def ids(result: SearchResult) -> set[str]:
    return {entity_id.rpartition("/")[2] for entity_id in every_id(result)}


async def open_shop(gateway: Gateway, place: str) -> Gateway:
    """Register a shop with two tools, one of which needs a scope. *place*, a key of `WAYS`, says
    where the scope is declared.
    """
    if place == "a function":
        gateway.add_tool(send_letter)
        gateway.add_tool(burn_letter, access=KEEPER)
    elif place == "a transformed source":
        functions = FunctionSource("shop")
        functions.add(send_letter)
        functions.add(burn_letter, access=KEEPER)
        gateway.add_source(TransformedSource(functions, Prefix("my_")))
    else:
        gateway.add_server("shop", server=shop())
    return gateway


WAYS = {
    "a function": Options(),
    "a transformed source": Options(),
    "a rule": Options(catalog=CatalogOptions(rules={"shop/burn_*": KEEPER})),
}


@pytest.mark.parametrize("place", WAYS)
async def test_scope_hides_tool_from_callers_without_it(
    open_gateway: OpenGateway, place: str
) -> None:
    gateway = await open_shop(open_gateway(options=WAYS[place]), place)

    for caller, expected in ((Caller(), {"send"}), (ADMIN, {"send", "burn"})):
        result = await gateway.search("burn a letter", caller=caller)
        browsed = await gateway.search(caller=caller)
        listed = await gateway.list_tools(caller=caller)
        every = [ids(result), ids(browsed), {entity.name for entity in listed}]
        assert [expected] * 3 == [
            {name.removeprefix("my_").partition("_")[0] for name in names} for names in every
        ]
    (hidden,) = (tool for tool in await gateway.list_tools(caller=ADMIN) if "burn" in tool.name)
    for name in (hidden.id, hidden.exposed_name):
        with pytest.raises(UnknownToolError) as caught:
            await gateway.invoke(name, {"to": "Bob"})
        assert not [near for near in caught.value.near if "burn" in near]
    answer = await gateway.invoke(hidden.id, {"to": "Bob"}, caller=ADMIN)
    assert "burnt the one to Bob" == answer.text


async def test_server_description_does_not_name_hidden_tools(open_gateway: OpenGateway) -> None:
    """Otherwise a search for the words of a hidden tool would find its server."""
    options = Options(catalog=CatalogOptions(rules={"shop/burn_*": KEEPER}))
    gateway = open_gateway(options=options)
    gateway.add_server("shop", server=shop())
    servers = Filters(kinds=frozenset({"server"}))

    (server,) = await gateway.list_tools(servers)

    assert ["send_letter"] == server.definition.details["tools"]


async def test_search_ignores_disabled_and_draft_tools(open_gateway: OpenGateway) -> None:
    rules = {
        "shop/*": Access(enabled=False, tags=("mail",)),
        "shop/send_*": Access(enabled=True, status="draft"),
    }
    gateway = open_gateway(options=Options(catalog=CatalogOptions(rules=rules)))
    gateway.add_server("shop", server=shop())

    drafts = Filters(statuses=frozenset({"draft"}), tags=frozenset({"mail"}))

    assert () == await gateway.list_tools()
    assert ["send_letter"] == [entity.name for entity in await gateway.list_tools(drafts)]


async def test_search_finds_beta_tools_unless_filters_require_active(
    open_gateway: OpenGateway,
) -> None:
    beta = Access(status="beta")
    gateway = open_gateway(
        options=Options(catalog=CatalogOptions(rules={"mail/burn_*": Access(status="deprecated")}))
    )
    gateway.add_tool(forecast, access=beta)
    gateway.add_server("mail", server=shop(), access=beta)
    active = Filters(statuses=frozenset({"active"}))

    listed = {entity.name for entity in await gateway.list_tools()}
    result = await gateway.search("send a letter")

    assert {"forecast", "send_letter"} == listed
    assert ["send_letter"] == [match.name for match in result.matches[:1]]
    assert () == await gateway.list_tools(active)


async def test_alias_requires_the_scopes_of_its_original(open_gateway: OpenGateway) -> None:
    gateway = open_gateway(options=Options(catalog=CatalogOptions(rules={"shop/burn_*": KEEPER})))
    gateway.add_server("shop", server=shop(), access=Access(tags=("mail",)))
    gateway.add_virtual_server("desk", {"ashes": "shop/burn_letter", "post": "shop/send_letter"})
    desk = Filters(servers=frozenset({"desk"}))

    visible = [entity.name for entity in await gateway.list_tools(desk)]
    every = [entity.name for entity in await gateway.list_tools(desk, caller=ADMIN)]

    assert (["post"], ["ashes", "post"]) == (visible, every)


async def test_conversation_shows_only_tools_of_its_caller(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_tool(send_letter)
    gateway.add_tool(burn_letter, access=KEEPER)
    lists = ToolListBuilder(gateway)
    call = ToolCall(id="1", name="burn_letter", arguments='{"to": "Bob"}')
    answers, requests = [], []

    for caller in (Caller(), ADMIN):
        request = ToolListRequest(
            messages=(), required=("burn_letter", "send_letter"), caller=caller
        )
        tools = await lists.build(request)
        requests.append(tools.proxies)
        answers.append(await handle_call(gateway, tools, call))

    assert [["send_letter"], ["burn_letter", "send_letter"]] == list(map(sorted, requests))
    assert answers[0].failed
    assert "burnt the one to Bob" in answers[1].text


async def test_changed_access_rules_apply_to_the_next_search(open_gateway: OpenGateway) -> None:
    """Rules are not searched texts, so nothing is listed or embedded again."""
    gateway = open_gateway()
    gateway.add_server("shop", server=shop())
    before = {entity.name for entity in await gateway.list_tools()}

    gateway.set_rules({"shop/burn_*": KEEPER})
    after = {entity.name for entity in await gateway.list_tools()}

    assert ({"burn_letter", "send_letter"}, {"send_letter"}) == (before, after)


FILE = """{
  "mcpServers": {
    "one": {"command": "python", "scopes": ["admin"], "tags": ["ours"]},
    "two": {"command": "python", "enabled": false, "status": "draft"}
  },
  "virtualServers": {"few": {"scopes": ["staff"], "tools": {"x": "one/x"}}},
  "rules": {"*/delete_*": {"scopes": ["admin"]}, "two": {"status": "beta"}}
}"""


def test_config_file_sets_access_of_servers_and_patterns(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(FILE)
    manifest = read_manifest(path)

    assert {
        "one": Access(scopes=frozenset({"admin"}), tags=("ours",)),
        "two": Access(enabled=False, status="draft"),
        "few": Access(scopes=frozenset({"staff"})),
    } == manifest.access
    assert {"*/delete_*": KEEPER, "two": Access(status="beta")} == manifest.rules
    assert () == manifest.warnings


@pytest.mark.parametrize(
    ("entry", "rules", "message"),
    [
        ({"scopes": "admin"}, {}, "server 'one'.*must be a list"),
        ({"status": "gone"}, {}, "server 'one'.*status"),
        ({}, {"*": {"scope": ["admin"]}}, "'rules'.*unknown key 'scope'"),
        ({}, ["*"], "'rules'.*must be an object"),
    ],
)
def test_configuration_with_an_invalid_access_rule_is_not_used(
    entry: dict[str, object], rules: object, message: str
) -> None:
    """A server with an invalid key in its entry is left out. An invalid table of rules makes the
    whole file unusable.
    """
    table = {"one": {"command": "python", **entry}}
    document = {"mcpServers": table, "rules": rules}
    if entry:
        manifest = parse_manifest(document)
        assert ({}, ("one",)) == (manifest.servers, manifest.unusable)
        assert re.search(message, manifest.warnings[0].detail)
    else:
        with pytest.raises(ConfigError, match=message):
            parse_manifest(document)


async def test_changed_config_file_changes_its_access_rules(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Rules of the file are added to the host's rules, even for the same pattern."""
    path = tmp_path / "mcp.json"
    rule = {"shop/burn_letter": {"tags": ["hot"]}}
    path.write_text(json.dumps({"mcpServers": {}, "rules": rule}))
    gateway = open_gateway(
        options=Options(catalog=CatalogOptions(rules={"shop/burn_letter": KEEPER}))
    )
    gateway.add_server("shop", server=shop())
    gateway.add_config(path)

    hidden = await gateway.list_tools(Filters(tags=frozenset({"hot"})))
    tagged = await gateway.list_tools(Filters(tags=frozenset({"hot"})), caller=ADMIN)
    path.write_text(json.dumps({"mcpServers": {}, "rules": {"shop/*": {"enabled": False}}}))
    await gateway.reload()

    assert ([], ["burn_letter"]) == ([*hidden], [entity.name for entity in tagged])
    assert () == await gateway.list_tools(caller=ADMIN)


async def test_tool_named_like_its_server_follows_rules_for_tools(
    open_gateway: OpenGateway,
) -> None:
    """The pattern `server` matches only the server itself."""
    rules = {"fetch/*": Access(enabled=False)}
    gateway = open_gateway(options=Options(catalog=CatalogOptions(rules=rules)))
    gateway.add_source(ListSource("fetch", [tool("fetch")]))

    assert () == await gateway.list_tools()
    with pytest.raises(UnknownToolError):
        await gateway.invoke("fetch", {})


async def test_alias_follows_rules_for_every_name_of_its_original(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway()
    gateway.add_server("shop", server=shop(), transforms=[Prefix("my_")])
    gateway.add_server(
        "bank",
        server=shop(),
        hints={"send_letter": Hints(enabled=False), "burn_letter": Hints(destructive=True)},
    )
    gateway.add_virtual_server(
        "desk",
        {"ashes": "shop/burn_letter", "post": "bank/send_letter", "fire": "bank/burn_letter"},
    )
    gateway.set_rules({"shop/my_burn_*": KEEPER})

    (fire,) = await gateway.list_tools(Filters(servers=frozenset({"desk"})))

    assert ("fire", True) == (fire.name, fire.hints.destructive)


async def test_approved_call_runs_the_approved_tool(open_gateway: OpenGateway) -> None:
    """By the time the host decides, the name may refer to another tool."""
    gateway = open_gateway()
    gateway.add_source(ListSource("a", [tool("send", hints=Hints(destructive=True))]))

    async def approve(_approval: Approval) -> bool:
        await gateway.remove_server("a")
        gateway.add_source(ListSource("b", [tool("send")]))
        return True

    tools = ToolList(names=MetaNames(search="search_tools", call="call_tool"))
    call = ToolCall(id="1", name="send", arguments="{}")
    answer = await handle_call(gateway, tools, call, approve=approve)

    assert answer.failed
    assert answer.result is None


@pytest.mark.parametrize(
    "access",
    [Access(enabled=False), Access(status="draft"), KEEPER],
    ids=["disabled", "a draft", "a scope"],
)
async def test_read_from_a_hidden_server_raises_the_error_for_an_unknown_server(
    open_gateway: OpenGateway, access: Access
) -> None:
    """Otherwise the error would reveal that the server exists."""
    gateway = open_gateway()
    gateway.add_server("legacy", server=notes(), access=access)
    errors = []

    for server in ("legacy", "nowhere"):
        with pytest.raises(InvalidRequestError) as caught:
            await gateway.read(f"gateway:/{server}/note://unlisted")
        errors.append(str(caught.value).replace(server, "SERVER"))

    assert errors[0] == errors[1]


async def test_catalog_entry_does_not_reveal_a_resource_of_a_hidden_server(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """The namespace of an entry may equal the name of a server."""
    gateway = open_gateway(options=replace(PATIENT, catalog_store_path=tmp_path / "c.sqlite3"))
    gateway.add_server("payroll", server=notes(), access=KEEPER)
    await gateway.catalog.put(Entry(kind="skill", namespace="payroll", name="note://a"))

    with pytest.raises(InvalidRequestError, match="no server has the resource"):
        await gateway.read("gateway:/payroll/note://a")
    (content,) = await gateway.read("gateway:/payroll/note://a", caller=ADMIN)
    assert "the secret" == content.text


def test_new_client_continues_the_conversations_of_its_caller(open_gateway: OpenGateway) -> None:
    """A host may create a client for each request. Requests that a model service refused are
    remembered for all callers.
    """
    context = ClientContext(open_gateway())

    ada, again, bob = (context.for_caller(caller) for caller in (ADMIN, ADMIN, Caller(user="bob")))

    assert ada.store is again.store
    assert ada.store is not bob.store
    assert ada.tool_lists is bob.tool_lists


async def test_search_returns_the_result_of_an_empty_catalog_if_all_tools_are_hidden(
    open_gateway: OpenGateway,
) -> None:
    gateway, bare = open_gateway(), open_gateway()
    gateway.add_tool(burn_letter, access=KEEPER)

    for query in ("burn a letter", None):
        assert await bare.search(query) == await gateway.search(query)
        assert "empty" != (await gateway.search(query, caller=ADMIN)).mode


async def test_virtual_server_does_not_name_servers_of_hidden_tools(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway()
    gateway.add_server("shop", server=shop())
    gateway.add_server("vault", server=shop(), access=KEEPER)
    table = {"post": "shop/send_letter", "ashes": "vault/burn_letter"}
    gateway.add_virtual_server("desk", table)
    gateway.add_virtual_server("cellar", table, access=KEEPER)
    kinds = Filters(kinds=frozenset({"virtual_server"}))

    (server,) = await gateway.list_tools(kinds)
    cellar, _ = await gateway.list_tools(kinds, caller=ADMIN)

    assert (["shop"], ["post"]) == tuple(
        server.definition.details[key] for key in ("servers", "tools")
    )
    assert ["shop", "vault"] == cellar.definition.details["servers"]

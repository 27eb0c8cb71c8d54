"""Decisions to disable or hide a connected server apply to everything that it offers, on every
path.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from mcp import types
from mcp.server import Server

from gateway.discovery import ToolListBuilder, ToolListRequest
from gateway.discovery.call_handler import ToolCall, handle_call
from gateway.errors import InvalidRequestError, UnknownToolError
from gateway.gateway import Gateway
from gateway.options import CatalogOptions, Options
from gateway.serve.api.app import api_routes
from gateway.serve.auth import WRITE, BearerToken
from gateway.serve.http_options import HttpOptions
from gateway.types import ANYONE, Access, Caller, Filters, Hints
from graphs import Document, Link
from tests.apps.cli.running import Place
from tests.apps.serve.test_callers import SECRETS, bearer, client_of
from tests.apps.serve.test_http import served
from tests.conftest import PATIENT, OpenGateway
from tests.core.mcp.servers.letters import letters
from tests.fakes import ListSource, every_id, tool

ADMIN = Caller(user="ada", scopes=frozenset({"admin"}))
CLERK = Caller(user="bo", scopes=frozenset({"admin", WRITE}))
CLOSED: Mapping[str, dict[str, object]] = {
    "disabled": {"enabled": False},
    "deprecated": {"status": "deprecated"},
    "draft": {"status": "draft"},
    "scoped": {"scopes": ["admin"]},
}
OPEN: dict[str, object] = {"enabled": True, "status": "active", "scopes": []}
PROGRAM: dict[str, object] = {
    "command": sys.executable,
    "args": [str(Path(__file__).parents[1] / "core" / "mcp" / "servers" / "letters.py")],
}
KINDS = Filters(kinds=frozenset({"tool", "prompt", "resource"}))
WALK = Document(id="host:walk", title="walk", next_steps=(Link(target="burn_letter"),))
QUERY = "burn the letter to a person"
EVERY_WAY = {
    *("search", "search of all kinds", "list", "next steps", "graph"),
    *("call", "prompt", "read", "read by template"),
}


async def ways_to(gateway: Gateway, caller: Caller = ANYONE) -> set[str]:
    """Return the names of the paths on which *caller* reaches any entity of the server `shop`."""
    result = await gateway.search(QUERY, caller=caller)
    of_kinds = await gateway.search(QUERY, caller=caller, filters=KINDS, ranking="hybrid")
    answers = {
        "search": every_id(result),
        "search of all kinds": every_id(of_kinds),
        "list": (tool.id for tool in await gateway.list_tools(KINDS, caller=caller)),
        "next steps": (tool.id for tool in await gateway.next_steps(["walk"], caller=caller)),
        "graph": map(str, await gateway.graph(caller=caller)),
    }
    ways = {way for way, ids in answers.items() if any("shop/" in tool for tool in ids)}
    calls: Mapping[str, Callable[[], Awaitable[object]]] = {
        "call": lambda: gateway.invoke("shop/burn_letter", {"to": "Bo"}, caller=caller),
        "prompt": lambda: gateway.prompt("greet", {}, caller=caller),
        "read": lambda: gateway.read("note://a", caller=caller),
        "read by template": lambda: gateway.read("gateway:/shop/note://of/b", caller=caller),
    }
    for way, work in calls.items():
        try:
            await work()
        except (UnknownToolError, InvalidRequestError):
            continue
        ways.add(way)
    return ways


def unlisted() -> Server[object]:
    """Return a real server that lists nothing and answers every read."""

    async def list_resources(_context: object, _params: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def read(
        _context: object, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        text = types.TextResourceContents(uri=params.uri, text="the note")
        return types.ReadResourceResult(contents=[text])

    return Server("shop", on_list_resources=list_resources, on_read_resource=read)


def open_shop(open_gateway: OpenGateway, folder: Path, by: str = "add_server") -> Gateway:
    """Open a gateway with the server `shop`, and with a tool for which the host wrote next
    steps.
    """
    options = replace(PATIENT, catalog_store_path=folder / "catalog.sqlite3")
    gateway = open_gateway((tool("walk"),), options=options, graph=[WALK])
    if by == "add_server":
        gateway.add_server("shop", server=letters())
    else:
        path = folder / "mcp.json"
        path.write_text(json.dumps({"mcpServers": {"shop": PROGRAM}}))
        gateway.add_config(path)
    return gateway


@pytest.mark.parametrize("by", ["add_server", "mcpServers"])
@pytest.mark.parametrize("decision", CLOSED)
async def test_disabled_server_hides_all_its_entities_on_every_path(
    open_gateway: OpenGateway, tmp_path: Path, by: str, decision: str
) -> None:
    gateway = open_shop(open_gateway, tmp_path, by)
    before = await ways_to(gateway)

    await gateway.catalog.change(["server:shop"], CLOSED[decision])
    closed, of_admin = await ways_to(gateway), await ways_to(gateway, ADMIN)
    await gateway.catalog.change(["server:shop"], OPEN)

    assert EVERY_WAY == before == await ways_to(gateway)
    assert set() == closed
    assert (EVERY_WAY if decision == "scoped" else set()) == of_admin


@pytest.mark.parametrize("decision", CLOSED)
async def test_server_disabled_over_rest_is_hidden_from_rest_and_mcp(
    open_gateway: OpenGateway, tmp_path: Path, decision: str
) -> None:
    gateway = open_shop(open_gateway, tmp_path)
    tokens = (
        BearerToken.from_secret("clerk", SECRETS["clerk"], CLERK),
        BearerToken.from_secret("guest", SECRETS["guest"], ANYONE),
    )
    options = HttpOptions(port=0, tokens=tokens)
    states = []
    async with (
        served(gateway, options, api_routes(gateway, options), expose="all") as url,
        client_of(url, "guest") as client,
        httpx2.AsyncClient(base_url=url.replace("/mcp", "/api/"), trust_env=False) as http,
    ):
        for use in ({}, CLOSED[decision], OPEN):
            await http.patch("entities/server:shop", json=use, headers=bearer("clerk"))
            result = await http.post(
                "search/semantic", json={"query": QUERY}, headers=bearer("guest")
            )
            answers = (
                result.text,
                *(tool.name for tool in (await client.list_tools()).tools),
                *(tool.name for tool in (await client.list_prompts()).prompts),
                *(str(tool.uri) for tool in (await client.list_resources()).resources),
            )
            called = await client.call_tool("burn_letter", {"to": "Bo"})
            words = ("shop/burn_letter", "burn_letter", "greet", "note://a")
            states.append(
                [not called.is_error, *(any(word in tool for tool in answers) for word in words)]
            )

    assert [[True] * 5, [False] * 5, [True] * 5] == states


@pytest.mark.parametrize("decision", ["--disable", "--set-status=deprecated"])
def test_server_disabled_by_the_command_line_hides_its_entities(
    tmp_path: Path, decision: str
) -> None:
    place = Place(folder=tmp_path)
    config = place.config({"shop": PROGRAM})
    search = ("search", QUERY, "-c", config, "--strategy", "graph", "--json")

    before = place.run(*search)
    place.run("catalog", "change", "server:shop", "-c", config, decision)
    result = place.run(*search)
    called = place.run("call", "shop/burn_letter", "-c", config, '{"to": "Bo"}')
    place.run("catalog", "change", "server:shop", "-c", config, "--enable", "--set-status=active")
    again = place.run("call", "shop/burn_letter", "-c", config, '{"to": "Bo"}')

    assert "shop/burn_letter" in before.out
    assert "shop/burn_letter" not in result.out
    assert "burnt" not in called.out
    assert "burnt the one to Bo" in again.out


async def test_disabled_server_is_hidden_from_the_meta_tools(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    gateway = open_shop(open_gateway, tmp_path)
    await gateway.catalog.change(["server:shop"], {"enabled": False})
    tools = await ToolListBuilder(gateway).build(ToolListRequest(messages=(), caller=ANYONE))
    calls = (
        ToolCall(id="1", name="search_tools", arguments=json.dumps({"query": QUERY})),
        ToolCall(
            id="2", name="call_tool", arguments='{"name": "burn_letter", "arguments": {"to": "Bo"}}'
        ),
    )

    searched, called = [await handle_call(gateway, tools, call) for call in calls]

    assert "burn_letter" not in searched.text
    assert called.failed


async def test_enabled_tool_of_a_disabled_server_stays_hidden(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """A decision to enable the tool, made before the server was disabled, does not override the
    decision about the server.
    """
    gateway = open_shop(open_gateway, tmp_path)
    gateway.add_virtual_server("desk", {"ashes": "shop/burn_letter"})
    opened = {"enabled": True, "status": "active"}
    await gateway.catalog.change(["shop/burn_letter", "desk/ashes"], opened)
    before = await gateway.invoke("desk/ashes", {"to": "Bo"})

    for use in CLOSED.values():
        await gateway.catalog.change(["server:shop"], use)
        for name in ("shop/burn_letter", "desk/ashes"):
            with pytest.raises(UnknownToolError):
                await gateway.invoke(name, {"to": "Bo"})
        await gateway.catalog.change(["server:shop"], OPEN)

    assert "burnt the one to Bo" == before.text


async def test_disabled_tool_of_an_enabled_server_stays_hidden(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """A hint of the host or a decision disabled the tool."""
    options = replace(PATIENT, catalog_store_path=tmp_path / "catalog.sqlite3")
    gateway = open_gateway(options=options)
    hints = {"wipe": Hints(enabled=False)}
    gateway.add_server("shop", server=letters())
    gateway.add_source(ListSource("disk", [tool("wipe"), tool("read")]), hints=hints)
    await gateway.catalog.change(["shop/burn_letter"], {"status": "deprecated"})
    gateway.set_rules({"disk": Access(enabled=True)})

    for enabled in (False, True):
        await gateway.catalog.change(["server:shop"], {"enabled": enabled, "status": "active"})

    assert ["read"] == [each.name for each in await gateway.list_tools()]


@pytest.mark.parametrize("access", [Access(enabled=False), Access(status="deprecated")])
async def test_decision_about_a_server_overrides_its_configuration(
    open_gateway: OpenGateway, tmp_path: Path, access: Access
) -> None:
    options = replace(PATIENT, catalog_store_path=tmp_path / "catalog.sqlite3")
    gateway = open_gateway(options=options)
    gateway.add_server("shop", server=letters(), access=access)
    before = await gateway.list_tools(KINDS)

    await gateway.catalog.change(["server:shop"], {"enabled": True, "status": "active"})

    assert () == before
    assert 4 == len(await gateway.list_tools(KINDS))


async def test_rule_for_one_tool_overrides_a_rule_for_a_pattern_of_names(
    open_gateway: OpenGateway,
) -> None:
    """Users often disable all servers and tools except one tool."""
    rules = {
        "*": Access(enabled=False),
        "shop/burn_*": Access(enabled=True),
        "disk/read": Access(enabled=True, tags=("ours",)),
        "disk": Access(enabled=False, tags=("hot",)),
    }
    gateway = open_gateway(options=Options(catalog=CatalogOptions(rules=rules)))
    gateway.add_server("shop", server=letters())
    gateway.add_source(ListSource("disk", [tool("read")]))
    everything = Filters(include_disabled=True, servers=frozenset({"disk"}))

    assert ["burn_letter"] == [each.name for each in await gateway.list_tools()]
    (disk,) = await gateway.list_tools(everything)
    assert ("ours",) == disk.hints.tags


@pytest.mark.parametrize("decision", CLOSED)
async def test_unlisted_resource_of_a_disabled_server_is_not_read(
    open_gateway: OpenGateway, tmp_path: Path, decision: str
) -> None:
    """The server lists nothing, so only the decision about the server applies."""
    gateway = open_gateway(options=replace(PATIENT, catalog_store_path=tmp_path / "c.sqlite3"))
    gateway.add_server("shop", server=unlisted())
    (before,) = await gateway.read("gateway:/shop/note://a")

    await gateway.catalog.change(["server:shop"], CLOSED[decision])

    assert "the note" == before.text
    with pytest.raises(InvalidRequestError, match="no server has the resource"):
        await gateway.read("gateway:/shop/note://a")


async def test_text_of_a_disabled_server_still_names_its_tools(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """The text of the server does not change, so it is not embedded again."""
    gateway = open_shop(open_gateway, tmp_path)
    servers = Filters(kinds=frozenset({"server"}), include_disabled=True)
    (before,) = await gateway.list_tools(servers)

    await gateway.catalog.change(["server:shop"], {"enabled": False})
    (after,) = await gateway.list_tools(servers)

    assert not after.hints.enabled
    assert before.definition.details == after.definition.details

"""Entities that a caller may not see are hidden on every path, byte for byte.

Each world is built twice: with the hidden tools, and without them. A request for a hidden name gets
the same answer from both gateways, and no list or result contains a hidden name.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from glob import escape
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError, types
from mcp.client.streamable_http import streamable_http_client

from gateway import AsyncAutoDiscoveryClient, discover
from gateway.adapters.anthropic import definition, tool_call, tool_result
from gateway.adapters.broker import ToolBroker
from gateway.discovery import MetaNames, ToolList
from gateway.discovery.call_handler import ToolCall, handle_call
from gateway.embed import MemoryVectorStore
from gateway.errors import GatewayError
from gateway.gateway import Gateway
from gateway.options import AccessPolicy, CatalogOptions, DiscoveryOptions
from gateway.plugins.provision import overview_for_model
from gateway.serve.api.app import api_app
from gateway.serve.auth import WRITE, BearerToken
from gateway.serve.extra_tools import extra_tools
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import Expose, mcp_server
from gateway.sources import Source
from gateway.testing import Call, HashingEmbedder, ScriptedModel, Turn, script
from gateway.types import Access, Caller, Filters, Status, ToolDefinition
from graphs import Document, Link
from tests.apps.adapters.conformance import client_of
from tests.apps.serve.test_http import served
from tests.conftest import PATIENT
from tests.core.call.test_resources import Shop, thing
from tests.fakes import tool

SCOPES = ("read", "write")
SERVERS = ("srvaa", "srvbb")
STATUSES: tuple[Status | None, ...] = (None, None, "beta", "draft", "deprecated")
WORDS = ("invoice", "contract", "customer")
SECRET = "s3cret-of-the-caller"
BEARER = {"Authorization": f"Bearer {SECRET}"}
ANYTHING = frozenset({"tool", "prompt", "resource", "server"})
Show = Callable[[Gateway, Caller], Awaitable[str]]
"""Function that returns everything that one interface of the gateway shows to a caller."""
Ask = Callable[[Gateway, Caller, str], Awaitable[str]]
"""Function that requests an entity by name as a caller, through one interface of the gateway, and
returns the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A catalog of tools, prompts and resources with access rules, and a caller."""

    access: Mapping[str, Access]
    """Access rules, keyed by ``server/name``."""
    caller: Caller
    denied: frozenset[str] = frozenset()
    """Entities denied to the caller by a policy, as ``server/name``."""

    @property
    def hidden(self) -> set[str]:
        """Names of the entities that the caller may not see."""
        return {key.partition("/")[2] for key in self.access if not self.shows(key)}

    def shows(self, key: str) -> bool:
        """Return whether the caller may see the entity *key* (``server/name``), by the rule in the
        documentation.
        """
        access = self.access[key]
        return (
            self.opens(key)
            and access.enabled is not False
            and access.status in {None, "active", "beta"}
        )

    def opens(self, key: str) -> bool:
        """Return whether the HTTP API shows the entity *key* to the caller. It also shows entities
        that are not in use.
        """
        return key not in self.denied and self.access[key].scopes <= self.caller.scopes

    def open(self, *, whole: bool) -> Gateway:
        """Create a gateway with the *whole* world, or only with the part that the caller may
        see.
        """
        keys = [key for key in self.access if whole or self.shows(key)]
        titles = [key.partition("/")[2] for key in keys]
        documents = [
            Document(
                id=f"host:{name}",
                title=name,
                next_steps=tuple(Link(target=title) for title in titles if title > name),
                requires=tuple(Link(target=title) for title in titles if title < name),
            )
            for name in titles
        ]
        rules = {key: self.access[key] for key in keys}
        denied = tuple(f"*{escape(key)}" for key in sorted(self.denied.intersection(keys)))
        policies = (AccessPolicy(action="deny", users=("a*",), tools=denied),) if denied else ()
        gateway = Gateway(
            strategy="auto",
            embedder=HashingEmbedder(64),
            graph=documents,
            vector_store=MemoryVectorStore(),
            options=replace(
                PATIENT,
                catalog=CatalogOptions(rules=rules),
                policies=policies,
                discovery=DiscoveryOptions(
                    route_name="route_tools", next_name="next_tools", next_steps=3, preselect=3
                ),
            ),
        )
        for server in SERVERS:
            if own := [key for key in keys if key.startswith(server)]:
                gateway.add_source(_source(server, own))
        return gateway


def _source(server: str, keys: list[str]) -> Source:
    names = [key.partition("/")[2] for key in keys]
    shop = Shop(
        server,
        *(thing("prompt", name, "Write of an invoice.") for name in names if "prompt" in name),
        *(thing("resource", name, "An invoice.") for name in names if "res:" in name),
    )
    shop.tools = [_tool(name) for name in names if name.startswith("thing")]
    shop.answer = {"contents": [], "messages": [], "completion": {"values": []}}
    return shop


def _tool(name: str) -> ToolDefinition:
    word = WORDS[int(name[-1]) % len(WORDS)]
    schema = {"type": "object", "properties": {word: {"type": "string"}}, "required": [word]}
    return replace(tool(name, f"Handle the {word} of the month."), input_schema=schema)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Generate a small catalog that the caller may see in part."""
    names = [
        *(f"thing{number:02d}" for number in range(draw(st.integers(2, 5)))),
        "prompt07",
        "res://item08",
    ]
    access = {
        f"{draw(st.sampled_from(SERVERS))}/{name}": Access(
            status=draw(st.sampled_from(STATUSES)),
            enabled=draw(st.sampled_from([None, None, None, False])),
            scopes=draw(st.frozensets(st.sampled_from(SCOPES), max_size=1)),
        )
        for name in names
    }
    caller = Caller(
        user="ada", tenant="acme", scopes=draw(st.frozensets(st.sampled_from(SCOPES), max_size=1))
    )
    denied = draw(st.frozensets(st.sampled_from(sorted(access)), max_size=2))
    return World(access=access, caller=caller, denied=denied)


few = settings(
    deadline=None,
    derandomize=True,
    max_examples=6,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


async def text_of(work: Awaitable[object]) -> str:
    """Return the complete text of an answer or an error."""
    try:
        return repr(await work)
    except (GatewayError, MCPError) as error:
        near = getattr(error, "near", ()), getattr(error, "unlisted", 0)
        return f"{type(error).__name__} {error} {near} {getattr(error, 'error', '')}"


# Functions of the type `Show`, for interfaces that show entities.


async def searches(gateway: Gateway, caller: Caller) -> str:
    """Search, and return every list of the result with its evidence."""
    kinds = Filters(kinds=ANYTHING)
    result = [
        await gateway.search("handle the invoice", limit=20, caller=caller),
        await gateway.search(None, limit=50, caller=caller),
        await gateway.search("invoice", limit=20, filters=kinds, caller=caller),
        await gateway.search(queries=["customer", "contract"], caller=caller),
    ]
    return repr([replace(item, stages={}) for item in result])


async def lists(gateway: Gateway, caller: Caller) -> str:
    """Return the tools, prompts and resources, and the overview of the catalog."""
    library = gateway.library
    overview = await discover(gateway, "handle the invoice", caller=caller)
    whole = await discover(gateway, caller=caller)
    return repr(
        [
            await gateway.list_tools(caller=caller),
            await library.entities("prompt", caller=caller),
            await library.entities("resource", caller=caller),
            overview_for_model(overview, max_chars=100_000),
            overview_for_model(whole, max_chars=100_000),
            whole.diagnostics,
        ]
    )


async def graphs_of(gateway: Gateway, caller: Caller) -> str:
    """Return the graph as data, as RDF and as a drawing."""
    network = await gateway.graph(caller=caller)
    turtle, drawing = [
        await gateway.export_graph(form, caller=caller) for form in ("turtle", "dot")
    ]
    return repr([[*network.nodes(data=True)], [*network.edges(keys=True, data=True)]]) + (
        turtle + drawing
    )


async def brokers(gateway: Gateway, caller: Caller) -> str:
    """Return the tools that adapters offer to a framework."""
    broker = ToolBroker(gateway)
    asked = [{"role": "user", "content": "handle the invoice"}]
    built = await broker.build_tools(asked, (), caller=caller)
    retrieved = await broker.retrieve("handle the invoice", (), caller=caller)
    result = await broker.answer(built, built.names.search, {"query": "customer"})
    routed = await broker.answer(built, built.names.route, {"query": "customer"})
    return repr([built.tools, retrieved.tools, result.text, routed.text])


async def messages_api(gateway: Gateway, caller: Caller) -> str:
    """Return the definitions and references for Anthropic's API."""
    options = gateway.options.discovery
    tools = ToolList(names=MetaNames(search="search_tools", call="call_tool"), caller=caller)
    block = {"type": "tool_use", "id": "1", "name": "search_tools", "input": {"query": "invoice"}}
    answer = await handle_call(gateway, tools, tool_call(block))
    entities = await gateway.list_tools(caller=caller)
    return repr(
        [[definition(entity, options) for entity in entities], tool_result(answer, options)]
    )


async def conversations(gateway: Gateway, caller: Caller) -> str:
    """Return all requests of the chat wrapper to a model."""
    turns = (
        Turn(calls=(Call("search_tools", {"query": "handle the invoice"}),)),
        Turn(calls=(Call("search_tools", {"queries": ["customer", "contract"]}),)),
        Turn("Done."),
    )
    return await sent(gateway, caller, turns)


async def sent(gateway: Gateway, caller: Caller, turns: tuple[Turn, ...]) -> str:
    """Return the bodies of the requests of one conversation."""
    model = ScriptedModel(script(*turns))
    model.start()
    try:
        async with client_of(model.base_url) as openai:
            client = AsyncAutoDiscoveryClient(openai, gateway).for_caller(caller)
            asked: Any = [{"role": "user", "content": "Help me."}]
            await client.chat.completions.create(model="scripted", messages=asked)
        return json.dumps(
            [[request.messages, request.tools] for request in model.requests], default=str
        )
    finally:
        model.close()


async def mcp_lists(gateway: Gateway, caller: Caller, *, expose: Expose, over: str) -> str:
    """Return the tools, prompts, resources, templates and meta-tool answers over MCP."""
    async with mcp_client(gateway, caller, expose, over=over) as client:
        output: list[object] = [
            await client.list_tools(),
            await client.list_prompts(),
            await client.list_resources(),
            await client.list_resource_templates(),
        ]
        if expose == "meta":
            output.append(await client.call_tool("search_tools", {"query": "invoice"}))
            output.append(await client.call_tool("discover", {}))
    return repr(output)


@asynccontextmanager
async def mcp_client(
    gateway: Gateway, caller: Caller, expose: Expose, *, over: str
) -> AsyncIterator[Client]:
    """Yield an MCP client: in this process for the caller, or over HTTP with a token."""
    extras = tuple(extra_tools(gateway, frozenset({"discover"})))
    if over == "process":
        server = mcp_server(gateway, expose=expose, caller=caller, extras=extras)
        async with Client(server) as client:
            yield client
        return
    options = HttpOptions(port=0, tokens=(BearerToken.from_secret("caller", SECRET, caller),))
    async with (
        served(gateway, options, expose=expose, extras=extras) as url,
        httpx2.AsyncClient(headers=BEARER, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def api_lists(gateway: Gateway, caller: Caller) -> str:
    """Return every list and every search of the HTTP API."""
    async with api_client(gateway, caller) as client:
        body = {"query": "handle the invoice", "max_results": 50}
        answers = [
            await client.post("/api/search/semantic", json=body),
            await client.get("/api/search/tags"),
            await client.get("/api/entities?limit=50"),
            await client.get("/api/servers"),
            await client.get("/api/skills/search?q=invoice"),
        ]
    assert {200} == {answer.status_code for answer in answers}
    return "".join(answer.text for answer in answers)


@asynccontextmanager
async def api_client(gateway: Gateway, caller: Caller) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client of the HTTP API whose token has the caller's scopes and may also write."""
    caller = replace(caller, scopes=caller.scopes | {WRITE})
    options = HttpOptions(tokens=(BearerToken.from_secret("caller", SECRET, caller),))
    transport = httpx2.ASGITransport(app=api_app(gateway, options))
    base = "http://127.0.0.1:8930"
    async with httpx2.AsyncClient(transport=transport, base_url=base, headers=BEARER) as client:
        yield client


SHOWN: Mapping[str, Show] = {
    "searches": searches,
    "lists": lists,
    "the graph": graphs_of,
    "adapters": brokers,
    "the Messages API": messages_api,
    "a conversation": conversations,
    "MCP, two tools": partial(mcp_lists, expose="meta", over="process"),
    "MCP, all tools": partial(mcp_lists, expose="all", over="process"),
    "MCP over HTTP, two tools": partial(mcp_lists, expose="meta", over="http"),
    "MCP over HTTP, all tools": partial(mcp_lists, expose="all", over="http"),
    "the HTTP API": api_lists,
}


# Functions of the type `Ask`, for interfaces that accept the name of an entity.


async def calls(gateway: Gateway, caller: Caller, name: str) -> str:
    """Call, follow, read, fill in, complete and draw the entity *name*."""
    completion = {"argument": {"name": "a", "value": ""}}
    library = gateway.library
    return repr(
        [
            await text_of(gateway.invoke(name, {}, caller=caller)),
            await text_of(gateway.next_steps([name], caller=caller)),
            await text_of(gateway.read(name, caller=caller)),
            await text_of(gateway.prompt(name, caller=caller)),
            await text_of(library.complete("prompt", name, completion, caller=caller)),
            await text_of(library.complete("resource", name, completion, caller=caller)),
            await text_of(gateway.export_graph("dot", centre=name, caller=caller)),
        ]
    )


async def model_calls(gateway: Gateway, caller: Caller, name: str) -> str:
    """Call *name* like a model: directly, by the call tool, with broken arguments, and by
    advice.
    """
    names = MetaNames(search="search_tools", call="call_tool", next="next_tools")
    tools = ToolList(names=names, caller=caller)
    broker = ToolBroker(gateway)
    asked = (
        (name, "{}"),
        (name, "{"),
        ("call_tool", json.dumps({"name": name, "arguments": {}})),
        ("call_tool", json.dumps({"name": name, "arguments": "{"})),
        ("next_tools", json.dumps({"tools": [name]})),
    )
    answers = [
        await handle_call(gateway, tools, ToolCall(id="1", name=called, arguments=arguments))
        for called, arguments in asked
    ]
    broken = await broker.answer(await broker.retrieve(name, (), caller=caller), name, {"x": 1})
    return repr([item.text for item in (*answers, broken)])


async def conversation_calls(gateway: Gateway, caller: Caller, name: str) -> str:
    """Call *name* in a conversation through the chat wrapper."""
    turns = (
        Turn(calls=(Call(name, {}),)),
        Turn(calls=(Call("call_tool", {"name": name, "arguments": {}}),)),
        Turn("Done."),
    )
    return await sent(gateway, caller, turns)


async def mcp_calls(
    gateway: Gateway, caller: Caller, name: str, *, expose: Expose, over: str
) -> str:
    """Call, read, fill in, complete and watch *name* as an MCP client."""
    argument = {"name": "a", "value": ""}
    async with mcp_client(gateway, caller, expose, over=over) as client:
        ref = types.PromptReference(name=name)
        template = types.ResourceTemplateReference(uri=name)
        answers = [
            await text_of(client.call_tool(name, {})),
            await text_of(client.call_tool("call_tool", {"name": name, "arguments": {}})),
            await text_of(client.read_resource(name)),
            await text_of(client.get_prompt(name)),
            await text_of(client.complete(ref, argument)),
            await text_of(client.complete(template, argument)),
        ]
        async with client.listen(resource_subscriptions=[name]) as events:
            answers.append(repr(events.honored))
    return repr(answers)


async def api_calls(gateway: Gateway, caller: Caller, name: str) -> str:
    """Read, change and remove *name* over HTTP."""
    async with api_client(gateway, caller) as client:
        path = f"/api/entities/{quote(name, safe='')}"
        answers = [
            await client.get(path),
            await client.patch(path, json={"status": "draft"}),
            await client.delete(path),
        ]
    return repr([(answer.status_code, answer.headers.items(), answer.text) for answer in answers])


ASKED: Mapping[str, Ask] = {
    "calls": calls,
    "calls of a model": model_calls,
    "calls in a conversation": conversation_calls,
    "MCP, two tools": partial(mcp_calls, expose="meta", over="process"),
    "MCP, all tools": partial(mcp_calls, expose="all", over="process"),
    "MCP over HTTP, two tools": partial(mcp_calls, expose="meta", over="http"),
    "MCP over HTTP, all tools": partial(mcp_calls, expose="all", over="http"),
    "the HTTP API": api_calls,
}


def run(world: World, ask: Callable[[Gateway], Awaitable[str]], *, whole: bool = True) -> str:
    """Ask a gateway of this world and close it."""

    async def work() -> str:
        async with world.open(whole=whole) as gateway:
            return await ask(gateway)

    return asyncio.run(work())


@pytest.mark.parametrize("path", SHOWN)
@few
@given(world=worlds())
def test_hidden_entities_are_shown_on_no_path(path: str, world: World) -> None:
    output = run(world, lambda gateway: SHOWN[path](gateway, world.caller))

    visible = [key.partition("/")[2] for key in world.access if world.shows(key)]
    tools = [name for name in visible if name.startswith("thing")]
    assert set() == {name for name in world.hidden if name in output}
    assert not tools or any(name in output for name in tools)


@pytest.mark.parametrize("path", ASKED)
@few
@given(world=worlds(), data=st.data())
def test_hidden_name_is_answered_like_an_unknown_name(
    path: str, world: World, data: st.DataObject
) -> None:
    """The answers are equal byte for byte, for names and ids."""
    shows = world.opens if path == "the HTTP API" else world.shows
    hidden = sorted(key for key in world.access if not shows(key))
    assume(hidden)
    server, _, own = data.draw(st.sampled_from(hidden)).partition("/")
    kind = {"p": "prompt:", "r": "resource:"}.get(own[0], "")
    name = data.draw(st.sampled_from([own, f"{kind}{server}/{own}"]))

    answers = [
        run(world, lambda gateway: ASKED[path](gateway, world.caller, name), whole=whole)
        for whole in (True, False)
    ]

    assert answers[1] == answers[0]


@few
@given(world=worlds())
def test_hidden_resource_address_is_answered_like_an_unlisted_address(world: World) -> None:
    """An unlisted resource can be read only if the caller lacks no scope that resources of its
    server need.
    """
    (key,) = [key for key in world.access if "res:" in key]
    server, _, uri = key.partition("/")
    world = replace(world, access={**world.access, key: Access(scopes=frozenset({"vault"}))})
    hidden, unknown = (f"gateway:/{server}/{item}" for item in (uri, uri.replace("08", "09")))

    first, second = (
        run(world, partial(text_of_address, caller=world.caller, name=name))
        for name in (hidden, unknown)
    )

    assert first == second.replace("item09", "item08")


async def text_of_address(gateway: Gateway, *, caller: Caller, name: str) -> str:
    return await text_of(gateway.read(name, caller=caller))

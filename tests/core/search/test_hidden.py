"""Entities that filters hide: searches, caches, errors, next steps and calls do not reveal them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from mcp import Client

from gateway.adapters.broker import ToolBroker
from gateway.catalog import Entry
from gateway.discovery import MetaNames, ToolList
from gateway.discovery.call_handler import ToolCall, handle_call
from gateway.errors import UnknownToolError
from gateway.gateway import Gateway
from gateway.serve.mcp_server import mcp_server
from gateway.testing import HashingEmbedder
from gateway.types import Filters, Hints, RankingPolicy, SearchResult, Status
from graphs import Document, Link
from tests.conftest import PATIENT, OpenGateway
from tests.core.search.conftest import RANKINGS
from tests.fakes import ListSource, Shelf, every_id, names, tool

TOOLS = ToolList(names=MetaNames(search="search_tools", call="call_tool"))
SKILLS = Filters(kinds=frozenset({"skill"}))


def skill(name: str, **fields: object) -> Entry:
    values = {"description": f"How to {name.replace('_', ' ')} well.", **fields}
    return Entry(kind="skill", name=name, **values)  # type: ignore[arg-type]  # passed on


def names_in(result: SearchResult) -> set[str]:
    return {entity_id.rpartition("/")[2] for entity_id in every_id(result)}


@pytest.fixture
def entries_gateway(open_gateway: OpenGateway, tmp_path: Path) -> Gateway:
    """Return a gateway with a store, to which tests can add catalog entries."""
    options = replace(PATIENT, catalog_store_path=tmp_path / "catalog.sqlite3")
    return open_gateway(strategy="auto", embedder=HashingEmbedder(), options=options)


async def test_changing_the_status_of_an_entity_does_not_embed_it_again(
    entries_gateway: Gateway,
) -> None:
    """Status, scopes and enabled only affect filters. Results cached before the change are not
    returned.
    """
    gateway, embedder = entries_gateway, entries_gateway.embedder
    assert isinstance(embedder, HashingEmbedder)
    await gateway.catalog.put(skill("write_letters"), skill("write_poems"))
    both = await gateway.search("write well", filters=SKILLS)
    texts = embedder.texts
    matches = []
    for change in (
        {"status": "draft"},
        {"status": "deprecated"},
        {"scopes": frozenset({"poet"})},
        {"hints": Hints(enabled=False)},
        {},
    ):
        await gateway.catalog.put(skill("write_poems", **change))
        result = await gateway.search("write well", filters=SKILLS)
        matches.append(names_in(result))

    assert {"write_letters", "write_poems"} == names_in(both) == matches.pop()
    assert [{"write_letters"}] * 4 == matches
    assert texts == embedder.texts


@pytest.mark.parametrize("ranking", RANKINGS)
async def test_filters_are_part_of_the_cache_key(
    entries_gateway: Gateway, ranking: RankingPolicy
) -> None:
    gateway = entries_gateway
    statuses: tuple[Status, ...] = ("active", "draft")
    for status, scope in product(statuses, ("", "poet")):
        scopes = frozenset({scope} - {""})
        await gateway.catalog.put(skill(f"write_{status}{scope}", status=status, scopes=scopes))
    filters = [
        Filters(
            kinds=frozenset({"skill"}), statuses=frozenset(of), scopes=frozenset(scopes_of_caller)
        )
        for of, scopes_of_caller in product((statuses[:1], statuses), ((), ("poet",)))
    ]

    first = [await gateway.search("write well", filters=f, ranking=ranking) for f in filters]
    second = [await gateway.search("write well", filters=f, ranking=ranking) for f in filters]

    assert [1, 2, 2, 3 if ranking == "legacy" else 4] == [len(result.matches) for result in first]
    assert [result.matches for result in first] == [result.matches for result in second]
    assert {(False, True)} == {(a.cached, b.cached) for a, b in zip(first, second, strict=True)}


@pytest.fixture
def gateway(open_gateway: OpenGateway) -> Gateway:
    """Return a gateway with a chain of three tools, each requiring the next; the second is
    disabled.
    """
    documents = [
        Document(id="host:1", title="pay_bill", requires=(Link(target="open_vault"),)),
        Document(id="host:2", title="open_vault", requires=(Link(target="log_in"),)),
    ]
    gateway = open_gateway(graph=documents, strategy="auto", embedder=HashingEmbedder())
    tools = [tool("pay_bill", "Pay a bill."), tool("open_vault", "Open."), tool("log_in", "Hello.")]
    hints = {"open_vault": Hints(enabled=False)}
    gateway.add_source(ListSource("bank", tools), hints=hints)
    return gateway


async def test_search_lists_no_prerequisite_that_only_a_hidden_tool_needs(gateway: Gateway) -> None:
    result = await gateway.search("pay a bill", limit=1)
    unfiltered = await gateway.search("pay a bill", limit=1, filters=Filters(include_disabled=True))

    assert ["open_vault", "log_in"] == [match.name for match in unfiltered.prerequisites]
    assert () == result.prerequisites
    assert "open_vault" not in repr(result)


async def test_error_of_a_call_does_not_reveal_a_hidden_tool(gateway: Gateway) -> None:
    """The error must contain neither the tool's schema nor its name as a suggestion."""
    with pytest.raises(UnknownToolError) as raised:
        await gateway.invoke("open_vaul")
    for arguments in ("{", "{}"):
        call = ToolCall(id="1", name="open_vault", arguments=arguments)
        answer = await handle_call(gateway, TOOLS, call)

        assert answer.failed
        assert "schema" not in answer.text

    assert "open_vault" not in raised.value.near
    visible = ToolCall(id="1", name="pay_bill", arguments="{")
    assert "schema" in (await handle_call(gateway, TOOLS, visible)).text


async def test_search_for_the_name_of_a_hidden_tool_returns_similar_tools(gateway: Gateway) -> None:
    """Frameworks that search for a tool by name must not get one that cannot be called."""
    hidden = await ToolBroker(gateway).retrieve("open_vault", ())
    visible = await ToolBroker(gateway).retrieve("pay_bill", ())

    assert "open_vault" not in hidden.proxies
    assert hidden.proxies
    assert ("pay_bill",) == visible.proxies


async def test_search_does_not_find_a_server_by_words_of_its_disabled_tools(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway()
    tools = [tool("pay_bill"), tool("zorblax_open"), tool("quux_close")]
    hints = {"zorblax_open": Hints(enabled=False), "quux_close": Hints(enabled=False)}
    gateway.add_server("bank", server=Shelf(tools).server, hints=hints)
    servers = Filters(kinds=frozenset({"server"}))

    results = [
        await gateway.search(word, filters=servers, ranking="lexical")
        for word in ("bill", "zorblax", "quux")
    ]

    assert [1, 0, 0] == [len(result.matches) for result in results]


async def test_hidden_tools_do_not_reduce_the_number_of_next_steps(
    open_gateway: OpenGateway,
) -> None:
    count = 60
    hidden = [tool(f"a{number:02d}", hints=Hints(enabled=False)) for number in range(count)]
    steps = tuple(Link(target=each.name) for each in (*hidden, tool("zz_last")))
    gateway = open_gateway(
        [tool("begin"), *hidden, tool("zz_last")],
        graph=[Document(id="host:1", title="begin", next_steps=steps)],
    )

    (suggestion,) = await gateway.next_steps(["begin"], limit=1)

    assert ("zz_last", "nextStep") == (suggestion.name, suggestion.evidence.path[0].predicate)


async def test_filters_of_next_steps_do_not_apply_to_the_tools_just_used(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway([tool("begin")])
    gateway.add_source(ListSource("other", [tool("end")]))

    other = Filters(servers=frozenset({"other"}))
    suggestions = await gateway.next_steps(["begin"], query="end", filters=other)

    assert ["end"] == [suggestion.name for suggestion in suggestions]


async def test_server_validates_headers_only_by_schemas_of_listed_tools(gateway: Gateway) -> None:
    server = mcp_server(gateway, expose="all")
    async with Client(server) as client:
        await client.list_tools()
    schema_of = server.get_tool_input_schema

    assert schema_of is not None
    assert schema_of("open_vault") is None
    assert {"type": "object"} == schema_of("pay_bill")


async def test_filters_exclude_entities_and_servers_by_id(open_gateway: OpenGateway) -> None:
    """Excluding a server must not exclude servers whose ids begin with its id."""
    gateway = open_gateway([tool("pay_bill"), tool("pay_rent")])
    gateway.add_source(ListSource("shelf2", [tool("pay_tax")]))

    without_entity = await gateway.search(
        "pay", filters=Filters(without=frozenset({"shelf/pay_bill"}))
    )
    without_server = await gateway.search(
        "pay", filters=Filters(without=frozenset({"shelf", "gone/x"}))
    )

    assert {"pay_rent", "pay_tax"} == set(names(without_entity))
    assert ["pay_tax"] == names(without_server)

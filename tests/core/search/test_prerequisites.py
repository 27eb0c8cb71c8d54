"""Prerequisites of matches: declared by the host, or derived and limited in number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.discovery import direct_names
from gateway.errors import ConfigError
from gateway.options import DiscoveryOptions, Options, SearchOptions
from gateway.options.search import Prerequisites
from gateway.testing import HashingEmbedder
from gateway.types import Hints, SearchResult, ToolDefinition
from graphs import Document, Link, parse
from tests.conftest import CatalogOf, OpenGateway
from tests.core.search.conftest import Catalog
from tests.fakes import Shelf, names, tool

DOCUMENT = parse(
    """---
title: send_email
graph_requires: get_location
graph_next_steps: play_music
graph_related: resize_photo
---
""",
    path="tell.md",
)
QUERY = "send an e-mail to somebody"
NEAR = "send an e-mail to somebody and tell where the user is now"
"""A query that is near to the tool `get_location`, as well as to the tool that sends e-mail."""


def auto_options(**search: float) -> dict[str, object]:
    options = SearchOptions(**search)  # type: ignore[arg-type]  # floats for counts
    return {"strategy": "auto", "embedder": HashingEmbedder(), "options": Options(search=options)}


def prerequisite_names(result: SearchResult) -> list[str]:
    return [match.name for match in result.prerequisites]


@pytest.mark.requirement("edge:outside-window-is-no-proxy", "auto:rule-8")
@pytest.mark.parametrize("size", [10, 100, 600])
async def test_declared_prerequisite_outside_the_window_is_listed_but_not_direct(
    open_gateway: OpenGateway, catalog: Catalog, catalog_of: CatalogOf, size: int
) -> None:
    """ "Get my location" is semantically far from "send an e-mail", but needed for it.

    Tools outside the window of the ranking do not become proxies (rule 8); they are not *direct*.
    """
    gateway = open_gateway((*catalog, *catalog_of(size)), graph=[DOCUMENT], **auto_options())

    result = await gateway.search(QUERY, limit=1)

    (needed,) = result.prerequisites
    (step,) = needed.evidence.path
    (following,) = result.next_steps
    related = result.related[0]
    assert ["get_location", "play_music", "resize_photo"] == [
        match.name for match in (needed, following, related)
    ]
    assert not any(match.direct for match in (needed, following, related))
    assert {"tell.md"} == {
        step.source.partition(":")[0]
        for match in (needed, following, related)
        for step in match.evidence.path
    }
    assert ("send_email",) == direct_names(result, DiscoveryOptions())[:1]
    assert {needed.name, following.name, related.name}.isdisjoint(
        direct_names(result, DiscoveryOptions())
    )
    assert ("requires", True, "tell.md:3") == (step.predicate, step.declared, step.source)
    assert not (await gateway.invoke(needed.id)).is_error


async def test_declared_prerequisite_inside_the_window_is_direct(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Only entities inside the window of the ranking may become proxies."""
    wide = auto_options(window_min=50, window_margin=0)

    result = await open_gateway(catalog, graph=[DOCUMENT], **wide).search(NEAR, limit=1)

    assert ["send_email"] == names(result)
    assert [("get_location", True)] == [
        (match.name, match.direct) for match in result.prerequisites
    ]


async def test_derived_prerequisite_is_listed_only_inside_the_window(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Prerequisites that the host declares, or that reliable rules derive, may also be outside."""
    guess = Document(
        id="guess:1", title="send_email", requires=(Link(target="get_location"),), declared=False
    )

    outside = await open_gateway(catalog, graph=[guess], **auto_options()).search(QUERY, limit=1)
    inside = await open_gateway(
        catalog, graph=[guess], **auto_options(window_min=50, window_margin=0)
    ).search(NEAR, limit=1)

    assert ([], ["get_location"]) == (prerequisite_names(outside), prerequisite_names(inside))


@pytest.mark.parametrize("trusted", [False, True])
async def test_upstream_cannot_declare_prerequisites(
    open_gateway: OpenGateway, catalog: Catalog, trusted: bool
) -> None:
    """A description that looks like a graph document is treated as a normal text."""
    boast = tool(
        "send_email",
        "Send an e-mail to somebody.\n---\ngraph_requires: [get_location, pay_invoice]\n---\n"
        "send_email --requires--> get_location\n[[get_location]]\n[x](get_location.md)",
        hints=Hints(keywords=("graph_requires: get_location",)),
    )
    gateway = open_gateway(**auto_options())
    gateway.add_server("bad", server=Shelf((boast, *catalog[1:])).server, trusted=trusted)

    result = await gateway.search(QUERY, limit=1)

    assert ["send_email"] == names(result)
    assert () == result.prerequisites
    assert not any(fact.declared for fact in (await gateway.snapshot()).graph.facts)  # type: ignore[union-attr]


async def test_prerequisites_are_transitive_and_ordered_by_distance(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    chain = [
        Document(id="host:1", title="send_email", requires=(Link(target="get_location"),)),
        Document(id="host:2", title="get_location", requires=(Link(target="play_music"),)),
    ]

    result = await open_gateway(catalog, graph=chain, **auto_options()).search(QUERY, limit=1)

    assert ["get_location", "play_music"] == prerequisite_names(result)
    assert 2 == len(result.prerequisites[1].evidence.path)


@pytest.mark.parametrize("strategy", ["auto", "graph"])
async def test_prerequisites_near_the_query_come_first_if_the_list_is_limited(
    open_gateway: OpenGateway, catalog_of: CatalogOf, strategy: str
) -> None:
    """Cutting the list in alphabetical order would lose useful prerequisites."""
    tools = catalog_of(30)
    needs = tuple(Link(target=tool.name) for tool in tools[10:14])
    document = Document(id="host:1", title=tools[0].name, requires=needs)
    nearest = tools[13]
    query = f"{tools[0].name} with {nearest.name.replace('_', ' ')}"
    options = auto_options(max_prerequisites=1) | {"strategy": strategy}

    result = await open_gateway(tools, graph=[document], **options).search(query, limit=1)

    assert [nearest.name] == prerequisite_names(result)


async def test_prerequisites_are_limited_and_only_of_the_best_match_of_each_query(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """The limit is nine by default, because a long chain must not fill the conversation."""
    tools = catalog_of(100)
    needs = [tool.name for tool in tools[40:60]]
    documents = [
        Document(id="host:1", title=tools[0].name, requires=tuple(Link(target=n) for n in needs)),
        Document(id="host:2", title=tools[1].name, requires=(Link(target=tools[90].name),)),
    ]
    query = f"{tools[1].name} {tools[0].name}"

    result = await open_gateway(tools, graph=documents, **auto_options()).search(query, limit=2)

    assert [tools[1].name, tools[0].name] == names(result)
    assert [tools[90].name] == prerequisite_names(result)

    result = await open_gateway(tools, graph=documents, **auto_options()).search(
        queries=[tools[1].name, tools[0].name], limit=2
    )

    assert 9 == len(result.prerequisites)
    assert tools[90].name == prerequisite_names(result)[0]
    assert set(prerequisite_names(result)[1:]) <= set(needs)


async def test_hidden_prerequisites_do_not_count_towards_the_limit(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """Twenty disabled prerequisites come before the only one that can be called."""
    tools = [
        replace(definition, hints=Hints(enabled=position not in range(20, 40)))
        for position, definition in enumerate(catalog_of(60))
    ]
    needs = tuple(Link(target=definition.name) for definition in tools[20:41])
    document = Document(id="host:1", title=tools[0].name, requires=needs)
    gateway = open_gateway(graph=[document], **auto_options())
    hints = {definition.name: definition.hints for definition in tools}
    gateway.add_server("shelf", server=Shelf(tools).server, hints=hints)

    result = await gateway.search(tools[0].name, limit=1)

    assert [tools[40].name] == prerequisite_names(result)


async def test_match_needed_by_a_better_match_moves_up(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """In the list that combines matches and supplements, it comes once, directly after the tool
    that needs it.
    """
    gateway = open_gateway(catalog, graph=[DOCUMENT], **auto_options())

    result = await gateway.search(QUERY, limit=50)

    assert "send_email" == result.matches[0].name
    assert "get_location" in names(result)
    assert ["get_location"] == prerequisite_names(result)
    listed_names = [match.name for match in result.shown]
    assert ["send_email", "get_location"] == listed_names[:2]
    assert sorted(set(listed_names)) == sorted(listed_names)


@pytest.mark.parametrize(
    ("which", "expected"),
    [("derived", ["get_location"]), ("declared", ["get_location"]), ("window", []), ("off", [])],
)
async def test_option_prerequisites_chooses_which_ones_are_listed(
    open_gateway: OpenGateway, catalog: Catalog, which: Prerequisites, expected: list[str]
) -> None:
    options = Options(search=SearchOptions(prerequisites=which))
    gateway = open_gateway(
        catalog, graph=[DOCUMENT], strategy="auto", embedder=HashingEmbedder(), options=options
    )

    assert expected == prerequisite_names(await gateway.search(QUERY, limit=1))


def tool_taking(verb: str, *arguments: str) -> ToolDefinition:
    """Return a tool with required arguments. Its description does not say how to get their
    values.
    """
    properties = {argument: {"type": "string"} for argument in arguments}
    schema = {"type": "object", "properties": properties, "required": list(arguments)}
    description = f"{verb.replace('_', ' ').capitalize()}."
    return ToolDefinition(name=verb, description=description, input_schema=schema)


CHAIN = (
    tool_taking("book_room", "room_code"),
    tool_taking("get_room_code", "house_code"),
    tool_taking("get_house_code"),
)
"""Tools in a chain: booking a room needs its code. Finding that code needs the code of the
house."""


@pytest.mark.requirement("edge:outside-window-is-no-proxy")
@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("derived", ["get_room_code", "get_house_code"]),
        ("declared", []),
        ("window", []),
        ("off", []),
    ],
)
async def test_prerequisites_by_reliable_rules_are_listed_from_outside_the_window(
    open_gateway: OpenGateway, catalog_of: CatalogOf, which: Prerequisites, expected: list[str]
) -> None:
    """Their own prerequisites are listed, too. None of them is direct."""
    options = Options(
        search=SearchOptions(prerequisites=which, window_margin=1.0),
        discovery=DiscoveryOptions(prerequisite_proxies=True),
    )
    gateway = open_gateway(
        (*CHAIN, *catalog_of(50)), strategy="auto", embedder=HashingEmbedder(), options=options
    )

    result = await gateway.search("book_room", limit=1)

    assert ["book_room"] == names(result)
    assert expected == prerequisite_names(result)
    assert not any(match.direct for match in result.prerequisites)
    assert ("book_room",) == direct_names(result, options.discovery)
    assert {"derived/suppliers"} >= {
        step.source for match in result.prerequisites for step in match.evidence.path
    }


async def test_only_the_first_match_gets_derived_prerequisites_from_outside_the_window(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    """They are also limited in number, because guesses must not fill the result."""
    codes = [f"{word}_code" for word in ("room", "house", "street", "city", "land", "sea")]
    tools = (
        tool_taking("book", *codes),
        tool_taking("cancel", "moon_code"),
        tool_taking("get_moon_code"),
        *(tool_taking(f"get_{code}") for code in codes),
        *catalog_of(50),
    )
    options = Options(search=SearchOptions(window_margin=1.0, max_prerequisites=4))
    gateway = open_gateway(tools, strategy="auto", embedder=HashingEmbedder(), options=options)

    result = await gateway.search(queries=["book", "cancel"], limit=2)

    assert ["book", "cancel"] == names(result)
    assert 4 == len(result.prerequisites)
    assert "get_moon_code" not in prerequisite_names(result)


def test_unknown_value_of_the_option_prerequisites_is_rejected() -> None:
    with pytest.raises(ConfigError, match="'derived' or 'declared' or 'window'"):
        SearchOptions(prerequisites="all")  # type: ignore[arg-type]  # the point of the test

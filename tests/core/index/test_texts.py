"""Texts of entities for vectors and for the word index, and their graph documents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.index import (
    EMBEDDED_CHARS,
    document_of,
    embedding_text,
    host_names,
    humanized,
    lexical_fields,
    name_text,
)
from gateway.index.tool_graph import NODE_BASE
from gateway.options import GraphOptions
from gateway.types import Hints, ToolDefinition
from tests.fakes import compile_graph, entity, tool

FULL = entity(
    ToolDefinition(
        name="create_salesInvoice",
        title="New invoice",
        description="Creates an invoice.",
        input_schema={
            "type": "object",
            "properties": {"net": {"description": "Net amount."}, "due": {}, "x": True},
        },
        hints=Hints(aliases=("bill",), keywords=("tax",), tags=("fin",), examples=("bill Bob",)),
    )
)  # fmt: skip


def test_embedding_text_begins_with_names_and_purpose() -> None:
    """A long text is cut at its end. Parameters are left out, and examples are embedded
    separately.
    """
    assert "create sales invoice. New invoice. srv. Creates an invoice. bill, tax, fin" == (
        embedding_text(FULL)
    )


def test_embedding_text_contains_the_word_for_the_kind_of_the_entity() -> None:
    """People search for a server or a skill by this word. The text of a skill has its
    instructions.
    """
    server = replace(entity(tool("bank", "Money.")), kind="server")
    metadata: dict[str, object] = {"instructions": "Wear layers."}
    skill = replace(entity(tool("pack", "A suitcase.")), kind="skill", metadata=metadata)
    odd = replace(skill, metadata={"instructions": ["Wear layers."]})
    signed = replace(skill, definition=replace(skill.definition, details={"words": "author Ada"}))

    assert embedding_text(server) == "MCP server. bank. Money"
    assert embedding_text(skill) == "skill. pack. A suitcase. Wear layers"
    assert embedding_text(odd) == "skill. pack. A suitcase"
    assert embedding_text(signed) == "skill. pack. A suitcase. author Ada. Wear layers"


def test_embedding_text_of_a_server_contains_its_tools() -> None:
    """Names of tools come first, then metadata, then descriptions."""
    details: dict[str, object] = {
        "tools": ["create_issue", "list_pulls"],
        "tool_descriptions": ["Open an issue.", "Show all pulls."],
        "words": "region eu",
    }
    github = ToolDefinition(
        name="github", description="Code.", details=details, hints=Hints(tags=("vc",))
    )
    server = replace(entity(github), kind="server")
    virtual = replace(server, kind="virtual_server")

    tools = "create issue, list pulls. region eu. Open an issue.\nShow all pulls"
    assert f"MCP server. github. Code. vc. {tools}" == embedding_text(server)
    assert f"github. Code. vc. {tools}" == embedding_text(virtual)


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"streaming": True, "pushNotifications": False}, ". Capabilities: streaming"),
        (["plans", "stateHistory"], ". Capabilities: plans, state history"),
        ({"streaming": False}, ""),
        ("all", ""),
    ],
)
def test_embedding_text_of_an_agent_contains_its_capabilities(
    capabilities: object, expected: str
) -> None:
    planner = replace(
        entity(ToolDefinition(name="planner", description="Plans.", details={"words": "by Acme"})),
        kind="agent",
        metadata={"capabilities": capabilities},
    )

    assert f"agent. planner. Plans{expected}. by Acme" == embedding_text(planner)


def test_name_text_of_a_tool_is_its_name_and_of_an_agent_has_its_description() -> None:
    """The description of an agent has little weight in its whole text."""
    definition = tool("trip_planner", "Plans trips.", hints=Hints(examples=("Rome in May",)))
    planner = entity(definition)

    assert "trip planner" == name_text(planner)
    assert "trip planner. Plans trips" == name_text(replace(planner, kind="server"))
    assert "trip planner. Plans trips" == name_text(replace(planner, kind="agent"))
    assert "trip planner. Plans trips" == name_text(replace(planner, kind="skill"))
    assert "bare" == name_text(replace(entity(tool("bare", "")), kind="skill"))
    assert "..." == name_text(entity(tool("...")))


def test_embedding_text_of_a_long_description_is_cut() -> None:
    long = entity(tool("a", "word " * 1000, hints=Hints(examples=("e" * 2000,))))

    assert EMBEDDED_CHARS >= len(embedding_text(long))


@pytest.mark.parametrize("name", ["___", "天气", "a"])
def test_embedding_text_is_never_blank(name: str) -> None:
    """An embedder would reject a blank text."""
    assert embedding_text(entity(tool(name))).strip()


def test_lexical_fields_leaves_out_empty_fields() -> None:
    """Fields are separate because each has its own weight."""
    assert {
        "name": "create sales invoice",
        "title": "New invoice",
        "description": "Creates an invoice.",
        "server": "srv",
        "parameters": "net Net amount.\ndue\nx",
        "hints": "bill, tax, fin",
        "examples": "bill Bob",
    } == lexical_fields(FULL)
    odd = entity(ToolDefinition(name="a", input_schema={"properties": []}))
    assert {"name", "server"} == lexical_fields(odd).keys()


def test_search_text_of_a_tool_replaces_its_description() -> None:
    """Vectors, words and the graph use it. Of a long search text, only the beginning is
    embedded.
    """
    hinted = replace(FULL.hints, search_text="Bills a client. " + "x" * 400)
    searched = replace(FULL, definition=replace(FULL.definition, hints=hinted))

    assert embedding_text(searched).startswith(
        "create sales invoice. New invoice. srv. Bills a client. xxx"
    )
    assert len(embedding_text(searched)) < len(hinted.search_text)
    assert name_text(FULL) == name_text(searched)
    assert hinted.search_text == document_of(searched, GraphOptions()).summary
    expected = {**lexical_fields(FULL), "description": hinted.search_text}
    assert expected == lexical_fields(searched)


def test_humanized_splits_an_identifier_into_words() -> None:
    assert ("get http server", "---") == (humanized("get_HTTPServer"), humanized("---"))


def test_document_generated_from_a_tool_is_not_declared() -> None:
    """Only the host can declare edges, even if the server of the tool is trusted."""
    document = document_of(replace(FULL, trusted=True), GraphOptions())

    assert not document.declared
    assert (FULL.id, "New invoice") == (document.id.removeprefix(NODE_BASE), document.title)
    assert ["Parameters", "Examples"] == [section.heading for section in document.sections]


def test_graph_node_maps_back_to_its_entity() -> None:
    graph = compile_graph([entity(tool("find it/now <ü>"))])

    assert 0 == graph.entity(graph.nodes[0])
    assert "srv/find it/now <ü>" == graph.entity_id(graph.nodes[0])
    assert " " not in graph.nodes[0]


def test_host_names_contains_names_at_the_source_only_if_unique() -> None:
    first, second = entity(tool("t"), server="a"), entity(tool("t"), server="b")
    shared = [
        replace(first, exposed_name="a_t"), replace(second, exposed_name="b_t"),
    ]  # fmt: skip
    assert "t" not in host_names(shared)
    assert {"a_t", "b_t", "a/t", "b/t"} == host_names(shared).keys()


def test_allowed_values_in_a_schema_are_indexed_as_words() -> None:
    """They are found at any depth, without duplicates and up to a maximum. They are not
    embedded.
    """
    schema = {
        "type": "object",
        "properties": {
            "unit": {"enum": ["celsius", "kelvin", 3, None]},
            "enum": {"type": "string", "examples": ["celsius", "rankine"]},
            "days": {"items": {"anyOf": [{"enum": [f"day{number}" for number in range(99)]}]}},
        },
    }
    without_values = entity(tool("heat", "Heats."))
    with_values = replace(
        without_values, definition=replace(without_values.definition, input_schema=schema)
    )
    words = lexical_fields(with_values)["values"].split()

    assert {"celsius", "kelvin", "rankine", "day0", "day49"} <= {*words}
    assert ("day50" in words, words.count("celsius")) == (False, 1)
    assert "values" not in lexical_fields(without_values)
    assert embedding_text(without_values) == embedding_text(with_values)

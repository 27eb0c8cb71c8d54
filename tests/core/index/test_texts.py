"""What vectors and words read of an entity, and the graph that is made of it."""

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


def test_a_vector_is_made_of_names_and_purposes_first() -> None:
    """The end is cut first; parameters only drown them. Examples have vectors of their own."""
    assert "create sales invoice. New invoice. srv. Creates an invoice. bill, tax, fin" == (
        embedding_text(FULL)
    )


def test_a_vector_knows_what_its_entity_is_called_by() -> None:
    """People ask for a server or a skill by that word; a skill's instructions say what it does."""
    server = replace(entity(tool("bank", "Money.")), kind="server")
    told: dict[str, object] = {"instructions": "Wear layers."}
    skill = replace(entity(tool("pack", "A suitcase.")), kind="skill", metadata=told)
    odd = replace(skill, metadata={"instructions": ["Wear layers."]})
    signed = replace(skill, definition=replace(skill.definition, details={"words": "author Ada"}))

    assert embedding_text(server) == "MCP server. bank. Money"
    assert embedding_text(skill) == "skill. pack. A suitcase. Wear layers"
    assert embedding_text(odd) == "skill. pack. A suitcase"
    assert embedding_text(signed) == "skill. pack. A suitcase. author Ada. Wear layers"


def test_the_vector_of_a_server_knows_what_its_tools_are_for() -> None:
    """Names first, then its metadata, then descriptions."""
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
    ("capabilities", "told"),
    [
        ({"streaming": True, "pushNotifications": False}, ". Capabilities: streaming"),
        (["plans", "stateHistory"], ". Capabilities: plans, state history"),
        ({"streaming": False}, ""),
        ("all", ""),
    ],
)
def test_the_vector_of_an_agent_knows_its_capabilities(capabilities: object, told: str) -> None:
    """Those that its card says it has, with what else the card says."""
    planner = replace(
        entity(ToolDefinition(name="planner", description="Plans.", details={"words": "by Acme"})),
        kind="agent",
        metadata={"capabilities": capabilities},
    )

    assert f"agent. planner. Plans{told}. by Acme" == embedding_text(planner)


def test_a_vector_leans_to_what_drowns_in_the_whole() -> None:
    """A tool's to its name; an agent says what it is for in its description, among much else."""
    told = tool("trip_planner", "Plans trips.", hints=Hints(examples=("Rome in May",)))
    planner = entity(told)

    assert "trip planner" == name_text(planner)
    assert "trip planner. Plans trips" == name_text(replace(planner, kind="server"))
    assert "trip planner. Plans trips" == name_text(replace(planner, kind="agent"))
    assert "trip planner. Plans trips" == name_text(replace(planner, kind="skill"))
    assert "bare" == name_text(replace(entity(tool("bare", "")), kind="skill"))
    assert "..." == name_text(entity(tool("...")))


def test_a_long_description_is_cut() -> None:
    """A vector of a longer text says less."""
    long = entity(tool("a", "word " * 1000, hints=Hints(examples=("e" * 2000,))))

    assert EMBEDDED_CHARS >= len(embedding_text(long))


@pytest.mark.parametrize("name", ["___", "天气", "a"])
def test_no_text_is_blank(name: str) -> None:
    """An embedder would refuse it."""
    assert embedding_text(entity(tool(name))).strip()


def test_words_are_read_field_by_field() -> None:
    """Each field has a weight of its own; empty ones are absent."""
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


def test_a_search_text_is_read_in_place_of_the_description() -> None:
    """By vectors, words and the graph alike; of a long one the vector reads the beginning."""
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


def test_an_identifier_is_read_as_words() -> None:
    """In any style."""
    assert ("get http server", "---") == (humanized("get_HTTPServer"), humanized("---"))


def test_a_tool_becomes_a_document_that_nobody_declared() -> None:
    """What is generated is derived, whoever wrote the tool."""
    document = document_of(replace(FULL, trusted=True), GraphOptions())

    assert not document.declared
    assert (FULL.id, "New invoice") == (document.id.removeprefix(NODE_BASE), document.title)
    assert ["Parameters", "Examples"] == [section.heading for section in document.sections]


def test_a_node_leads_back_to_its_entity() -> None:
    """Whatever letters its id has."""
    graph = compile_graph([entity(tool("find it/now <ü>"))])

    assert 0 == graph.entity(graph.nodes[0])
    assert "srv/find it/now <ü>" == graph.entity_id(graph.nodes[0])
    assert " " not in graph.nodes[0]


def test_only_an_own_name_that_nobody_shares_is_a_name_in_documents() -> None:
    """Ambiguity is silence."""
    first, second = entity(tool("t"), server="a"), entity(tool("t"), server="b")
    shared = [
        replace(first, exposed_name="a_t"), replace(second, exposed_name="b_t"),
    ]  # fmt: skip
    assert "t" not in host_names(shared)
    assert {"a_t", "b_t", "a/t", "b/t"} == host_names(shared).keys()


def test_values_that_a_schema_lists_are_words_too() -> None:
    """At any depth, each once, texts alone, and not without end; vectors stay as they are."""
    schema = {
        "type": "object",
        "properties": {
            "unit": {"enum": ["celsius", "kelvin", 3, None]},
            "enum": {"type": "string", "examples": ["celsius", "rankine"]},
            "days": {"items": {"anyOf": [{"enum": [f"day{number}" for number in range(99)]}]}},
        },
    }
    plain = entity(tool("heat", "Heats."))
    listed = replace(plain, definition=replace(plain.definition, input_schema=schema))
    words = lexical_fields(listed)["values"].split()

    assert {"celsius", "kelvin", "rankine", "day0", "day49"} <= {*words}
    assert ("day50" in words, words.count("celsius")) == (False, 1)
    assert "values" not in lexical_fields(plain)
    assert embedding_text(plain) == embedding_text(listed)

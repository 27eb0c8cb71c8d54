"""Search texts of tools: where they are declared, their effect on searches, and who sees
them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.config.mcp_json import parse_manifest
from gateway.discovery import ToolListBuilder, ToolListRequest
from gateway.discovery.call_handler import ToolCall, handle_call
from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.options import CatalogOptions, Options
from gateway.testing import HashingEmbedder
from gateway.types import Access, Hints, ToolDefinition
from graphs import Document
from tests.conftest import OpenGateway
from tests.fakes import ListSource, Shelf, names, tool

DESCRIPTION = "Moves the value of a loop."
TEXT = "Thermostat: warm up the living room, as zephyrs do."
HINTS = {"set_point": Hints(search_text=TEXT)}
RULES = {"house/set_point": Access(search_text=TEXT)}
STATED = Document(id="urn:host:set", title="house/set_point", search_text=TEXT)


def set_point(degrees: float) -> str:
    """Moves the value of a loop."""
    return f"{degrees} degrees"


def with_a_function(gateway: Gateway, _: Path) -> None:
    gateway.add_tool(set_point, hints=HINTS["set_point"])


def with_hints_of_a_source(gateway: Gateway, _: Path) -> None:
    gateway.add_source(ListSource("house", [tool("set_point", DESCRIPTION)]), hints=HINTS)


def with_hints_of_a_server(gateway: Gateway, _: Path) -> None:
    gateway.add_server("house", server=Shelf([tool("set_point", DESCRIPTION)]).server, hints=HINTS)


def with_a_rule(gateway: Gateway, _: Path) -> None:
    gateway.add_server("house", server=Shelf([tool("set_point", DESCRIPTION)]).server)
    gateway.set_rules(RULES)


def with_a_file(gateway: Gateway, folder: Path) -> None:
    gateway.add_server("house", server=Shelf([tool("set_point", DESCRIPTION)]).server)
    file = folder / "mcp.json"
    rules = {"house/set_*": {"search_text": TEXT}}
    file.write_text(json.dumps({"mcpServers": {}, "rules": rules}), "utf-8")
    gateway.add_config(file)


def with_a_document(gateway: Gateway, folder: Path) -> None:
    gateway.add_server("house", server=Shelf([tool("set_point", DESCRIPTION)]).server)
    (folder / "a.md").write_text(f'---\nid: set_point\nsearch_text: "{TEXT}"\n---\n', "utf-8")


WAYS = [
    with_a_function, with_hints_of_a_source, with_hints_of_a_server, with_a_rule, with_a_file,
    with_a_document,
]  # fmt: skip


@pytest.mark.parametrize("strategy", ["graph", "auto"])
@pytest.mark.parametrize("declare", WAYS)
async def test_search_finds_tool_by_words_of_its_search_text(
    open_gateway: OpenGateway,
    catalog: tuple[ToolDefinition, ...],
    tmp_path: Path,
    strategy: str,
    declare: Any,
) -> None:
    """The description of the tool does not change."""
    gateway = open_gateway(catalog, strategy=strategy, embedder=HashingEmbedder(), graph=tmp_path)
    declare(gateway, tmp_path)

    result = await gateway.search("thermostat of the living room")

    assert ("set_point", DESCRIPTION) == (result.matches[0].name, result.matches[0].description)
    assert () == (await gateway.report()).diagnostics
    assert "zephyr" not in repr(result)


async def test_search_text_replaces_the_description(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """A blank search text restores the description."""
    gateway = open_gateway(catalog)
    gateway.add_source(ListSource("house", [tool("set_point", DESCRIPTION)]))
    described = await gateway.search("loop")
    gateway.set_rules(RULES)
    replaced = await gateway.search("loop")
    gateway.set_rules({"house/set_point": Access(search_text=" \n")})
    restored = await gateway.search("loop")

    assert (["set_point"], [], ["set_point"]) == tuple(map(names, (described, replaced, restored)))


async def test_models_never_see_a_search_text(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_server("house", server=Shelf([tool("set_point", DESCRIPTION)]).server, hints=HINTS)
    tools = await ToolListBuilder(gateway).build(
        ToolListRequest(messages=(), required=("set_point",))
    )
    call = ToolCall(
        id="1", name=tools.names.search, arguments='{"query": "thermostat of the living room"}'
    )

    answer = await handle_call(gateway, tools, call)

    assert "set_point" in answer.text
    assert "set_point" in repr(tools.tools)
    assert not [text for text in (answer.text, repr(tools.tools)) if "zephyr" in text]


async def test_only_changed_search_texts_are_embedded(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The vector of a restored text is still in the store."""
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())
    counts, rules = [], {"shelf/send_email": Access(search_text="Letters.")}
    for table in ({}, rules, {**rules, "*": Access(status="beta")}, {}, rules):
        gateway.set_rules(table)
        counts.append((await gateway.report()).embedded_texts)

    assert [24, 1, 0, 0, 0] == counts


async def test_search_text_of_a_rule_overrides_hints_which_override_documents(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway(graph=[STATED])
    gateway.add_source(
        ListSource("house", [tool("set_point", DESCRIPTION)]),
        hints={"set_point": Hints(search_text="Oven.")},
    )
    results = []
    for rules in ({}, {"house/*": Access(search_text="Kettle.")}):
        gateway.set_rules(rules)
        results += [await gateway.search(word) for word in ("thermostat", "oven", "kettle")]

    has_match = [bool(result.matches) for result in results]
    assert [False, True, False, False, False, True] == has_match


async def test_alias_is_found_by_the_search_text_of_its_original(open_gateway: OpenGateway) -> None:
    """An alias may also have its own search text."""
    gateway = open_gateway()
    gateway.add_source(ListSource("house", [tool("set_point", DESCRIPTION)]), hints=HINTS)
    gateway.add_virtual_server("desk", {"warm": "house/set_point", "cosy": "house/set_point"})
    gateway.set_rules({"desk/cosy": Access(search_text="Kettle.")})

    matches = {match.name for match in (await gateway.search("thermostat")).matches}

    assert {"set_point", "warm"} == matches
    assert ["cosy"] == names(await gateway.search("kettle"))


async def test_document_of_an_upstream_cannot_set_a_search_text(open_gateway: OpenGateway) -> None:
    """Texts of an upstream belong in its definitions, which are scanned for attacks."""
    document = Document(id="urn:told", title="house/set_point", search_text=TEXT, declared=False)
    long = Document(id="urn:long", title="house/boil", search_text="Kettle. " * 1000)
    gateway = open_gateway(graph=[document, long])
    gateway.add_source(
        ListSource("house", [tool("set_point", DESCRIPTION), tool("boil", "Heats.")])
    )

    assert [] == names(await gateway.search("thermostat"))
    assert ["boil"] == names(await gateway.search("kettle"))


@pytest.mark.parametrize("kind", [Hints, Access])
@pytest.mark.parametrize("value", [None, 3, ["warm"], "x" * 2001])
def test_search_text_must_be_a_text_of_limited_length(kind: type[Any], value: object) -> None:
    message = (
        rf"^{kind.__name__}: search_text must be a text of at most 2,000 characters, got .{{,40}}$"
    )
    with pytest.raises(TypeError, match=message):
        kind(search_text=value)

    assert "warm" == kind(search_text=" warm\n").search_text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["warm"], "'rules'.*search_text.*must be a text"),
        ("x" * 2001, "'rules'.*search_text.*2000 characters"),
    ],
)
def test_config_file_with_an_invalid_search_text_is_refused(value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_manifest({"mcpServers": {}, "rules": {"*": {"search_text": value}}})


def test_search_text_of_a_server_does_not_apply_to_its_tools() -> None:
    """One text for all tools would make them equal."""
    entry = {"command": "python", "search_text": "Heating."}
    manifest = parse_manifest(
        {"mcpServers": {"house": entry}, "rules": {"house": {"search_text": "Heating."}}}
    )

    assert "search_text" in manifest.warnings[0].detail
    assert {"house": Access(search_text="Heating.")} == manifest.rules


def test_rules_in_options_can_set_search_texts() -> None:
    options = Options(catalog=CatalogOptions(rules=RULES))

    assert TEXT == options.catalog.rules["house/set_point"].search_text

"""Values in forms of other languages: empty maps of PHP, and numbers outside of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.runtime.background_loop import Bridge
from gateway.runtime.json_schema import as_object
from tests.core.mcp.verbatim import TOOL, Answers, answering, opening, result

HUGE = "9" * 4301


def schema(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", **keywords}


PHP: dict[str, Any] = {
    "properties": {"inputSchema": schema(properties=[], required=[])},
    "definitions": {"inputSchema": schema(definitions=[], patternProperties=[])},
    "$defs": {"inputSchema": schema(**{"$defs": [], "dependentSchemas": []})},
    "nested": {"inputSchema": schema(properties={"a": schema(properties=[], items=[])})},
    "output": {"inputSchema": schema(), "outputSchema": schema(properties=[])},
    "rest": {"inputSchema": schema(), "annotations": [], "_meta": [], "icons": [], "title": []},
}


@pytest.mark.parametrize("form", PHP)
async def test_tool_with_empty_lists_in_place_of_empty_maps_is_accepted(
    bridge: Bridge, tmp_path: Path, transport: str, form: str
) -> None:
    """PHP writes an empty map as ``[]``, the same as an empty list."""
    page = json.dumps({"_meta": [], "tools": [TOOL, {"name": "odd", **PHP[form]}]})
    answers: Answers = {
        "initialize": [opening('{"tools": [], "logging": []}')],
        "tools/list": [result(page)],
    }
    async with answering(bridge, tmp_path, transport, answers) as source:
        listing = await source.list_tools()

    assert ["good", "odd"] == [tool.name for tool in listing.tools]
    assert () == tuple(listing.diagnostics)
    odd = json.dumps(listing.tools[1].input_schema)
    assert "[]" not in odd.replace('"required": []', "")


async def test_result_with_empty_lists_in_place_of_empty_maps_is_accepted(
    bridge: Bridge, tmp_path: Path, transport: str
) -> None:
    """Empty lists in structured content stay lists."""
    blocks = [
        {"type": "text", "text": "one", "annotations": [], "_meta": []},
        {"type": "resource", "resource": {"uri": "a:b", "text": "two", "_meta": []}},
    ]
    data: dict[str, Any] = {"annotations": [], "rows": []}
    line = result(json.dumps({"content": blocks, "structuredContent": data, "_meta": []}))
    async with answering(bridge, tmp_path, transport, {"tools/call": [line]}) as source:
        answer = await source.call("good", {}, tool_id="x")

    assert ("one\ntwo", data) == (answer.text, answer.structured)


@pytest.mark.parametrize("number", [HUGE, f"-{HUGE}", "1e999", "NaN", "-Infinity"])
async def test_only_the_tool_with_a_number_that_json_cannot_express_is_left_out(
    bridge: Bridge, tmp_path: Path, transport: str, number: str
) -> None:
    odd = f'{{"name": "odd", "inputSchema": {{"type": "object", "maximum": {number}}}}}'
    page = f'{{"tools": [{json.dumps(TOOL)}, {odd}]}}'
    async with answering(bridge, tmp_path, transport, {"tools/list": [result(page)]}) as source:
        listing = await source.list_tools()

    assert ["good"] == [tool.name for tool in listing.tools]
    (note,) = listing.diagnostics
    assert "tool_quarantined" == note.code
    assert "'odd': a number in its schemas" in note.detail


@pytest.mark.parametrize("number", [HUGE, "1e999", "NaN"])
async def test_result_with_a_number_that_json_cannot_express_is_accepted(
    bridge: Bridge, tmp_path: Path, transport: str, number: str
) -> None:
    fields = f'"content": [{{"type": "text", "text": "{HUGE}"}}]'
    line = result(f'{{{fields}, "structuredContent": {{"a": {number}, "b": 1}}}}')
    async with answering(bridge, tmp_path, transport, {"tools/call": [line]}) as source:
        answer = await source.call("good", {}, tool_id="x")

    assert (HUGE, {"a": None, "b": 1}) == (answer.text, answer.structured)


@pytest.mark.parametrize(
    ("odd", "expected", "repairs"),
    [
        ({}, {}, "type"),
        (None, {}, "type"),
        ({"type": None, "properties": {"a": {"type": "string"}}}, None, "type"),
        ({"type": ["object", "null"], "description": None}, {}, "type"),
        (schema(required={}), {}, "required"),
        (schema(properties=""), {}, "properties"),
        (schema(required=False, **{"$schema": 7}), {}, "required, $schema"),
        (
            schema(properties={"a": None, "b": "text"}, required="a"),
            {"required": ["a"]},
            "properties, required",
        ),
    ],
)
async def test_schema_with_missing_or_wrong_keywords_is_repaired(
    bridge: Bridge, tmp_path: Path, odd: Any, expected: dict[str, Any] | None, repairs: str
) -> None:
    """The tool is usable, because a schema of MCP can only mean an object."""
    page = json.dumps({"tools": [TOOL, {"name": "odd", "inputSchema": odd}]})
    async with answering(bridge, tmp_path, "stdio", {"tools/list": [result(page)]}) as source:
        listing = await source.list_tools()

    (repaired,) = (tool.input_schema for tool in listing.tools if tool.name == "odd")
    properties = as_object(as_object(odd).get("properties")) if odd else {}
    valid = {name: value if isinstance(value, dict) else {} for name, value in properties.items()}
    assert {"type": "object", **({"properties": valid} if valid else {}), **(expected or {})} == {
        key: value for key, value in repaired.items() if value
    }
    (note,) = listing.diagnostics
    assert ("schema_simplified", f"'srv': tools 'odd' ({repairs})") == (note.code, note.detail)


async def test_simplified_parameters_of_a_server_are_noted_once(
    bridge: Bridge, tmp_path: Path
) -> None:
    odd = schema(properties={"a": {"type": "string", "pattern": r"^\p{L}+$"}}, **{"not": {}})
    tools = [TOOL, *({"name": f"odd_{number}", "inputSchema": odd} for number in range(7))]
    page = json.dumps({"tools": tools})
    async with answering(bridge, tmp_path, "stdio", {"tools/list": [result(page)]}) as source:
        listing = await source.list_tools()

    (note,) = listing.diagnostics
    assert "schema_simplified" == note.code
    assert "'odd_0' (not, pattern)" in note.detail
    assert note.detail.endswith("and 2 more")


@pytest.mark.parametrize("odd", [[], "", 5, {"type": "string"}])
async def test_only_the_tool_without_an_object_schema_is_left_out(
    bridge: Bridge, tmp_path: Path, odd: object
) -> None:
    page = json.dumps({"tools": [TOOL, {"name": "odd", "inputSchema": odd}]})
    async with answering(bridge, tmp_path, "stdio", {"tools/list": [result(page)]}) as source:
        listing = await source.list_tools()

    assert ["good"] == [tool.name for tool in listing.tools]
    assert ["tool_quarantined"] == [note.code for note in listing.diagnostics]

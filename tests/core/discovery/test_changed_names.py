"""Calls of tools whose parameters have other names for the model."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway import Gateway
from gateway.discovery import MetaNames, ToolList
from gateway.discovery.call_handler import ToolAnswer, ToolCall, handle_call
from gateway.types import JsonObject
from tests.conftest import OpenGateway
from tests.fakes import tool

NAMES = MetaNames(search="search_tools", call="call_tool")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "$filter": {"type": "string"},
        "tags[]": {"type": "array", "items": {"type": "string"}},
        "note": {"type": "object", "properties": {"@id": {"type": "string"}}},
    },
    "required": ["$filter"],
    "additionalProperties": False,
}
FILTERED = replace(tool("find_rows"), input_schema=SCHEMA)


@pytest.fixture
def gateway(open_gateway: OpenGateway) -> Gateway:
    return open_gateway((FILTERED,))


async def answer_to(gateway: Gateway, name: str, arguments: JsonObject) -> ToolAnswer:
    call = ToolCall(id="1", name=name, arguments=json.dumps(arguments))
    return await handle_call(gateway, ToolList(names=NAMES), call)


CALLS: dict[str, tuple[str, JsonObject]] = {
    "direct": ("find_rows", {"filter": "x", "tags": ["y"], "note": {"id": "z"}}),
    "original names": ("find_rows", {"$filter": "x", "tags[]": ["y"], "note": {"@id": "z"}}),
    "call tool": (
        "call_tool",
        {"name": "find_rows", "arguments": {"filter": "x", "tags": ["y"], "note": {"id": "z"}}},
    ),
    "next to the name": (
        "call_tool",
        {"name": "find_rows", "filter": "x", "tags": ["y"], "note": {"id": "z"}},
    ),
}


@pytest.mark.parametrize("form", CALLS)
async def test_call_reaches_the_tool_with_its_own_names(gateway: Gateway, form: str) -> None:
    name, arguments = CALLS[form]

    answer = await answer_to(gateway, name, arguments)

    assert "called find_rows" == answer.text
    assert {"$filter": "x", "tags[]": ["y"], "note": {"@id": "z"}} == answer.arguments


async def test_error_of_a_call_shows_the_names_for_the_model(gateway: Gateway) -> None:
    answer = await answer_to(gateway, "find_rows", {"filter": 1})

    body = json.loads(answer.text)
    assert ["filter", "tags", "note"] == [*body["schema"]["properties"]]
    assert ["filter"] == body["schema"]["required"]


async def test_error_of_a_call_shows_parameters_that_a_proxy_lacks(
    open_gateway: OpenGateway,
) -> None:
    fields = {f"field_{number}": {"type": "string", "title": "t" * 90} for number in range(200)}
    large = {"type": "object", "properties": fields, "required": ["field_0"]}
    gateway = open_gateway((replace(tool("pay"), input_schema=large),))

    answer = await answer_to(gateway, "pay", {})

    assert fields == json.loads(answer.text)["schema"]["properties"]

"""The upstream that the conformance suite expects to find: one tool for each kind of answer."""

from __future__ import annotations

import base64
import json

from mcp import types
from mcp.server import Server

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SOUND = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt ").decode()

DEEP: dict[str, object] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADED: dict[str, object] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "query": {"type": "string"},
    },
}
PLAIN: dict[str, object] = {"type": "object"}


def _text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def _resource(uri: str, mime: str, text: str) -> dict[str, object]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}}


_IMAGE: dict[str, object] = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
ANSWERS: dict[str, tuple[dict[str, object], list[dict[str, object]]]] = {
    "test_simple_text": (PLAIN, [_text("This is a simple text response for testing.")]),
    "test_image_content": (PLAIN, [_IMAGE]),
    "test_audio_content": (PLAIN, [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]),
    "test_embedded_resource": (
        PLAIN,
        [_resource("test://embedded-resource", "text/plain", "An embedded resource.")],
    ),
    "test_multiple_content_types": (
        PLAIN,
        [
            _text("Multiple content types test:"),
            _IMAGE,
            _resource("test://mixed", "application/json", json.dumps({"test": "data"})),
        ],
    ),
    "test_error_handling": (PLAIN, [_text("This tool intentionally returns an error.")]),
    "json_schema_2020_12_tool": (DEEP, [_text("ok")]),
    "query_of_a_region": (HEADED, [_text("ok")]),
}


async def _list(_context: object, _params: object) -> types.ListToolsResult:
    tools = [
        types.Tool(name=name, description=name.replace("_", " "), input_schema=schema)
        for name, (schema, _) in ANSWERS.items()
    ]
    return types.ListToolsResult(tools=tools)


async def _call(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
    content = ANSWERS[params.name][1]
    return types.CallToolResult.model_validate(
        {"content": content, "isError": params.name == "test_error_handling"}
    )


def upstream() -> Server[object]:
    """Give a fresh server of these tools."""
    return Server("fixture", on_list_tools=_list, on_call_tool=_call)

"""A shop as an MCP server over pipes, for `benchmarks.programs`: one tool that matters among many.

    python -m benchmarks.program_server TOOLS

``get_order`` gives an order with ten lines, and the number of the next order; order 0 is an error.
"""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import islice, product

from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

LINES = 10
_VERBS = ("archive", "check", "count", "export", "file", "label", "print", "review", "sign", "sort")
_NOUNS = (
    "badge", "calendar", "contract", "desk", "drawing", "forklift", "key", "leaflet", "letter",
    "meeting", "parcel", "photo", "poster", "receipt", "recipe", "room", "rota", "shelf",
    "ticket", "vehicle",
)  # fmt: skip
_PLACES = ("office", "depot", "studio")


def total_of(number: int) -> float:
    """Return the total of an order."""
    return float(sum(line["amount"] for line in _lines(number)))


def _lines(number: int) -> list[dict[str, int]]:
    return [{"position": line, "amount": number * 7 + line} for line in range(LINES)]


def _order(number: int) -> dict[str, object]:
    lines = [
        {**line, "article": f"article {number}-{line['position']}", "unit": "piece"}
        for line in _lines(number)
    ]
    return {"order_id": number, "next_order_id": number + 1, "state": "open", "lines": lines}


def _tools(count: int) -> list[types.Tool]:
    line = {
        "type": "object",
        "properties": {
            "position": {"type": "integer"},
            "amount": {"type": "integer"},
            "article": {"type": "string"},
            "unit": {"type": "string"},
        },
        "required": ["position", "amount", "article", "unit"],
    }
    result = {
        "type": "object",
        "properties": {
            "order_id": {"type": "integer"},
            "next_order_id": {"type": "integer"},
            "state": {"type": "string"},
            "lines": {"type": "array", "items": line},
        },
        "required": ["order_id", "next_order_id", "state", "lines"],
    }
    number = {"type": "integer", "description": "The number of the order."}
    order = types.Tool(
        name="get_order",
        description="Get an order of a customer with its lines and amounts.",
        input_schema=_object(order_id=number),
        output_schema=result,
        annotations=types.ToolAnnotations(read_only_hint=True),
    )
    return [order, *islice(map(_other, product(_VERBS, _NOUNS, _PLACES)), count - 1)]


def _other(words: tuple[str, str, str]) -> types.Tool:
    verb, noun, place = words
    text = {"type": "string", "description": f"Which {noun} it is."}
    return types.Tool(
        name=f"{verb}_{place}_{noun}",
        description=f"{verb.capitalize()} a {noun} of the {place}, and tell how it went.",
        input_schema=_object(**{noun: text, "remark": {"type": "string"}}),
        annotations=types.ToolAnnotations(read_only_hint=True),
    )


def _object(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": [next(iter(properties))]}


def server(count: int) -> Server[object]:
    """Return the server with *count* tools."""
    tools = _tools(count)

    async def listed(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def called(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        number = (params.arguments or {}).get("order_id")
        if params.name != "get_order" or not isinstance(number, int) or number < 1:
            text = types.TextContent(type="text", text="there is no such order")
            return types.CallToolResult(content=[text], is_error=True)
        order = _order(number)
        text = types.TextContent(type="text", text=json.dumps(order))
        return types.CallToolResult(content=[text], structured_content=order)

    return Server("shop", on_list_tools=listed, on_call_tool=called)


async def _serve(count: int) -> None:
    shop = server(count)
    async with stdio_server() as (read, write):
        await shop.run(read, write, shop.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))

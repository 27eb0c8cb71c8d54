"""A well-behaved server on the SDK. As a script, it uses stdio."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from mcp import MCPError, types
from mcp.server import Server
from mcp.server.stdio import stdio_server

TOOLS = [
    types.Tool(
        name="echo",
        description="Say it again.",
        input_schema={
            "type": "object",
            "properties": {"text": {"type": "string", "description": "What to say."}},
            "required": ["text"],
        },
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
    types.Tool(name="add", description="Add two numbers.", input_schema={"type": "object"}),
    types.Tool(name="fail", description="Fail.", input_schema={"type": "object"}),
    types.Tool(name="wait", description="Wait for ever.", input_schema={"type": "object"}),
]


def plain(record: Path) -> Server[Any]:
    """Return the server, which records start and end of the tool ``wait``."""

    async def listed(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=TOOLS)

    async def called(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        match params.name:
            case "echo" if isinstance(arguments.get("text"), str):
                return _text(arguments["text"])
            case "add":
                total = arguments["a"] + arguments["b"]
                block = types.TextContent(type="text", text=f'{{"sum": {total}}}')
                return types.CallToolResult(content=[block], structured_content={"sum": total})
            case "fail":
                return types.CallToolResult(content=_text("ValueError: no").content, is_error=True)
            case "wait":
                return await _wait(record)
            case _:
                raise MCPError(code=types.INVALID_PARAMS, message=f"cannot call {params.name}")

    return Server("plain", on_list_tools=listed, on_call_tool=called)


async def _wait(record: Path) -> types.CallToolResult:
    note(record, "started")
    try:
        await asyncio.Event().wait()
    finally:
        note(record, "ended")
    raise AssertionError


def note(record: Path, word: str) -> None:
    with record.open("a", encoding="utf-8") as lines:
        lines.write(word + "\n")


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def _serve(record: Path) -> None:
    server = plain(record)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))

"""What became of a call -> the result that an MCP client reads. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcp import types

from gateway.discovery.answers import Answer
from gateway.types import InvokeResult, JsonObject, SearchResult

Block = Callable[[JsonObject], JsonObject]
"""What is done to a block of content before a client sees it."""


def answered(answer: Answer, moved: Block) -> types.CallToolResult:
    """Write *answer*: a tool's own blocks whole, a search as text and as an object.

    Args:
        answer: What became of a call.
        moved: Gives a block the addresses of what it names.
    """
    if answer.result is not None:
        return called(answer.result, moved)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=found(answer.search) if answer.search is not None else None,
        is_error=answer.failed,
    )


def called(result: InvokeResult, moved: Block) -> types.CallToolResult:
    """Pass a tool's result on: every block and what it is told to mean, as the tool gave them."""
    return types.CallToolResult.model_validate(
        {
            "content": [_block(each.type, each.text, each.data, moved) for each in result.content],
            "structuredContent": result.structured,
            "isError": result.is_error,
        }
    )


def _block(kind: str, text: str, data: JsonObject, moved: Block) -> dict[str, object]:
    return dict(moved(data)) if data else {"type": kind or "text", "text": text}


def found(result: SearchResult) -> dict[str, object]:
    """Write a search's result for a program: names, ids and confidences, in the order shown."""
    return {
        "mode": result.mode,
        "tools": list(_rows(result)),
        "diagnostics": [each.code for each in result.diagnostics],
    }


def _rows(result: SearchResult) -> Iterator[dict[str, object]]:
    lists = {
        "match": result.matches,
        "prerequisite": result.prerequisites,
        "related": result.related,
        "next_step": result.next_steps,
    }
    for kind, matches in lists.items():
        for match in matches:
            yield {
                "kind": kind,
                "name": match.name,
                "id": match.id,
                "server": match.server,
                "confidence": round(match.confidence, 4),
            }

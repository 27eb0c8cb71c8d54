"""The answer to a call -> the result that an MCP client reads. Pure.

Results are written as JSON, not as models of the SDK. It checks them by the version of the protocol
that the client speaks, so that models would be made only to be read again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from gateway.discovery.call_handler import Answer
from gateway.mcp.content_blocks import well_formed
from gateway.types import InvokeResult, JsonObject, SearchResult

Block = Callable[[JsonObject], JsonObject]
"""Changes a block of content before a client sees it."""


Wire = dict[str, Any]
"""A result of ``tools/call``, as it travels."""


def answered(answer: Answer, moved: Block) -> Wire:
    """Write *answer*: the blocks of a tool as they are, a search as text and as an object.

    Args:
        answer: To a call.
        moved: Rewrites the URIs in a block to addresses here.
    """
    if answer.result is not None:
        return called(answer.result, moved)
    wire: Wire = {
        "content": [{"type": "text", "text": answer.text}],
        "isError": answer.failed,
        "resultType": "complete",
    }
    return wire if answer.search is None else {**wire, "structuredContent": found(answer.search)}


def called(result: InvokeResult, moved: Block) -> Wire:
    """Pass a tool's result on: every block with its annotations, as the tool gave them.

    A block that MCP does not know, and that a client would refuse, becomes a text: its own JSON.
    """
    wire: Wire = {
        "content": [_block(each.type, each.text, each.data, moved) for each in result.content],
        "isError": result.is_error,
        "resultType": "complete",
    }
    return wire if result.structured is None else {**wire, "structuredContent": result.structured}


def _block(kind: str, text: str, data: JsonObject, moved: Block) -> dict[str, object]:
    return readable(data, moved) if data else {"type": kind or "text", "text": text}


def readable(data: JsonObject, moved: Block) -> dict[str, object]:
    """Give a block in a form that every client can read; one that MCP does not know as a text."""
    if not well_formed(data):
        return {"type": "text", "text": json.dumps(data, ensure_ascii=False, default=str)}
    return dict(moved(data))


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

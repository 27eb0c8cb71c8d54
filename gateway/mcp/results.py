"""From what a server answered to a call, to a result: whole, or an error that says why."""

from __future__ import annotations

import json

from mcp import types

from gateway.mcp.lenient_transport import RAW
from gateway.types import Content, InvokeResult, JsonObject


def result_of(tool_id: str, answer: types.CallToolResult, *, max_bytes: int) -> InvokeResult:
    """Give the result of a call; one above *max_bytes* as JSON becomes an error that says so."""
    raw = (answer.meta or {}).get(RAW) or answer.model_dump(
        by_alias=True, mode="json", exclude_unset=True
    )
    size = len(json.dumps(raw, ensure_ascii=False))
    if size > max_bytes:
        return refusal(
            tool_id,
            f"The tool ran, but its answer of {size} characters is longer than "
            "UpstreamOptions.max_result_bytes: ask it for less.",
        )
    return InvokeResult(
        tool_id=tool_id,
        content=tuple(_content(block) for block in raw["content"]),
        structured=raw.get("structuredContent"),
        is_error=answer.is_error,
    )


def refusal(tool_id: str, text: str) -> InvokeResult:
    """Give a result that says that the tool failed, and why."""
    block = Content(type="text", text=text, data={"type": "text", "text": text})
    return InvokeResult(tool_id=tool_id, content=(block,), is_error=True)


def _content(block: JsonObject) -> Content:
    holder = block.get("resource")
    text = (holder if isinstance(holder, dict) else block).get("text")
    return Content(
        type=str(block.get("type", "")), text=text if isinstance(text, str) else "", data=block
    )

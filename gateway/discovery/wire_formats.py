"""Conversion of tools and messages between Chat Completions and the Responses API. Pure.

Internally, tools and messages have the format of Chat Completions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from gateway.runtime.json_schema import as_object
from gateway.types import InvokeResult

WireFormat = Literal["chat", "responses"]
NATIVE_SEARCH = "<tool_search>"
"""Name of the native tool search; functions cannot have this name."""


def to_wire(tool: Mapping[str, object], wire_format: WireFormat) -> Mapping[str, object]:
    """Convert a tool from the format of Chat Completions to *wire_format*.

    If ``strict`` is missing, the Responses API would require optional parameters.
    """
    return tool if wire_format == "chat" else {"type": "function", "strict": False, **unwrap(tool)}


def unwrap(entry: Mapping[str, object]) -> Mapping[str, object]:
    """Return the content of *entry*, which Chat Completions nests under the entry's type."""
    inner = entry.get(str(entry.get("type")))
    return inner if isinstance(inner, Mapping) else entry


def names_of_tool(tool: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names by which a model can call *tool*, an entry of a request's ``tools``."""
    if tool.get("type") == "namespace":
        members = tool.get("tools")
        return tuple(
            name
            for member in (members if isinstance(members, list | tuple) else ())
            if isinstance(member, Mapping)
            for name in names_of_tool(member)
        )
    name = str(unwrap(tool).get("name", ""))
    return (name,) if name else ()


def messages_of(items: object) -> list[Mapping[str, object]]:
    """Convert the ``input`` of a Responses request to chat messages.

    Consecutive calls become one assistant message. Each output becomes a tool message. A native
    search becomes a call of ``tool_search``.
    """
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return list(_merge_items(items)) if isinstance(items, list | tuple) else []


def _merge_items(items: Sequence[object]) -> Iterator[Mapping[str, object]]:
    pending: dict[str, object] = {}
    """The last assistant message, to which directly following calls are added."""
    for item in items:
        if not isinstance(item, Mapping) or item.get("type") == "reasoning":
            continue
        call = _call_of(item)
        if call is not None:
            calls = pending.get("tool_calls")
            pending["tool_calls"] = [*(calls if isinstance(calls, list) else []), call]
            continue
        if pending:
            yield {"role": "assistant", "content": None, **pending}
            pending = {}
        if item.get("role") == "assistant":
            pending = {"content": item.get("content")}
        else:
            yield from _message_of(item)
    if pending:
        yield {"role": "assistant", "content": None, **pending}


def _message_of(item: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    if str(item.get("type", "")).endswith("_output"):
        content = item.get("tools", item.get("output", ""))
        yield {"role": "tool", "tool_call_id": item.get("call_id"), "content": content}
    elif "role" in item:
        yield {"role": item["role"], "content": item.get("content", "")}


def _call_of(item: Mapping[str, object]) -> Mapping[str, object] | None:
    kind = str(item.get("type", ""))
    if not kind.endswith("_call") or "call_id" not in item:
        return None
    name = item.get("name") if kind == "function_call" else kind.removesuffix("_call")
    function = {"name": name, "arguments": item.get("arguments", "{}")}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def result_text(result: InvokeResult) -> str:
    """Return a tool's result as text: its text blocks, or else its structured content.

    Blocks of other types are represented by their type.
    """
    parts = []
    for block in result.content:
        data = {**block.data, **as_object(block.data.get("resource"))}
        about = [str(part) for key in ("mimeType", "uri") if (part := data.get(key))]
        named = f"[{block.type}: {' '.join(about)}]" if about else f"[{block.type}]"
        parts.append(block.text or ("" if block.type == "text" else named))
    text = "\n".join(filter(None, parts))
    if not text and result.structured is not None:
        text = json.dumps(result.structured, ensure_ascii=False, default=str)
    if result.is_error:
        return f"The tool reported an error:\n{text}"
    return text or "The tool answered with nothing."


def clip(text: str, limit: int) -> str:
    """Return *text*, cut to *limit* characters, with a note of the number of omitted characters."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: {len(text) - limit} of {len(text)} characters left out]"

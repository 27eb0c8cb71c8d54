"""Function tools and conversations in the two wire formats. Pure.

Inside the package, tools and messages have the form of Chat Completions. Here they are turned into
the form of the Responses API and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

Form = Literal["chat", "responses"]
NATIVE_SEARCH = "<tool_search>"
"""Stands for the service's own tool search in place of a function's name, which it cannot be."""
_OUTPUTS = "_output"


def written(tools: Iterable[Mapping[str, object]], form: Form) -> tuple[Mapping[str, object], ...]:
    """Write tools of ours, given in the form of Chat Completions, in another *form*."""
    return tuple(tools) if form == "chat" else tuple(_flat(tool) for tool in tools)


def _flat(tool: Mapping[str, object]) -> Mapping[str, object]:
    inner = tool.get("function")
    return {"type": "function", **inner} if isinstance(inner, Mapping) else tool


def names_of_tool(tool: Mapping[str, object]) -> tuple[str, ...]:
    """Give the names that one entry of a request's ``tools`` lets the model call."""
    if tool.get("type") == "namespace":
        inside = tool.get("tools")
        listed = inside if isinstance(inside, list | tuple) else ()
        return tuple(
            name for each in listed if isinstance(each, Mapping) for name in names_of_tool(each)
        )
    inner = tool.get(str(tool.get("type")))
    named = inner if isinstance(inner, Mapping) else tool
    name = str(named.get("name", ""))
    return (name,) if name else ()


def messages_of(items: object) -> list[Mapping[str, object]]:
    """Read the ``input`` of a Responses request as chat messages.

    Calls that follow each other become one assistant message; each answer becomes a tool message.
    A search that the service knows by name (`tool_search_call`) becomes a call of ``tool_search``.
    """
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return list(_joined(items)) if isinstance(items, list | tuple) else []


def _joined(items: Sequence[object]) -> Iterator[Mapping[str, object]]:
    waiting: dict[str, object] = {}
    for item in items:
        if not isinstance(item, Mapping) or item.get("type") == "reasoning":
            continue
        call = _call(item)
        if call is not None:
            calls = waiting.get("tool_calls")
            waiting["tool_calls"] = [*(calls if isinstance(calls, list) else []), call]
            continue
        if waiting:
            yield {"role": "assistant", "content": None, **waiting}
            waiting = {}
        if item.get("role") == "assistant":
            waiting = {"content": item.get("content")}
        else:
            yield from _told(item)
    if waiting:
        yield {"role": "assistant", "content": None, **waiting}


def _call(item: Mapping[str, object]) -> Mapping[str, object] | None:
    kind = str(item.get("type", ""))
    if not kind.endswith("_call") or "call_id" not in item:
        return None
    name = item.get("name") if kind == "function_call" else kind.removesuffix("_call")
    function = {"name": name, "arguments": item.get("arguments", "{}")}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def _told(item: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    if str(item.get("type", "")).endswith(_OUTPUTS):
        content = item.get("tools", item.get("output", ""))
        yield {"role": "tool", "tool_call_id": item.get("call_id"), "content": content}
    elif "role" in item:
        yield {"role": item["role"], "content": item.get("content", "")}

"""Responses API answers of the scripted model, whole or as events.

A call of ``tool_search`` is the service's own search if the request contains that tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from gateway.testing.chat_format import CREATED, ModelAnswer, split_text
from gateway.types import JsonObject


def response_id(answer: ModelAnswer) -> str:
    """Return the id of the response."""
    return f"resp_{answer.id.removeprefix('chatcmpl-')}"


def items(answer: ModelAnswer) -> list[dict[str, Any]]:
    """Return the output items: the text, then the calls."""
    name = response_id(answer)
    output: list[dict[str, Any]] = []
    if answer.turn.text or not answer.turn.calls:
        part = {"type": "output_text", "text": answer.turn.text, "annotations": []}
        message = {"id": f"msg_{name}", "type": "message", "role": "assistant", "content": [part]}
        output.append(message)
    has_search = any(tool.get("type") == "tool_search" for tool in answer.request.tools)
    for position, call in enumerate(answer.turn.calls):
        item = {"call_id": answer.call_id(0, position)}
        if has_search and call.name == "tool_search":
            search = {"execution": "client", "arguments": json.loads(call.raw)}
            item |= {"id": f"ts_{name}_{position}", "type": "tool_search_call", **search}
        else:
            function = {"name": call.name, "arguments": call.raw}
            item |= {"id": f"fc_{name}_{position}", "type": "function_call", **function}
        output.append(item)
    return [{**item, "status": "completed"} for item in output]


def response(answer: ModelAnswer) -> dict[str, object]:
    """Return the whole answer as one object."""
    usage = answer.usage
    is_cut = answer.turn.finish_reason == "length"
    return {
        **_head(answer),
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": items(answer),
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cache_write_tokens": 0, **usage["prompt_tokens_details"]},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
    }


def _head(answer: ModelAnswer) -> dict[str, object]:
    body = answer.request.body
    return {
        "id": response_id(answer),
        "object": "response",
        "created_at": CREATED,
        "model": answer.request.model,
        "error": None,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata") or {},
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "temperature": body.get("temperature", 1.0),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": [],
        "top_p": body.get("top_p", 1.0),
    }


def item_events(answer: ModelAnswer, *, chunk_chars: int) -> Iterator[bytes]:
    """Yield the answer as server-sent events."""
    for number, event in enumerate(_events(answer, chunk_chars)):
        data = json.dumps({**event, "sequence_number": number})
        yield f"event: {event['type']}\ndata: {data}\n\n".encode()


def _events(answer: ModelAnswer, size: int) -> Iterator[dict[str, object]]:
    started = {**_head(answer), "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    for position, item in enumerate(items(answer)):
        yield from _item_events(item, position, size)
    whole = response(answer)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _item_events(item: dict[str, Any], position: int, size: int) -> Iterator[dict[str, object]]:
    place = {"output_index": position}
    address = {**place, "item_id": item["id"]}
    opened: dict[str, object] = {**item, "status": "in_progress"}
    changes: Iterable[dict[str, object]] = ()
    if item["type"] == "message":
        opened["content"] = []
        changes = _text_events(item["content"][0], {**address, "content_index": 0}, size)
    elif item["type"] == "function_call":
        opened["arguments"] = ""
        changes = _argument_events(item, address, size)
    yield {"type": "response.output_item.added", **place, "item": opened}
    yield from changes
    yield {"type": "response.output_item.done", **place, "item": item}


def _text_events(
    part: dict[str, Any], address: JsonObject, size: int
) -> Iterator[dict[str, object]]:
    text = part["text"]
    yield {"type": "response.content_part.added", **address, "part": {**part, "text": ""}}
    for piece in split_text(text, size):
        yield {"type": "response.output_text.delta", **address, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **address, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **address, "part": part}


def _argument_events(
    call: dict[str, Any], address: JsonObject, size: int
) -> Iterator[dict[str, object]]:
    kind, arguments = "response.function_call_arguments", call["arguments"]
    for piece in split_text(arguments, size):
        yield {"type": f"{kind}.delta", **address, "delta": piece}
    yield {"type": f"{kind}.done", **address, "name": call["name"], "arguments": arguments}

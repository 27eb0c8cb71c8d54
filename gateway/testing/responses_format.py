"""A turn as the Responses API's JSON, whole or in events. Pure: no clock, no randomness, no state.

A call of ``tool_search`` is the service's own, if the request brings that tool; all others are
functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from gateway.testing.chat_format import CREATED, ModelAnswer, split_text
from gateway.testing.model import Call
from gateway.types import JsonObject


def response_id(answer: ModelAnswer) -> str:
    """Return the id of the response."""
    return f"resp_{answer.id.removeprefix('chatcmpl-')}"


def items(answer: ModelAnswer) -> list[dict[str, object]]:
    """Return the output: the text, then the calls."""
    name = response_id(answer)
    output: list[dict[str, object]] = []
    if answer.turn.text or not answer.turn.calls:
        part = {"type": "output_text", "text": answer.turn.text, "annotations": []}
        output.append(
            {
                "id": f"msg_{name}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    calls = (_item(answer, position, call) for position, call in enumerate(answer.turn.calls))
    return [*output, *calls]


def _item(answer: ModelAnswer, position: int, call: Call) -> dict[str, object]:
    head = {"call_id": answer.call_id(0, position), "status": "completed"}
    tools = answer.request.tools
    if call.name == "tool_search" and any(tool.get("type") == call.name for tool in tools):
        arguments = json.loads(call.raw)
        search = {"type": "tool_search_call", "execution": "client", "arguments": arguments}
        return {"id": f"ts_{response_id(answer)}_{position}", **head, **search}
    function = {"type": "function_call", "name": call.name, "arguments": call.raw}
    return {"id": f"fc_{response_id(answer)}_{position}", **head, **function}


def response(answer: ModelAnswer) -> dict[str, object]:
    """Return the whole answer as one object."""
    usage = answer.usage
    metered = {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {
            "cache_write_tokens": 0,
            **_object(usage["prompt_tokens_details"]),
        },
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["total_tokens"],
    }
    is_cut = answer.turn.finish_reason == "length"
    return {
        **_head(answer),
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": items(answer),
        "usage": metered,
    }


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


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


def _item_events(item: JsonObject, position: int, size: int) -> Iterator[dict[str, object]]:
    address = {"output_index": position, "item_id": item["id"]}
    added = {"type": "response.output_item.added", "output_index": position}
    if item["type"] == "message":
        yield {**added, "item": {**item, "status": "in_progress", "content": []}}
        yield from _text_events(item, {**address, "content_index": 0}, size)
    elif item["type"] == "function_call":
        yield {**added, "item": {**item, "status": "in_progress", "arguments": ""}}
        arguments = str(item["arguments"])
        kind = "response.function_call_arguments"
        for piece in split_text(arguments, size):
            yield {"type": f"{kind}.delta", **address, "delta": piece}
        yield {"type": f"{kind}.done", **address, "name": item["name"], "arguments": arguments}
    else:
        yield {**added, "item": {**item, "status": "in_progress"}}
    yield {"type": "response.output_item.done", "output_index": position, "item": dict(item)}


def _text_events(item: JsonObject, address: JsonObject, size: int) -> Iterator[dict[str, object]]:
    content = item["content"]
    part: dict[str, object] = dict(content[0]) if isinstance(content, list) else {}
    text = str(part.get("text", ""))
    yield {"type": "response.content_part.added", **address, "part": {**part, "text": ""}}
    for piece in split_text(text, size):
        yield {"type": "response.output_text.delta", **address, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **address, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **address, "part": part}

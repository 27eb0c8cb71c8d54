"""A turn as the Responses API's JSON, whole or in events. Pure: no clock, no chance, no state.

A call of ``tool_search`` is the service's own, if the request brings that tool; all others are
functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from gateway.testing.model import Call
from gateway.testing.wire import CREATED, Answer, pieces
from gateway.types import JsonObject


def response_id(answer: Answer) -> str:
    """Name the response."""
    return f"resp_{answer.id.removeprefix('chatcmpl-')}"


def items(answer: Answer) -> list[dict[str, object]]:
    """Give the output: what is said, then the calls."""
    name = response_id(answer)
    said: list[dict[str, object]] = []
    if answer.turn.text or not answer.turn.calls:
        part = {"type": "output_text", "text": answer.turn.text, "annotations": []}
        said.append(
            {
                "id": f"msg_{name}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    calls = (_item(answer, place, call) for place, call in enumerate(answer.turn.calls))
    return [*said, *calls]


def _item(answer: Answer, place: int, call: Call) -> dict[str, object]:
    head = {"call_id": answer.call_id(0, place), "status": "completed"}
    tools = answer.request.tools
    if call.name == "tool_search" and any(tool.get("type") == call.name for tool in tools):
        arguments = json.loads(call.raw)
        own = {"type": "tool_search_call", "execution": "client", "arguments": arguments}
        return {"id": f"ts_{response_id(answer)}_{place}", **head, **own}
    function = {"type": "function_call", "name": call.name, "arguments": call.raw}
    return {"id": f"fc_{response_id(answer)}_{place}", **head, **function}


def response(answer: Answer) -> dict[str, object]:
    """Give the whole answer as one object."""
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
    ended = answer.turn.finish_reason == "length"
    return {
        **_head(answer),
        "status": "incomplete" if ended else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if ended else None,
        "output": items(answer),
        "usage": metered,
    }


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _head(answer: Answer) -> dict[str, object]:
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


def item_events(answer: Answer, *, chunk_chars: int) -> Iterator[bytes]:
    """Give the answer as server-sent events."""
    for number, event in enumerate(_events(answer, chunk_chars)):
        data = json.dumps({**event, "sequence_number": number})
        yield f"event: {event['type']}\ndata: {data}\n\n".encode()


def _events(answer: Answer, size: int) -> Iterator[dict[str, object]]:
    begun = {**_head(answer), "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, item in enumerate(items(answer)):
        yield from _item_events(item, place, size)
    whole = response(answer)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _item_events(item: JsonObject, place: int, size: int) -> Iterator[dict[str, object]]:
    at = {"output_index": place, "item_id": item["id"]}
    added = {"type": "response.output_item.added", "output_index": place}
    if item["type"] == "message":
        yield {**added, "item": {**item, "status": "in_progress", "content": []}}
        yield from _text_events(item, {**at, "content_index": 0}, size)
    elif item["type"] == "function_call":
        yield {**added, "item": {**item, "status": "in_progress", "arguments": ""}}
        arguments = str(item["arguments"])
        kind = "response.function_call_arguments"
        for piece in pieces(arguments, size):
            yield {"type": f"{kind}.delta", **at, "delta": piece}
        yield {"type": f"{kind}.done", **at, "name": item["name"], "arguments": arguments}
    else:
        yield {**added, "item": {**item, "status": "in_progress"}}
    yield {"type": "response.output_item.done", "output_index": place, "item": dict(item)}


def _text_events(item: JsonObject, at: JsonObject, size: int) -> Iterator[dict[str, object]]:
    content = item["content"]
    part: dict[str, object] = dict(content[0]) if isinstance(content, list) else {}
    text = str(part.get("text", ""))
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for piece in pieces(text, size):
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}

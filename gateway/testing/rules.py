"""What the real service refuses, so that the fake refuses it too.

A request that the scripted model takes would not get a 400 from the service for its shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gateway.errors import InvalidRequestError
from gateway.testing.model import ModelRequest

MAX_TOOLS = 128
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check(request: ModelRequest) -> None:
    """Refuse what the service would refuse.

    Raises:
        InvalidRequestError: With the first fault; the server answers 400.
    """
    for fault in _faults(request):
        raise InvalidRequestError(fault)


def _faults(request: ModelRequest) -> Iterator[str]:
    if not request.model:
        yield "you must provide a model parameter"
    if not request.messages:
        yield "'messages' must be an array of at least one message"
    yield from _tool_faults(request)
    yield from _answer_faults(request.messages)


def _tool_faults(request: ModelRequest) -> Iterator[str]:
    count = len(request.tools)
    if request.body.get("tools") is not None and count == 0:
        yield "'tools' is too short: expected an array with at least one item"
    if count > MAX_TOOLS:
        yield f"'tools' is too long: expected at most {MAX_TOOLS} items, got {count}"
    for name in request.tool_names:
        if not _NAME.fullmatch(name):
            yield f"a function's name must match {_NAME.pattern}, not {name!r}"


def _answer_faults(messages: list[dict[str, object]]) -> Iterator[str]:
    """Each tool call is answered once, before anybody else speaks."""
    open_ids: list[object] = []
    for position, message in enumerate(messages):
        if message.get("role") != "tool":
            if open_ids:
                break
            open_ids = _call_ids(message)
        elif message.get("tool_call_id") in open_ids:
            open_ids.remove(message.get("tool_call_id"))
        else:
            yield f"messages[{position}] of role 'tool' answers no open tool call"
    if open_ids:
        yield f"no tool message answers the tool calls {open_ids}"


def _call_ids(message: dict[str, object]) -> list[object]:
    calls = message.get("tool_calls")
    return [call.get("id") for call in calls] if isinstance(calls, list) else []

"""Turns of a scripted model, its requests, and the checks of the real service.

A policy has no state, so it answers equal requests equally. It refuses a request by raising
`InvalidRequestError`, which becomes HTTP status 400.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, takewhile

from gateway.discovery.wire_formats import messages_of
from gateway.errors import InvalidRequestError
from gateway.runtime.json_schema import as_objects
from gateway.testing.tool_rules import find_tool_faults
from gateway.types import JsonObject

_BRING_TOOLS = frozenset({"tool_search_output", "additional_tools"})
"""Item types of the Responses API that contain tools."""
MAX_TOOLS = 128


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of the model."""

    name: str
    arguments: JsonObject | str = field(default_factory=dict)
    """An object is sent as JSON; a string is sent unchanged, even if it is broken JSON."""
    id: str = field(default="", kw_only=True)
    """Id of the call; "" creates one that is unique in the conversation."""

    @property
    def raw(self) -> str:
        """Arguments as they are sent."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(dict(self.arguments), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model: text, tool calls or both."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish_reason: str | None = None
    """Reason why the model stopped. None is ``tool_calls`` with calls, otherwise ``stop``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to the scripted model. Do not change its values."""

    path: str
    body: JsonObject
    raw: bytes = field(default=b"", compare=False)
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Headers, keyed by lower-case name."""
    query: Mapping[str, str] = field(default_factory=dict, compare=False)
    stored: tuple[object, ...] | None = field(default=None, compare=False)
    """Items of the stored conversation, then those of the request. None for other APIs than the
    Responses API."""

    @property
    def is_responses(self) -> bool:
        """True for requests of the Responses API."""
        return self.path.endswith("/responses")

    @property
    def messages(self) -> list[dict[str, object]]:
        """The conversation as chat messages, oldest first."""
        if not self.is_responses:
            return as_objects(self.body.get("messages"))
        return as_objects(messages_of(self._input))

    @property
    def tools(self) -> list[dict[str, object]]:
        """Tools as sent, including their ``type``."""
        return as_objects(self.body.get("tools"))

    @property
    def functions(self) -> dict[str, dict[str, object]]:
        """Name, description and parameters of each function tool, keyed by name, in the order sent.
        `loaded` tools come last.
        """
        tools = [*self.tools, *self.loaded]
        functions = [tool for tool in tools if tool.get("type") == "function"]
        inner = as_objects([tool.get("function", tool) for tool in functions])
        return {str(function.get("name", "")): function for function in inner}

    @property
    def loaded(self) -> list[dict[str, object]]:
        """Tools from a tool search of the service or a developer message."""
        outputs = [item for item in as_objects(self._input) if item.get("type") in _BRING_TOOLS]
        return [tool for item in outputs for tool in as_objects(item.get("tools"))]

    @property
    def _input(self) -> object:
        return self.body.get("input") if self.stored is None else list(self.stored)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Names of the function tools, in the order sent."""
        return tuple(self.functions)

    @property
    def model(self) -> str:
        """Name of the requested model."""
        return str(self.body.get("model", ""))

    @property
    def stream(self) -> bool:
        """True if the answer is streamed."""
        return self.body.get("stream") is True

    @property
    def user_text(self) -> str:
        """Text of the last user message. Empty if it is missing or not plain text."""
        users = [message for message in self.messages if message.get("role") == "user"]
        texts = [message.get("content") for message in users]
        return texts[-1] if texts and isinstance(texts[-1], str) else ""

    @property
    def progress(self) -> int:
        """Number of assistant messages after the last user message."""
        return [message.get("role") for message in self._since("user")].count("assistant")

    def last_tool_results(self) -> list[dict[str, object]]:
        """Return the tool messages after the last assistant message."""
        since = self._since("assistant")
        return [message for message in since[::-1] if message.get("role") == "tool"]

    def _since(self, role: str) -> list[dict[str, object]]:
        return list(takewhile(lambda message: message.get("role") != role, reversed(self.messages)))


Policy = Callable[[ModelRequest], Turn]
"""Returns the model's turn.

It runs on the server's thread, one request at a time, and must not block. Use `ScriptedModel.gate`
to delay an answer."""


def script(*turns: Turn | Policy) -> Policy:
    """Return a policy that replays *turns*, and starts again after every user message.

    The position is read from the conversation, so a repeated request gets the same answer. A turn
    that is a function is called when it is due.

    Raises:
        InvalidRequestError: From the policy, if the conversation continues after the last turn.
    """

    def play(request: ModelRequest) -> Turn:
        if request.progress >= len(turns):
            raise InvalidRequestError(
                f"the script is over: it has {len(turns)} turns after a user message, "
                f"and turn {request.progress + 1} was asked for"
            )
        turn = turns[request.progress]
        return turn if isinstance(turn, Turn) else turn(request)

    return play


def check_request(request: ModelRequest) -> None:
    """Refuse requests that the service would refuse.

    Raises:
        InvalidRequestError: With the first fault.
    """
    for fault in chain(_find_faults(request), _find_answer_faults(request.messages)):
        raise InvalidRequestError(fault)


def _find_faults(request: ModelRequest) -> Iterator[str]:
    if not request.model:
        yield "you must provide a model parameter"
    if not request.messages:
        yield "'messages' must be an array of at least one message"
    count = len(request.tools)
    if request.body.get("tools") is not None and count == 0:
        yield "'tools' is too short: expected an array with at least one item"
    if count > MAX_TOOLS:
        yield f"'tools' is too long: expected at most {MAX_TOOLS} items, got {count}"
    for function in request.functions.values():
        yield from find_tool_faults(function)


def _find_answer_faults(messages: list[dict[str, object]]) -> Iterator[str]:
    """Yield violations of this rule: each tool call is answered once, before any other message."""
    open_ids: list[object] = []
    for position, message in enumerate(messages):
        if message.get("role") != "tool":
            if open_ids:
                break
            open_ids = [call.get("id") for call in as_objects(message.get("tool_calls"))]
        elif message.get("tool_call_id") in open_ids:
            open_ids.remove(message.get("tool_call_id"))
        else:
            yield f"messages[{position}] of role 'tool' answers no open tool call"
    if open_ids:
        yield f"no tool message answers the tool calls {open_ids}"

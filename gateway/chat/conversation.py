"""One client call, and the state of a conversation that is stored after the call.

With ``previous_response_id`` or ``conversation`` the service keeps the earlier messages, so found
tools and unanswered gateway calls are stored here. After a restart, the model calls found tools
through `call_tool`, or searches again.

A ``tool_choice`` that requires a call applies only to the first turn, because otherwise the model
could never stop calling tools.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel

from gateway.discovery.call_handler import ToolAnswer, ToolCall
from gateway.discovery.tool_list import ToolList
from gateway.discovery.wire_formats import WireFormat, unwrap
from gateway.errors import InvalidRequestError

JsonItem = Mapping[str, object]
R = TypeVar("R", ChatCompletion, Response)
"""A whole reply of the model, in either wire format."""
IsOurs = Callable[[str], bool]
"""Returns True if the gateway, not the host, answers calls of the function with this name."""
LoadTools = Callable[[Sequence[str]], Sequence[JsonItem]]
"""Returns the definitions of found tools, given their exposed names."""
MAX_CONVERSATIONS = 1024
"""Maximum number of stored conversations; the least recently used one is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationState:
    """Stored state of a conversation whose messages the service keeps."""

    shown: tuple[str, ...] = ()
    """Names of the proxies in the last request, in order."""
    pending_calls: tuple[ToolCall, ...] = ()
    """Gateway calls that were removed from the caller's reply, and that the service waits for."""
    continues: str = ""
    """Last response id at the service, if the caller's stream began with another id; else ""."""


class Conversation(ABC, Generic[R]):
    """One client call in one wire format. No I/O. The caller's objects are never changed."""

    wire_format: ClassVar[WireFormat]
    refused: ClassVar[tuple[str, str]]
    """Request parameter that does not work with discovery, and the end of its error message."""

    def __init__(self, request: Mapping[str, object]) -> None:
        self._request = request
        self.host_tools: Sequence[JsonItem] = to_json_items(request.get("tools"), "tools")
        self.model = str(request.get("model", ""))
        self.id = ""
        """Id of the conversation at the service, or ""."""
        self.required_tools = required_tools(request.get("tool_choice"))
        """Names of the tools in the caller's ``tool_choice``."""
        self.recalled: tuple[str, ...] = ()
        """Names of the proxies from earlier messages, which only the service keeps."""
        self.pending_calls: tuple[ToolCall, ...] = ()
        """Unanswered gateway calls from earlier messages, which only the service keeps."""
        self.new_messages: list[JsonItem] = []
        """Messages added since the caller's request."""

    def check(self) -> None:
        """Raise an error if the request has a parameter that does not work with discovery.

        Raises:
            InvalidRequestError: If there is such a parameter. The message has a remedy.
        """
        parameter, why = self.refused
        if self._request.get(parameter):
            raise InvalidRequestError(
                f"{parameter!r} cannot {why}, or use the bare client as .openai"
            )

    def body(self, turn: int, tool_list: ToolList) -> dict[str, object]:
        """Return the body of the request for *turn*, counted from 1.

        Turn 1 has the caller's own messages, byte for byte.
        """
        body = dict(self._request)
        if turn > 1 and "tool_choice" in body:
            body["tool_choice"] = _choice_after_first_call(body["tool_choice"])
        if not tool_list.is_empty:
            body["tools"] = list(tool_list.tools)
        return body

    @abstractmethod
    def messages(self) -> Sequence[JsonItem]:
        """Return the conversation so far as chat messages."""

    @abstractmethod
    def is_readable(self, reply: object) -> bool:
        """Return whether *reply* is a model's, not an error page with status 200."""

    @abstractmethod
    def calls(self, reply: R) -> tuple[ToolCall, ...]:
        """Return every call of *reply* that the gateway or the caller must answer, in order."""

    @abstractmethod
    def without_our_calls(self, reply: R, is_ours: IsOurs) -> R:
        """Return *reply* without the calls that the gateway answers."""

    @abstractmethod
    def add_turn(self, reply: R, answers: Sequence[ToolAnswer], load: LoadTools) -> None:
        """Add *reply* and the answers to its calls to the conversation.

        *load* returns the definitions of the tools that a native search found.
        """

    @abstractmethod
    def finish_reasons(self, reply: R) -> tuple[str, ...]:
        """Return the finish reason of each choice of *reply*."""

    @abstractmethod
    def text(self, reply: R) -> str:
        """Return the text of *reply*, or ""."""

    def answer_pending(self, answers: Sequence[ToolAnswer], load: LoadTools) -> None:
        """Add the answers to `pending_calls`; see `add_turn`."""

    def store(self, final: R, pending: tuple[ToolCall, ...], *, opened_as: str = "") -> None:
        """Store the state that the caller's next request does not contain.

        Args:
            final: The reply that goes to the caller.
            pending: Gateway calls that were removed from *final*.
            opened_as: Response id at the beginning of the caller's stream; "" if not streamed.
        """


def to_json_items(items: object, parameter: str) -> list[JsonItem]:
    """Convert a list of messages or tools (mappings or SDK objects) to new JSON objects.

    Raises:
        InvalidRequestError: If *items* has another type. The message names *parameter*.
    """
    if items is None:
        return []
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise InvalidRequestError(f"{parameter!r} must be a list of objects")
    return [_to_json_item(item, parameter) for item in items]


def _to_json_item(item: object, parameter: str) -> JsonItem:
    value = _to_json(item)
    if isinstance(value, Mapping):
        return value
    raise InvalidRequestError(
        f"each item of {parameter!r} must be an object, got {type(item).__name__}"
    )


def _to_json(value: object) -> object:
    """Serialize like the SDK, so that requests can be repeated exactly."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True, by_alias=True)
    if isinstance(value, Mapping):
        return {key: _to_json(inner) for key, inner in value.items()}
    return [_to_json(inner) for inner in value] if isinstance(value, list | tuple) else value


def required_tools(choice: object) -> tuple[str, ...]:
    """Return the function names in a ``tool_choice``; () for a plain string."""
    if not isinstance(choice, Mapping):
        return ()
    listed = unwrap(choice).get("tools")
    entries = listed if isinstance(listed, list | tuple) else [choice]
    names = (unwrap(entry).get("name") for entry in entries if isinstance(entry, Mapping))
    return tuple(name for name in names if isinstance(name, str))


def _choice_after_first_call(choice: object) -> object:
    if choice == "required":
        return "auto"
    if not isinstance(choice, Mapping):
        return choice
    if choice.get("type") != "allowed_tools":
        return "auto"
    inner = {**unwrap(choice), "mode": "auto"}
    return inner if unwrap(choice) is choice else {**choice, "allowed_tools": inner}

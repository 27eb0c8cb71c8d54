"""One call of the wrapper as a conversation, and the state that outlives it.

With ``previous_response_id`` or ``conversation`` the service keeps the earlier messages. So the
tools that were found, and the calls that we still have to answer, are stored here by that id. After
a restart they are gone: found tools are then called through `call_tool`, or searched for again.

A ``tool_choice`` that demands a call (``required``, a named function) is met by the first calls, of
our tools too; later turns choose freely, or the model would have to call tools for ever. ``none``
and a list of allowed tools stay as the host wrote them.
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
"""A message, an item or a tool as a JSON object."""
R = TypeVar("R", ChatCompletion, Response)
"""A whole reply."""
IsOurs = Callable[[str], bool]
"""Returns whether a function of this name is ours to run."""
LoadTools = Callable[[Sequence[str]], Sequence[JsonItem]]
"""Returns the definitions of tools by their exposed names."""
MAX_CONVERSATIONS = 1024
"""How many conversations are stored; the least recently used one goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationState:
    """The stored state of a conversation that the service keeps."""

    shown: tuple[str, ...] = ()
    """The found tools that the model saw last, in order."""
    pending_calls: tuple[ToolCall, ...] = ()
    """Calls of our tools that the caller was not shown, and whose answers the service waits for."""
    continues: str = ""
    """The response that the service knows, if a stream began under another id."""


class Conversation(ABC, Generic[R]):
    """One call of the wrapper in one wire format.

    It reads the caller's request, grows by what the model and we say, and writes the next request.
    No I/O; the caller's objects are never changed.
    """

    wire_format: ClassVar[WireFormat]
    refused: ClassVar[tuple[str, str]]
    """A parameter that cannot work with discovery, and why."""

    def __init__(self, request: Mapping[str, object]) -> None:
        self._request = request
        self.host_tools: Sequence[JsonItem] = to_json_items(request.get("tools"), "tools")
        self.model = str(request.get("model", ""))
        """The model that is asked; "" if the request names none."""
        self.id = ""
        """That of the conversation at the service; "" if the request names none."""
        self.required_tools = required_tools(request.get("tool_choice"))
        """Names in the caller's ``tool_choice``."""
        self.recalled: tuple[str, ...] = ()
        """Tools that were found in a part of the conversation that only the service keeps."""
        self.pending_calls: tuple[ToolCall, ...] = ()
        """Calls of ours in that part that are not answered yet."""
        self.new_messages: list[JsonItem] = []
        """What the conversation gained since the caller's request."""

    def check(self) -> None:
        """Refuse what cannot work with discovery.

        Raises:
            InvalidRequestError: With what to do instead.
        """
        parameter, why = self.refused
        if self._request.get(parameter):
            raise InvalidRequestError(
                f"{parameter!r} cannot {why}, or use the bare client as .openai"
            )

    def body(self, turn: int, tool_list: ToolList) -> dict[str, object]:
        """Write the request of *turn*, counted from 1; the first has the caller's own messages,
        byte for byte.
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
        """Return whether *reply* is one: some services send an error page as if it were."""

    @abstractmethod
    def calls(self, reply: R) -> tuple[ToolCall, ...]:
        """Return every call of *reply* that we or the caller must answer, in order."""

    @abstractmethod
    def without_our_calls(self, reply: R, is_ours: IsOurs) -> R:
        """Return *reply* without calls of ours; itself if there are none."""

    @abstractmethod
    def add_turn(self, reply: R, answers: Sequence[ToolAnswer], load: LoadTools) -> None:
        """Add *reply* and the answers to its calls; *load* writes the tools of a native search."""

    @abstractmethod
    def finish_reasons(self, reply: R) -> tuple[str, ...]:
        """Return why the model stopped, for each choice."""

    @abstractmethod
    def text(self, reply: R) -> str:
        """Return the text of *reply*; "" for none."""

    def answer_pending(self, answers: Sequence[ToolAnswer], load: LoadTools) -> None:
        """Add the answers to `pending_calls`."""

    def store(self, final: R, pending: tuple[ToolCall, ...], *, opened_as: str = "") -> None:
        """Store what the next request will not tell.

        Args:
            final: The reply that goes to the caller.
            pending: Calls of ours that were left out of it.
            opened_as: The id under which a stream began.
        """


def to_json_items(items: object, parameter: str) -> list[JsonItem]:
    """Read a list of messages or tools, each a mapping or an object of the SDK, without touching
    the originals.

    Raises:
        InvalidRequestError: If it is something else; *parameter* is named.
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
    raise InvalidRequestError(f"each of {parameter!r} must be an object, got {type(item).__name__}")


def _to_json(value: object) -> object:
    """Write objects of the SDK as the SDK sends them, at any depth: a later request then repeats
    an earlier one to the byte.
    """
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True, by_alias=True)
    if isinstance(value, Mapping):
        return {key: _to_json(inner) for key, inner in value.items()}
    return [_to_json(inner) for inner in value] if isinstance(value, list | tuple) else value


def required_tools(choice: object) -> tuple[str, ...]:
    """Return the names of the functions in a ``tool_choice``; () for the plain forms."""
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

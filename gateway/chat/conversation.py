"""One call of the wrapper as a conversation, and the state that outlives it.

With ``previous_response_id`` or ``conversation`` the service keeps the earlier messages. So the
tools that were found, and the calls that we still have to answer, are stored here by that id. After
a restart they are gone: found tools are then called through `call_tool`, or searched for again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel

from gateway.discovery.call_handler import ToolAnswer, ToolCall
from gateway.discovery.tool_list import ToolList
from gateway.discovery.wire_formats import WireFormat
from gateway.errors import InvalidRequestError
from gateway.runtime.cache import Cache

JsonItem = Mapping[str, object]
"""A message, an item or a tool as a JSON object."""
R = TypeVar("R", bound=BaseModel)
"""A whole reply: `ChatCompletion` or `Response`."""
IsOurs = Callable[[str], bool]
"""Returns whether a function of this name is ours to run."""
LoadTools = Callable[[Sequence[str]], Sequence[JsonItem]]
"""Returns the definitions of tools by their exposed names."""
MAX_CONVERSATIONS = 1024
"""How many conversations are stored; the least recently used one goes."""


class Conversation(Protocol[R]):
    """One call of the wrapper in one wire format.

    It reads the caller's request, grows by what the model and we say, and writes the next request.
    No I/O; the caller's objects are never changed.
    """

    wire_format: WireFormat
    """How this format writes a function tool."""
    host_tools: Sequence[JsonItem]
    """The caller's own tools, unchanged."""
    model: str
    """The model that is asked; "" if the request names none."""
    recalled: tuple[str, ...]
    """Tools that were found in a part of the conversation that only the service keeps."""
    pending_calls: tuple[ToolCall, ...]
    """Calls of ours in that part that are not answered yet."""
    required_tools: tuple[str, ...]
    """Names in the caller's ``tool_choice``."""

    def check(self) -> None:
        """Refuse what cannot work with discovery.

        Raises:
            InvalidRequestError: With what to do instead.
        """

    def messages(self) -> Sequence[JsonItem]:
        """Return the conversation so far as chat messages."""

    def body(self, turn: int, tool_list: ToolList) -> dict[str, object]:
        """Write the request of *turn*, counted from 1."""

    def is_readable(self, reply: object) -> bool:
        """Return whether *reply* is one: some services send an error page as if it were."""

    def calls(self, reply: R) -> tuple[ToolCall, ...]:
        """Return every call of *reply* that we or the caller must answer, in order."""

    def without_our_calls(self, reply: R, is_ours: IsOurs) -> R:
        """Return *reply* without calls of ours; itself if there are none."""

    def add_turn(self, reply: R, answers: Sequence[ToolAnswer], load: LoadTools) -> None:
        """Add *reply* and the answers to its calls; *load* writes the tools of a native search."""

    def answer_pending(self, answers: Sequence[ToolAnswer], load: LoadTools) -> None:
        """Add the answers to `pending_calls`."""

    def store(self, final: R, pending: tuple[ToolCall, ...], *, opened_as: str = "") -> None:
        """Store what the next request will not tell.

        Args:
            final: The reply that goes to the caller.
            pending: Calls of ours that were left out of it.
            opened_as: The id under which a stream began.
        """

    def new_messages(self) -> tuple[JsonItem, ...]:
        """Return what the conversation gained since the caller's request."""

    def text(self, reply: R) -> str:
        """Return the text of *reply*; "" for none."""

    def usage(self, reply: R) -> BaseModel | None:
        """Return the usage that *reply* reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationState:
    """The stored state of a conversation."""

    shown: tuple[str, ...] = ()
    """The found tools that the model saw last, in order."""
    pending_calls: tuple[ToolCall, ...] = ()
    """Calls of our tools that the caller was not shown, and whose answers the service waits for."""
    continues: str = ""
    """The response that the service knows, if a stream began under another id."""


class ConversationStore:
    """The states of one client's conversations, by response or conversation id. For any thread."""

    def __init__(self) -> None:
        self._states = Cache[ConversationState](
            "conversation", max_items=MAX_CONVERSATIONS, ttl_s=math.inf
        )

    def put(self, conversation_id: str, state: ConversationState) -> None:
        """Store *state* under *conversation_id*."""
        self._states.put(conversation_id, state)

    def get(self, conversation_id: str) -> ConversationState:
        """Return the state of *conversation_id*; an empty one if it was never stored."""
        return self._states.get(conversation_id) or ConversationState()


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

"""The two wire formats of a conversation: Chat Completions and the Responses API.

Of several chat choices (``n``) the first decides whether the loop goes on. Of the others only texts
and calls of the host's tools are returned.

In the Responses API each turn sends all that this call has gained; the service's own memory
(``previous_response_id``) stays as the caller gave it. Of a ``conversation`` the service keeps what
it was sent, so that each turn sends only what is new. A turn that mixes the host's calls with ours
goes back with the host's; where the service keeps the conversation, ours are answered with the
caller's next request.

A ``tool_choice`` that demands a call (``required``, a named function) is met by the first calls, of
our tools too; later turns choose freely, or the model would have to call tools for ever. ``none``
and a list of allowed tools stay as the host wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion import Choice
from openai.types.responses import Response
from openai.types.responses.response_output_item import ResponseOutputItem
from pydantic import BaseModel

from gateway.chat.conversation import (
    ConversationState,
    ConversationStore,
    IsOurs,
    JsonItem,
    LoadTools,
    to_json_items,
)
from gateway.discovery.call_handler import ToolAnswer, ToolCall
from gateway.discovery.render_results import direct_names_in
from gateway.discovery.tool_list import ToolList
from gateway.discovery.wire_formats import NATIVE_SEARCH, WireFormat, messages_of
from gateway.errors import InvalidRequestError

_HOST_ITEMS = frozenset(
    {
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "local_shell_call",
        "mcp_approval_request",
        "shell_call",
    }
)
"""Items that the caller answers; what is neither these nor a function runs at the service."""


class ChatConversation:
    """One call of ``chat.completions``."""

    wire_format: WireFormat = "chat"
    recalled: tuple[str, ...] = ()
    pending_calls: tuple[ToolCall, ...] = ()

    def __init__(self, body: Mapping[str, object]) -> None:
        self._body = body
        self._messages: list[JsonItem] = to_json_items(body.get("messages"), "messages")
        self._initial = len(self._messages)
        self.host_tools: Sequence[JsonItem] = to_json_items(body.get("tools"), "tools")
        self.model = str(body.get("model", ""))
        self.required_tools = required_tools(body.get("tool_choice"))

    def check(self) -> None:
        """Refuse the form of calls that tools replaced: a request cannot carry both."""
        if self._body.get("functions"):
            raise InvalidRequestError(
                "'functions' cannot go out together with found tools: give them as 'tools', or "
                "use the bare client as .openai"
            )

    def messages(self) -> Sequence[JsonItem]:
        """Return the messages."""
        return self._messages

    def body(self, turn: int, tool_list: ToolList) -> dict[str, object]:
        """Write the request; the first has the caller's own messages, byte for byte."""
        body = _next_body(self._body, turn, tool_list)
        if turn > 1:
            body["messages"] = list(self._messages)
        return body

    def is_readable(self, reply: object) -> bool:
        """Return whether the reply has choices, and each a message."""
        choices = reply.choices if isinstance(reply, ChatCompletion) else None
        return isinstance(choices, list) and all(
            isinstance(getattr(choice, "message", None), BaseModel) for choice in choices
        )

    def calls(self, reply: ChatCompletion) -> tuple[ToolCall, ...]:
        """Return the calls of the first choice."""
        return tuple(
            ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
            if call.type == "function"
            else ToolCall(id=call.id, name="", arguments="", foreign=True)
            for choice in reply.choices[:1]
            for call in choice.message.tool_calls or ()
        )

    def without_our_calls(self, reply: ChatCompletion, is_ours: IsOurs) -> ChatCompletion:
        """Leave out our calls; a choice that is left without any has stopped."""
        choices = [_choice_without_our_calls(choice, is_ours) for choice in reply.choices]
        if all(new is old for new, old in zip(choices, reply.choices, strict=True)):
            return reply
        return reply.model_copy(update={"choices": choices})

    def add_turn(
        self, reply: ChatCompletion, answers: Sequence[ToolAnswer], _load: LoadTools
    ) -> None:
        """Add the message of the first choice and the tool messages that answer it."""
        message = reply.choices[0].message
        self._messages.append(message.model_dump(exclude_none=True, exclude_unset=True))
        self._messages += [
            {"role": "tool", "tool_call_id": answer.call.id, "content": answer.text}
            for answer in answers
        ]

    def answer_pending(self, _answers: Sequence[ToolAnswer], _load: LoadTools) -> None:
        """Do nothing: every message is in the request."""

    def store(
        self, _final: ChatCompletion, _pending: tuple[ToolCall, ...], *, opened_as: str = ""
    ) -> None:
        """Store nothing, for the same reason."""

    def new_messages(self) -> tuple[JsonItem, ...]:
        """Return the messages that came after the caller's."""
        return tuple(self._messages[self._initial :])

    def text(self, reply: ChatCompletion) -> str:
        """Return the text of the first choice."""
        return (reply.choices[0].message.content or "") if reply.choices else ""

    def usage(self, reply: ChatCompletion) -> BaseModel | None:
        """Return the usage."""
        return reply.usage


def _choice_without_our_calls(choice: Choice, is_ours: IsOurs) -> Choice:
    calls = choice.message.tool_calls or []
    theirs = [call for call in calls if call.type != "function" or not is_ours(call.function.name)]
    if len(theirs) == len(calls):
        return choice
    message = choice.message.model_copy(update={"tool_calls": theirs or None})
    reason = choice.finish_reason if theirs or choice.finish_reason != "tool_calls" else "stop"
    return choice.model_copy(update={"message": message, "finish_reason": reason})


class ResponsesConversation:
    """One call of ``responses``."""

    wire_format: WireFormat = "responses"

    def __init__(self, body: Mapping[str, object], store: ConversationStore) -> None:
        self._body = body
        self._store = store
        source = body.get("input")
        self._input: list[JsonItem] = (
            [{"role": "user", "content": source}]
            if isinstance(source, str)
            else to_json_items(source, "input")
        )
        self.host_tools: Sequence[JsonItem] = to_json_items(body.get("tools"), "tools")
        self.model = str(body.get("model", ""))
        self.required_tools = required_tools(body.get("tool_choice"))
        self._conversation = _conversation_id(body.get("conversation"))
        self._previous = str(body.get("previous_response_id") or "")
        self._state = store.get(self._conversation or self._previous)
        self.recalled = self._state.shown
        self.pending_calls = self._state.pending_calls
        self._shown: tuple[str, ...] = ()
        self._pending_outputs: list[JsonItem] = []
        """The answers to pending calls; they stand before the caller's input."""
        self._new: list[JsonItem] = []
        self._unsent: list[JsonItem] = list(self._input)

    def check(self) -> None:
        """Refuse a response that no one waits for: its calls would never be answered."""
        if self._body.get("background"):
            raise InvalidRequestError(
                "'background' cannot work with found tools, since nobody is there to call them: "
                "leave it out, or use the bare client as .openai"
            )

    def messages(self) -> Sequence[JsonItem]:
        """Return the conversation as chat messages, without what only the service keeps."""
        return messages_of(self._items())

    def _items(self) -> list[JsonItem]:
        return [*self._pending_outputs, *self._input, *self._new]

    def body(self, turn: int, tool_list: ToolList) -> dict[str, object]:
        """Write the request; the first one hands on the caller's own input, byte for byte."""
        self._shown = tool_list.proxies
        body = _next_body(self._body, turn, tool_list)
        if self._state.continues and self._previous:
            body["previous_response_id"] = self._state.continues
        if turn > 1 or self._pending_outputs:
            body["input"] = list(self._unsent) if self._conversation else self._items()
        self._unsent.clear()
        return body

    def is_readable(self, reply: object) -> bool:
        """Return whether the reply has items."""
        return isinstance(reply, Response) and isinstance(reply.output, list)

    def calls(self, reply: Response) -> tuple[ToolCall, ...]:
        """Return the calls that wait for an answer; none of a reply that was broken off."""
        if reply.status not in {None, "completed"}:
            return ()
        return tuple(call for item in reply.output if (call := _call_of(item)) is not None)

    def without_our_calls(self, reply: Response, is_ours: IsOurs) -> Response:
        """Leave out our calls."""
        output = [item for item in reply.output if not is_our_item(item, is_ours)]
        if len(output) == len(reply.output):
            return reply
        return reply.model_copy(update={"output": output})

    def add_turn(self, reply: Response, answers: Sequence[ToolAnswer], load: LoadTools) -> None:
        """Add the reply's items and the items that answer its calls."""
        outputs = self._outputs(answers, load)
        items: list[JsonItem] = [
            item.model_dump(mode="json", exclude_unset=True, by_alias=True) for item in reply.output
        ]
        if self._body.get("store") is False:
            # The service has not kept them and cannot read them back.
            items = [
                item
                for item in items
                if item.get("type") != "reasoning" or item.get("encrypted_content")
            ]
        self._new += [*items, *outputs]
        self._unsent += outputs

    def answer_pending(self, answers: Sequence[ToolAnswer], load: LoadTools) -> None:
        """Put the answers before the caller's input; what they found is shown."""
        self._pending_outputs = self._outputs(answers, load)
        self._unsent = [*self._pending_outputs, *self._unsent]
        found = (
            name for answer in answers if answer.search for name in direct_names_in(answer.text)
        )
        self.recalled = tuple(dict.fromkeys((*self.recalled, *found)))

    def _outputs(self, answers: Sequence[ToolAnswer], load: LoadTools) -> list[JsonItem]:
        """Write the items that answer calls. What is loaded in this request already is not loaded
        again, unless a search found nothing else.
        """
        loaded = set() if self._body.get("truncation") == "auto" else self._loaded_names()
        outputs: list[JsonItem] = []
        for answer in answers:
            new = [name for name in answer.loaded if name not in loaded] or answer.loaded
            loaded.update(new)
            outputs.append(_output(answer, load(new) if answer.call.native else ()))
        return outputs

    def _loaded_names(self) -> set[str]:
        lists = (
            item.get("tools")
            for item in (*self._input, *self._new)
            if item.get("type") == "tool_search_output"
        )
        tools = (tool for listed in lists if isinstance(listed, list) for tool in listed)
        return {str(tool.get("name")) for tool in tools if isinstance(tool, Mapping)}

    def store(self, final: Response, pending: tuple[ToolCall, ...], *, opened_as: str = "") -> None:
        """Store what was shown and what is pending, if the service keeps the conversation."""
        if self._body.get("store") is False and not self._conversation:
            return
        state = ConversationState(shown=self._shown, pending_calls=pending)
        for conversation_id in filter(None, (final.id, self._conversation)):
            self._store.put(conversation_id, state)
        if opened_as and opened_as != final.id:
            self._store.put(opened_as, replace(state, continues=final.id))

    def new_messages(self) -> tuple[JsonItem, ...]:
        """Return the items since the caller's."""
        return tuple(self._new)

    def text(self, reply: Response) -> str:
        """Return the text."""
        return reply.output_text

    def usage(self, reply: Response) -> BaseModel | None:
        """Return the usage."""
        return reply.usage


def is_our_item(item: ResponseOutputItem, is_ours: IsOurs) -> bool:
    """Return whether *item* is a call that we answer."""
    if item.type == "tool_search_call":
        return item.execution == "client" and is_ours(NATIVE_SEARCH)
    return item.type == "function_call" and is_ours(item.name)


def _conversation_id(conversation: object) -> str:
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    return conversation if isinstance(conversation, str) else ""


def _call_of(item: ResponseOutputItem) -> ToolCall | None:
    if item.type == "function_call":
        return ToolCall(id=item.call_id, name=item.name, arguments=item.arguments)
    if item.type == "tool_search_call" and item.execution == "client":
        arguments = json.dumps(item.arguments or {}, default=str)
        return ToolCall(id=item.call_id or "", name="", arguments=arguments, native=True)
    if item.type in _HOST_ITEMS:
        call_id = str(getattr(item, "call_id", ""))
        return ToolCall(id=call_id, name="", arguments="", foreign=True)
    return None


def _output(answer: ToolAnswer, tools: Sequence[JsonItem]) -> JsonItem:
    if not answer.call.native:
        return {
            "type": "function_call_output",
            "call_id": answer.call.id,
            "output": answer.text,
        }
    return {
        "type": "tool_search_output",
        "call_id": answer.call.id,
        "execution": "client",
        "status": "completed",
        "tools": list(tools),
    }


def _next_body(body: Mapping[str, object], turn: int, tool_list: ToolList) -> dict[str, object]:
    """Return *body* with the tools of *turn*, and from the second turn on with a free choice."""
    changed = dict(body)
    if turn > 1 and "tool_choice" in changed:
        changed["tool_choice"] = _choice_after_first_call(changed["tool_choice"])
    if not tool_list.is_empty:
        changed["tools"] = list(tool_list.tools)
    return changed


def required_tools(choice: object) -> tuple[str, ...]:
    """Return the names of the functions in a ``tool_choice``; () for the plain forms."""
    if not isinstance(choice, Mapping):
        return ()
    listed = _unwrap(choice).get("tools")
    entries = listed if isinstance(listed, list | tuple) else [choice]
    names = (_unwrap(entry).get("name") for entry in entries if isinstance(entry, Mapping))
    return tuple(name for name in names if isinstance(name, str))


def _choice_after_first_call(choice: object) -> object:
    if choice == "required":
        return "auto"
    if not isinstance(choice, Mapping):
        return choice
    if choice.get("type") != "allowed_tools":
        return "auto"
    inner = {**_unwrap(choice), "mode": "auto"}
    return inner if _unwrap(choice) is choice else {**choice, "allowed_tools": inner}


def _unwrap(entry: Mapping[str, object]) -> Mapping[str, object]:
    """Chat Completions nests under the type's own name, Responses does not."""
    inner = entry.get(str(entry.get("type")))
    return inner if isinstance(inner, Mapping) else entry

"""One client call in the format of the Responses API, streamed or not. No I/O.

* Each turn sends all items of this client call again, with the caller's ``previous_response_id``.
  With ``conversation`` the service stores the items, so only new ones are sent.
* A turn that calls both host and gateway tools returns only the host's calls. If the service keeps
  the conversation, the gateway calls are answered with the caller's next request.
* The streamed turns of one client call look like one response.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_output_item import ResponseOutputItem
from pydantic import BaseModel

from gateway.chat.conversation import (
    Conversation,
    ConversationState,
    IsOurs,
    JsonItem,
    LoadTools,
    to_json_items,
)
from gateway.discovery.call_handler import ToolAnswer, ToolCall
from gateway.discovery.render_results import direct_names_in
from gateway.discovery.tool_list import ToolList
from gateway.discovery.wire_formats import NATIVE_SEARCH, messages_of
from gateway.runtime.cache import Cache
from gateway.runtime.json_schema import as_objects

_BEGINNINGS = frozenset({"response.created", "response.queued", "response.in_progress"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
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
"""Types of items, in addition to function calls, that the caller answers, not the service."""


class ResponsesStreamMerger:
    """Merges the events of all turns of one client call into one stream."""

    def __init__(self) -> None:
        self.opened_as = ""
        """Response id in the opening and closing events; "" before the opening events."""
        self._number = 0
        self._items: list[BaseModel] = []
        """Complete items that the caller received in earlier turns."""
        self._begin_turn()

    def _begin_turn(self) -> None:
        self._indices: dict[int, int] = {}
        """The caller's index of each item, keyed by the service's index."""
        self._ours: set[int] = set()
        self._done: dict[int, BaseModel] = {}
        self._beginning: list[ResponseStreamEvent] = []
        self._end: ResponseStreamEvent | None = None

    def next_turn(self) -> None:
        """Start a new turn."""
        self._items += (self._done[index] for index in sorted(self._done))
        self._begin_turn()

    @property
    def is_empty(self) -> bool:
        """True if the turn ended without a closing event."""
        return self._end is None

    def push(self, event: ResponseStreamEvent, is_ours: IsOurs) -> Iterator[ResponseStreamEvent]:
        """Add one event, and yield the events that can be passed on now."""
        if event.type in _BEGINNINGS:
            self._beginning.append(event)
            return
        if event.type in _ENDS:
            self._end = event
            return
        index = getattr(event, "output_index", None)
        if not isinstance(index, int):
            yield from self._begin()
            yield self._renumber(event)
            return
        if event.type == "response.output_item.added" and _is_our_item(event.item, is_ours):
            self._ours.add(index)
        if index in self._ours:
            return
        yield from self._begin()
        new = self._indices.setdefault(index, len(self._items) + len(self._indices))
        if event.type == "response.output_item.done":
            self._done[new] = event.item
        yield self._renumber(event, output_index=new)

    def reply(self) -> Response:
        """Return the whole turn as a reply that was not streamed."""
        reply: Response | None = getattr(self._end, "response", None)
        if reply is None:
            raise RuntimeError("a turn without an end has no reply")
        return reply

    def finish(self, final: Response | None) -> Iterator[ResponseStreamEvent]:
        """Yield the closing event, with *final* as the reply for the caller.

        If the turn was interrupted, *final* is None and there is no closing event.
        """
        yield from self._begin()
        if final is not None and self._end is not None:
            update = {"output": [*self._items, *final.output], "id": self.opened_as or final.id}
            yield self._renumber(self._end, response=final.model_copy(update=update))

    def _begin(self) -> Iterator[ResponseStreamEvent]:
        if not self.opened_as:
            for event in self._beginning:
                self.opened_as = str(getattr(getattr(event, "response", None), "id", ""))
                yield self._renumber(event)
        self._beginning = []

    def _renumber(self, event: ResponseStreamEvent, **update: object) -> ResponseStreamEvent:
        number, self._number = self._number, self._number + 1
        if not update and getattr(event, "sequence_number", None) == number:
            return event
        return event.model_copy(update={"sequence_number": number, **update})


class ResponsesConversation(Conversation[Response]):
    """One client call of ``responses.create``."""

    wire_format = "responses"
    refused = (
        "background",
        "work with found tools, because the client must wait to call them: leave it out",
    )

    def __init__(self, request: Mapping[str, object], store: Cache[ConversationState]) -> None:
        super().__init__(request)
        source = request.get("input")
        items = [{"role": "user", "content": source}] if isinstance(source, str) else source
        self._input = to_json_items(items, "input")
        conversation = request.get("conversation")
        if isinstance(conversation, Mapping):
            conversation = conversation.get("id")
        self._conversation = self.id = str(conversation or "")
        self._previous = str(request.get("previous_response_id") or "")
        self._store = store
        self._state = store.get(self._conversation or self._previous) or ConversationState()
        self.recalled = self._state.shown
        self.pending_calls = self._state.pending_calls
        self._shown: tuple[str, ...] = ()
        self._has_new_input = False
        """True if answers to pending calls were inserted before the caller's input."""
        self._unsent: list[JsonItem] = list(self._input)

    def messages(self) -> Sequence[JsonItem]:
        """Return the known part of the conversation as chat messages."""
        return messages_of([*self._input, *self.new_messages])

    def body(self, turn: int, tool_list: ToolList) -> dict[str, object]:
        """See `Conversation.body`."""
        self._shown = tool_list.proxies
        body = super().body(turn, tool_list)
        if self._state.continues and self._previous:
            body["previous_response_id"] = self._state.continues
        if turn > 1 or self._has_new_input:
            whole = [*self._input, *self.new_messages]
            body["input"] = list(self._unsent) if self._conversation else whole
        self._unsent.clear()
        return body

    def is_readable(self, reply: object) -> bool:
        """Return whether the reply has a list of items."""
        return isinstance(reply, Response) and isinstance(reply.output, list)

    def calls(self, reply: Response) -> tuple[ToolCall, ...]:
        """Return the calls that need an answer; () if the reply was interrupted."""
        if reply.status not in {None, "completed"}:
            return ()
        return tuple(call for item in reply.output if (call := _call_of(item)) is not None)

    def without_our_calls(self, reply: Response, is_ours: IsOurs) -> Response:
        """Return *reply* without gateway calls."""
        output = [item for item in reply.output if not _is_our_item(item, is_ours)]
        if len(output) == len(reply.output):
            return reply
        return reply.model_copy(update={"output": output})

    def add_turn(self, reply: Response, answers: Sequence[ToolAnswer], load: LoadTools) -> None:
        """Add the reply's items, and an item with the answer to each call."""
        outputs = self._outputs(answers, load)
        items: list[JsonItem] = to_json_items(reply.output, "output")
        if self._request.get("store") is False:
            # The service cannot read reasoning items that it has not stored, unless encrypted.
            items = [
                item
                for item in items
                if item.get("type") != "reasoning" or item.get("encrypted_content")
            ]
        self.new_messages += [*items, *outputs]
        self._unsent += outputs

    def answer_pending(self, answers: Sequence[ToolAnswer], load: LoadTools) -> None:
        """Insert the answers before the caller's input. Found tools become proxies."""
        outputs = self._outputs(answers, load)
        self._input = [*outputs, *self._input]
        self._unsent = [*outputs, *self._unsent]
        self._has_new_input = True
        texts = (answer.text for answer in answers if answer.search)
        names = (name for text in texts for name in direct_names_in(text))
        self.recalled = tuple(dict.fromkeys((*self.recalled, *names)))

    def _outputs(self, answers: Sequence[ToolAnswer], load: LoadTools) -> list[JsonItem]:
        """Return the items that answer calls, with the tools that native searches load.

        A tool that is already loaded is loaded again only if the search found no other tools.
        """
        loaded = set() if self._request.get("truncation") == "auto" else self._loaded_names()
        outputs: list[JsonItem] = []
        for answer in answers:
            names = direct_names_in(answer.text) if answer.call.native else ()
            new = [name for name in names if name not in loaded] or names
            loaded.update(new)
            outputs.append(_output(answer, load(new)))
        return outputs

    def _loaded_names(self) -> set[str]:
        items = (*self._input, *self.new_messages)
        searches = (item for item in items if item.get("type") == "tool_search_output")
        return {
            str(tool.get("name")) for item in searches for tool in as_objects(item.get("tools"))
        }

    def store(self, final: Response, pending: tuple[ToolCall, ...], *, opened_as: str = "") -> None:
        """Store proxies and pending calls, if the service keeps the conversation."""
        if self._request.get("store") is False and not self._conversation:
            return
        state = ConversationState(shown=self._shown, pending_calls=pending)
        for conversation_id in filter(None, (final.id, self._conversation)):
            self._store.put(conversation_id, state)
        if opened_as and opened_as != final.id:
            self._store.put(opened_as, replace(state, continues=final.id))

    def finish_reasons(self, reply: Response) -> tuple[str, ...]:
        """Return the finish reason, in Chat Completions' words if the reply is completed."""
        if reply.status == "completed":
            return ("tool_calls" if self.calls(reply) else "stop",)
        reason = reply.incomplete_details and reply.incomplete_details.reason
        return tuple(filter(None, [reason or reply.status]))

    def text(self, reply: Response) -> str:
        """Return the output text."""
        return reply.output_text


def _is_our_item(item: ResponseOutputItem, is_ours: IsOurs) -> bool:
    call = _call_of(item)
    return call is not None and not call.foreign and is_ours(call.name)


def _call_of(item: ResponseOutputItem) -> ToolCall | None:
    if item.type == "function_call":
        return ToolCall(id=item.call_id, name=item.name, arguments=item.arguments)
    if item.type == "tool_search_call" and item.execution == "client":
        arguments = json.dumps(item.arguments or {}, default=str)
        return ToolCall(id=item.call_id or "", name=NATIVE_SEARCH, arguments=arguments)
    if item.type in _HOST_ITEMS:
        call_id = str(getattr(item, "call_id", ""))
        return ToolCall(id=call_id, name="", arguments="", foreign=True)
    return None


def _output(answer: ToolAnswer, tools: Sequence[JsonItem]) -> JsonItem:
    if not answer.call.native:
        return {"type": "function_call_output", "call_id": answer.call.id, "output": answer.text}
    return {
        "type": "tool_search_output",
        "call_id": answer.call.id,
        "execution": "client",
        "status": "completed",
        "tools": list(tools),
    }

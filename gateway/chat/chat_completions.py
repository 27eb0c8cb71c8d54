"""One client call in the format of Chat Completions, streamed or not. No I/O.

* With several choices (``n``), only the tool calls of the first choice are answered. The other
  choices keep their text and their calls of the host's tools.
* The streamed turns of one client call look like one completion. Text is passed on immediately.
  Tool calls and the end of a turn wait until it is known who answers the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion import Choice as WholeChoice
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta
from pydantic import BaseModel

from gateway.chat.conversation import Conversation, IsOurs, JsonItem, LoadTools, to_json_items
from gateway.discovery.call_handler import ToolAnswer, ToolCall
from gateway.discovery.tool_list import ToolList
from gateway.runtime.json_schema import as_objects

_REPEATED_FIELDS = frozenset({"id", "name", "role", "type"})
"""Fields of a delta that some services repeat in every chunk, and that are therefore replaced."""


class ChatStreamMerger:
    """Merges the chunks of all turns of one client call into one stream."""

    opened_as = ""
    """Empty, because services of Chat Completions do not store conversations."""

    def __init__(self) -> None:
        self._chunks: list[ChatCompletionChunk] = []
        self._first: ChatCompletionChunk | None = None
        """First chunk of the whole stream that has choices; None before that."""
        self._usage: ChatCompletionChunk | None = None
        """Last chunk that has a usage; None if there was none."""
        self._opened: set[int] = set()
        """Indices of the choices whose beginning was already passed on."""

    def next_turn(self) -> None:
        """Start a new turn."""
        self._chunks = []

    @property
    def is_empty(self) -> bool:
        """True if the turn had no chunks."""
        return not self._chunks

    def push(
        self, chunk: ChatCompletionChunk, _is_ours: IsOurs | None = None
    ) -> Iterator[ChatCompletionChunk]:
        """Add one chunk, and yield the part of it that can be passed on now."""
        self._chunks.append(chunk)
        self._usage = chunk if chunk.usage is not None else self._usage
        self._first = chunk if self._first is None and chunk.choices else self._first
        now = [part for choice in chunk.choices if (part := self._text_part(choice)) is not None]
        # A chunk without choices contains the usage, or facts about the request (Azure).
        if now or not (chunk.choices or chunk.usage):
            yield self._restamp(chunk, now)

    def reply(self) -> ChatCompletion:
        """Return the whole turn as a reply that was not streamed."""
        # Like the SDK, do not validate, because a missing end is not an error.
        return ChatCompletion.construct(None, **join_chunks(self._chunks))

    def finish(self, final: ChatCompletion | None) -> Iterator[ChatCompletionChunk]:
        """Yield the tool calls and the end of each choice of *final*, and the usage."""
        if final is None:
            return
        last = next((chunk for chunk in reversed(self._chunks) if chunk.choices), self._chunks[-1])
        parts = (part for choice in final.choices for part in _closing_parts(choice))
        chunks = [self._restamp(last, [part]) for part in parts]
        if self._usage is not None:
            if not (chunks and self._usage.choices):
                chunks.append(self._restamp(self._usage, []))
            chunks[-1] = chunks[-1].model_copy(update={"usage": final.usage})
        yield from chunks

    def _text_part(self, choice: Choice) -> Choice | None:
        # Some services omit the delta, although its type is not optional.
        sent: ChoiceDelta | None = choice.delta
        delta = {} if sent is None else sent.to_dict(warnings=False)
        delta.pop("tool_calls", None)
        if choice.index in self._opened:
            delta.pop("role", None)
        self._opened.add(choice.index)
        if not any(
            value or (value is not None and name != "content") for name, value in delta.items()
        ):
            return None
        fields = {**choice.to_dict(warnings=False), "delta": delta, "finish_reason": None}
        return Choice.construct(None, **fields)

    def _restamp(self, chunk: ChatCompletionChunk, choices: list[Choice]) -> ChatCompletionChunk:
        first = self._first or chunk
        stamp = {"id": first.id, "created": first.created, "choices": choices}
        usage = {} if chunk.usage is None else {"usage": None}
        return chunk.model_copy(update={**stamp, **usage})


def _closing_parts(choice: WholeChoice) -> Iterator[Choice]:
    calls = [
        {"index": index, **call.to_dict()}
        for index, call in enumerate(choice.message.tool_calls or ())
    ]
    ends: list[dict[str, object]] = [{"delta": {"tool_calls": calls}}] if calls else []
    if choice.finish_reason is not None:
        ends.append({"delta": {}, "finish_reason": choice.finish_reason})
    for end in ends:
        fields = {"index": choice.index, "finish_reason": None, **end}
        yield Choice.construct(None, **{**(choice.model_extra or {}), **fields})


def join_chunks(chunks: Iterable[ChatCompletionChunk]) -> dict[str, Any]:
    """Join chunks into the fields of a whole completion.

    Texts are concatenated, tool calls are joined by index, and other fields keep the last value.
    """
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        fields = chunk.to_dict(warnings=False)
        for part in as_objects(fields.pop("choices", None)):
            choice = choices.setdefault(part["index"], {"message": {}})
            _merge_delta(choice["message"], part.pop("delta", None) or {})
            if logprobs := part.pop("logprobs", None):
                _merge_delta(choice.setdefault("logprobs", {}), logprobs)
            choice.update({key: value for key, value in part.items() if value is not None})
        whole.update({key: value for key, value in fields.items() if value is not None})
    for choice in choices.values():
        calls = choice["message"].get("tool_calls")
        if calls is not None:
            choice["message"]["tool_calls"] = [calls[index] for index in sorted(calls)]
    ordered = [choices[index] for index in sorted(choices)]
    return {**whole, "object": "chat.completion", "choices": ordered}


def _merge_delta(target: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key, value in delta.items():
        before = target.get(key)
        if key == "tool_calls":
            calls = target.setdefault(key, {})
            for fragment in as_objects(value):
                index = fragment.pop("index", len(calls))
                _merge_delta(calls.setdefault(index, {}), fragment)
        elif isinstance(value, dict) and isinstance(before, dict):
            _merge_delta(before, value)
        elif value is not None or key not in target:
            grows = isinstance(value, str | list) and type(before) is type(value)
            target[key] = before + value if grows and key not in _REPEATED_FIELDS else value


class ChatConversation(Conversation[ChatCompletion]):
    """One client call of ``chat.completions.create``."""

    wire_format = "chat"
    refused = ("functions", "be sent together with found tools: pass them as 'tools'")

    def __init__(self, request: Mapping[str, object]) -> None:
        super().__init__(request)
        self._initial = to_json_items(request.get("messages"), "messages")

    def messages(self) -> Sequence[JsonItem]:
        """Return the messages of the request, followed by the new ones."""
        return [*self._initial, *self.new_messages]

    def body(self, turn: int, tool_list: ToolList) -> dict[str, object]:
        """See `Conversation.body`."""
        body = super().body(turn, tool_list)
        if turn > 1:
            body["messages"] = self.messages()
        return body

    def is_readable(self, reply: object) -> bool:
        """Return whether the reply is a list of choices, each with a message."""
        choices = reply.choices if isinstance(reply, ChatCompletion) else None
        return isinstance(choices, list) and all(
            isinstance(getattr(choice, "message", None), BaseModel) for choice in choices
        )

    def calls(self, reply: ChatCompletion) -> tuple[ToolCall, ...]:
        """Return the tool calls of the first choice."""
        return tuple(
            ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
            if call.type == "function"
            else ToolCall(id=call.id, name="", arguments="", foreign=True)
            for choice in reply.choices[:1]
            for call in choice.message.tool_calls or ()
        )

    def without_our_calls(self, reply: ChatCompletion, is_ours: IsOurs) -> ChatCompletion:
        """Remove gateway calls. A choice that loses all its calls gets the finish reason "stop"."""
        choices = [_choice_without_our_calls(choice, is_ours) for choice in reply.choices]
        if all(new is old for new, old in zip(choices, reply.choices, strict=True)):
            return reply
        return reply.model_copy(update={"choices": choices})

    def add_turn(
        self, reply: ChatCompletion, answers: Sequence[ToolAnswer], _load: LoadTools
    ) -> None:
        """Add the message of the first choice, and a tool message for each answer."""
        message = reply.choices[0].message
        self.new_messages.append(message.model_dump(exclude_none=True, exclude_unset=True))
        self.new_messages += [
            {"role": "tool", "tool_call_id": answer.call.id, "content": answer.text}
            for answer in answers
        ]

    def finish_reasons(self, reply: ChatCompletion) -> tuple[str, ...]:
        """Return the finish reasons of all choices."""
        return tuple(choice.finish_reason for choice in reply.choices if choice.finish_reason)

    def text(self, reply: ChatCompletion) -> str:
        """Return the text of the first choice."""
        return (reply.choices[0].message.content or "") if reply.choices else ""


def _choice_without_our_calls(choice: WholeChoice, is_ours: IsOurs) -> WholeChoice:
    calls = choice.message.tool_calls or []
    theirs = [call for call in calls if call.type != "function" or not is_ours(call.function.name)]
    if len(theirs) == len(calls):
        return choice
    message = choice.message.model_copy(update={"tool_calls": theirs or None})
    reason = choice.finish_reason if theirs or choice.finish_reason != "tool_calls" else "stop"
    return choice.model_copy(update={"message": message, "finish_reason": reason})

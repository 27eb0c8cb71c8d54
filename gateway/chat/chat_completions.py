"""A conversation in the wire format of Chat Completions, whole or streamed. No I/O.

* Of several choices (``n``) the first decides whether the loop goes on. Of the others only texts
  and calls of the host's tools are returned.
* The streamed turns of one call look like one completion: one id, one beginning, one end, and the
  usage of all turns in the last chunk, if the service tells any. Text passes as it comes. Tool
  calls and the end of the turn wait until it is known whose tools are called.
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

_SAID_ONCE = frozenset({"id", "name", "role", "type"})
"""Fields that a service that repeats them does not extend."""


class ChatStreamMerger:
    """The chunks of one call, over all its turns."""

    opened_as = ""
    """The caller's id of the stream means nothing to the service."""

    def __init__(self) -> None:
        self._chunks: list[ChatCompletionChunk] = []
        """Those of the present turn."""
        self._first: ChatCompletionChunk | None = None
        """The first chunk of the whole stream, once there is one."""
        self._usage: ChatCompletionChunk | None = None
        """The last chunk with a usage."""
        self._opened: set[int] = set()
        """The indices of the choices that have begun."""

    def next_turn(self) -> None:
        """Begin another turn."""
        self._chunks = []

    @property
    def is_empty(self) -> bool:
        """Whether the turn brought nothing at all."""
        return not self._chunks

    def push(
        self, chunk: ChatCompletionChunk, _is_ours: IsOurs | None = None
    ) -> Iterator[ChatCompletionChunk]:
        """Take one chunk and yield what may be passed on."""
        self._chunks.append(chunk)
        self._usage = chunk if chunk.usage is not None else self._usage
        self._first = chunk if self._first is None and chunk.choices else self._first
        now = [part for choice in chunk.choices if (part := self._text_part(choice)) is not None]
        # A chunk without any choice is about the request, as Azure sends it, or a usage.
        if now or not (chunk.choices or chunk.usage):
            yield self._restamp(chunk, now)

    def reply(self) -> ChatCompletion:
        """Return the whole turn as if it had not been streamed."""
        # Built as the SDK builds what it receives: a missing end is no error.
        return ChatCompletion.construct(None, **join_chunks(self._chunks))

    def finish(self, final: ChatCompletion | None) -> Iterator[ChatCompletionChunk]:
        """Yield the calls and the end of each choice of *final*; the usage comes last."""
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
        """Return the part of a choice that is not about tools or the end, if there is one."""
        # Some services leave the delta out, whatever the type says.
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
    """Join chunks to the whole completion, by the rules of the format: texts grow, calls are
    distinguished by their index, of everything else the last value counts.
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
            target[key] = before + value if grows and key not in _SAID_ONCE else value


class ChatConversation(Conversation[ChatCompletion]):
    """One call of ``chat.completions``."""

    wire_format = "chat"
    refused = ("functions", "go out together with found tools: give them as 'tools'")

    def __init__(self, request: Mapping[str, object]) -> None:
        super().__init__(request)
        self._initial = to_json_items(request.get("messages"), "messages")

    def messages(self) -> Sequence[JsonItem]:
        """Return the messages."""
        return [*self._initial, *self.new_messages]

    def body(self, turn: int, tool_list: ToolList) -> dict[str, object]:
        """Write the request."""
        body = super().body(turn, tool_list)
        if turn > 1:
            body["messages"] = self.messages()
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
        self.new_messages.append(message.model_dump(exclude_none=True, exclude_unset=True))
        self.new_messages += [
            {"role": "tool", "tool_call_id": answer.call.id, "content": answer.text}
            for answer in answers
        ]

    def finish_reasons(self, reply: ChatCompletion) -> tuple[str, ...]:
        """Return those of all choices."""
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

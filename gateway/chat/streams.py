"""Streamed turns: what may go to the caller at once, and what must wait. No I/O.

The turns of one call of the wrapper look like one reply: one id, one beginning, one end, and the
usage of all turns where the service tells that of the last.

* Chat Completions: text passes as it comes. Tool calls and the end of the turn wait until it is
  known whose tools are called.
* Responses API: events pass as they come, but for those of calls of ours; what stands behind an
  item of ours is numbered anew. The beginning waits for the first visible event, so that silent
  turns leave no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion import Choice as WholeChoice
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel

from gateway.chat.conversation import IsOurs
from gateway.chat.formats import is_our_item

_SAID_ONCE = frozenset({"id", "name", "role", "type"})
"""Fields that a service that repeats them does not extend."""
_BEGINNINGS = frozenset({"response.created", "response.queued", "response.in_progress"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class StreamMerger(Protocol):
    """One streamed turn, in either format."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no reply in it."""

    @property
    def opened_as(self) -> str:
        """The id that the caller got, if it means anything to the service; else ""."""

    def push(self, event: Any, is_ours: IsOurs) -> Iterator[Any]:
        """Take one event and yield what may be passed on."""

    def reply(self) -> Any:
        """Return the whole turn as if it had not been streamed."""

    def finish(self, final: Any) -> Iterator[Any]:
        """Yield what waited, now that *final* goes to the caller; None for an empty turn."""

    def next_turn(self) -> StreamMerger:
        """Return the merger of the turn after this one."""


class ChatStreamMerger:
    """The chunks of one turn of Chat Completions."""

    opened_as = ""

    def __init__(self, previous: ChatStreamMerger | None = None) -> None:
        self._chunks: list[ChatCompletionChunk] = []
        self._usages: list[ChatCompletionChunk] = []
        """Chunks that hold nothing but a usage."""
        self._is_first_turn = previous is None
        self._owes_usage = False
        """Whether a usage came with what waits."""
        self.opened: set[int] = set(previous.opened) if previous else set()
        """The indices of the choices that have begun, in this turn or before."""
        self.first: ChatCompletionChunk | None = previous.first if previous else None
        """The first chunk of the whole stream, once there is one."""

    def next_turn(self) -> ChatStreamMerger:
        """Return the merger of the turn after this one."""
        return ChatStreamMerger(self)

    @property
    def is_empty(self) -> bool:
        """Whether the turn brought nothing at all."""
        return not self._chunks

    def push(
        self, chunk: ChatCompletionChunk, _is_ours: IsOurs | None = None
    ) -> Iterator[ChatCompletionChunk]:
        """Take one chunk and yield what may be passed on."""
        self._chunks.append(chunk)
        if not chunk.choices:
            if chunk.usage is not None:
                self._usages.append(chunk)
            else:
                # About the request, as Azure sends it: there is no choice in it.
                yield chunk if self._is_first_turn else self._restamp(chunk, [])
            return
        self.first = self.first or chunk
        waits = any(choice.finish_reason or _has_calls(choice) for choice in chunk.choices)
        now = [part for choice in chunk.choices if (part := self._text_part(choice)) is not None]
        if now:
            yield self._restamp(chunk, now, usage=None if waits else chunk.usage)
        self._owes_usage |= chunk.usage is not None and (waits or not now)

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
        chunks = [self._restamp(last, [part], usage=None) for part in parts]
        chunks += [self._restamp(chunk, [], usage=chunk.usage) for chunk in self._usages]
        shows_usage = self._owes_usage or self._usages or not self._is_first_turn
        if chunks and final.usage is not None and shows_usage:
            # Those who read a stream take the last usage for that of the whole.
            chunks[-1] = chunks[-1].model_copy(update={"usage": final.usage})
        yield from chunks

    def _text_part(self, choice: Choice) -> Choice | None:
        """Return the part of a choice that is not about tools or the end, if there is one."""
        # Some services leave the delta out, whatever the type says.
        sent: ChoiceDelta | None = choice.delta
        delta = {} if sent is None else sent.to_dict(warnings=False)
        delta.pop("tool_calls", None)
        if choice.index in self.opened:
            delta.pop("role", None)
        self.opened.add(choice.index)
        if not any(
            value or (value is not None and name != "content") for name, value in delta.items()
        ):
            return None
        fields = {**choice.to_dict(warnings=False), "delta": delta, "finish_reason": None}
        return Choice.construct(None, **fields)

    def _restamp(
        self, chunk: ChatCompletionChunk, choices: list[Choice], **update: object
    ) -> ChatCompletionChunk:
        first = self.first or chunk
        stamp = {"id": first.id, "created": first.created, "choices": choices}
        return chunk.model_copy(update={**stamp, **update})


def _has_calls(choice: Choice) -> bool:
    delta: ChoiceDelta | None = choice.delta
    return delta is not None and bool(delta.tool_calls)


def _closing_parts(choice: WholeChoice) -> Iterator[Choice]:
    calls = [
        {"index": index, **call.to_dict()}
        for index, call in enumerate(choice.message.tool_calls or ())
    ]
    ends: list[tuple[dict[str, Any], str | None]] = [({"tool_calls": calls}, None)] if calls else []
    if choice.finish_reason is not None:
        ends.append(({}, choice.finish_reason))
    for delta, reason in ends:
        fields = {"index": choice.index, "delta": delta, "finish_reason": reason}
        yield Choice.construct(None, **{**(choice.model_extra or {}), **fields})


def join_chunks(chunks: Iterable[ChatCompletionChunk]) -> dict[str, Any]:
    """Join chunks to the whole completion, by the rules of the format: texts grow, calls are
    distinguished by their index, of everything else the last value counts.
    """
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        fields = chunk.to_dict(warnings=False)
        for part in _objects(fields.pop("choices", None)):
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
            for fragment in _objects(value):
                index = fragment.pop("index", len(calls))
                _merge_delta(calls.setdefault(index, {}), fragment)
        elif isinstance(value, dict) and isinstance(before, dict):
            _merge_delta(before, value)
        elif value is not None or key not in target:
            grows = isinstance(value, str | list) and type(before) is type(value)
            target[key] = before + value if grows and key not in _SAID_ONCE else value


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


class ResponsesStreamMerger:
    """The events of one turn of the Responses API.

    Args:
        number: Of its first event.
        items: What went to the caller, whole, in earlier turns.
        opened_as: The id that the caller got; "" if nothing has begun. A turn that showed something
            and then called has lent its id to the whole.
    """

    def __init__(
        self, *, number: int = 0, items: Sequence[BaseModel] = (), opened_as: str = ""
    ) -> None:
        self.opened_as = opened_as
        self._number = number
        self._items = tuple(items)
        self._indices: dict[int, int] = {}
        """The caller's index of each item, by the service's."""
        self._ours: set[int] = set()
        self._done: dict[int, BaseModel] = {}
        self._beginning: list[ResponseStreamEvent] = []
        self._end: ResponseStreamEvent | None = None

    def next_turn(self) -> ResponsesStreamMerger:
        """Return the merger of the turn after this one."""
        items = (*self._items, *(self._done[index] for index in sorted(self._done)))
        return ResponsesStreamMerger(number=self._number, items=items, opened_as=self.opened_as)

    @property
    def is_empty(self) -> bool:
        """Whether the turn was broken off."""
        return self._end is None

    def push(self, event: ResponseStreamEvent, is_ours: IsOurs) -> Iterator[ResponseStreamEvent]:
        """Take one event and yield what may be passed on."""
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
        if event.type == "response.output_item.added" and is_our_item(event.item, is_ours):
            self._ours.add(index)
        if index in self._ours:
            return
        yield from self._begin()
        new = self._indices.setdefault(index, len(self._items) + len(self._indices))
        if event.type == "response.output_item.done":
            self._done[new] = event.item
        yield self._renumber(event, output_index=new)

    def reply(self) -> Response:
        """Return the whole turn as if it had not been streamed."""
        reply: Response | None = getattr(self._end, "response", None)
        if reply is None:
            raise RuntimeError("a turn without an end has no reply")
        return reply

    def finish(self, final: Response | None) -> Iterator[ResponseStreamEvent]:
        """Yield the end, now that *final* goes to the caller; None for a turn without an end."""
        yield from self._begin()
        if final is not None and self._end is not None:
            update = {"output": [*self._items, *final.output], "id": self.opened_as or final.id}
            yield self._renumber(self._end, response=final.model_copy(update=update))

    def _begin(self) -> Iterator[ResponseStreamEvent]:
        """Yield the beginning that waits; of a later turn only if nothing has begun yet."""
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

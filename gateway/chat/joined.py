"""One streamed turn: what may go to the caller at once, and what must wait. No I/O.

* Text is passed on as it comes, in whatever pieces.
* Tool calls and the end of the turn wait until it is known whose tools are called.
* The turns of one call of the wrapper look like one completion: one id, one role, one end, and the
  usage of all turns where the service tells that of the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion import Choice as Answered
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta

from gateway.chat.wire import IsOurs

_ONCE = frozenset({"id", "name", "role", "type"})
"""Fields that are said once; a service that repeats them says the same."""


class JoinedTurn:
    """The chunks of one turn."""

    def __init__(self, before: JoinedTurn | None = None) -> None:
        """Begin a turn that follows *before*; None at the start of the whole stream."""
        self._read: list[ChatCompletionChunk] = []
        self._waiting: list[ChatCompletionChunk] = []
        self._usages: list[ChatCompletionChunk] = []
        self._whole: ChatCompletion | None = None
        self._follows = before is not None
        self.opened: set[int] = set(before.opened) if before else set()
        """The numbers of the choices that have begun, in this turn or before."""
        self.first: ChatCompletionChunk | None = before.first if before else None
        """The first chunk of the whole stream, once there is one."""

    def again(self) -> JoinedTurn:
        """Begin the turn after this one."""
        return JoinedTurn(self)

    @property
    def began_as(self) -> str:
        """The id that the caller was given, if it means anything to the service; else empty."""
        return ""

    @property
    def empty(self) -> bool:
        """Whether the turn brought nothing at all."""
        return not self._read

    def feed(
        self, chunk: ChatCompletionChunk, _is_ours: IsOurs | None = None
    ) -> Iterator[ChatCompletionChunk]:
        """Take one chunk and give what may be passed on."""
        # Chunks are joined when the turn is over: the caller waits for this one, not for that.
        self._read.append(chunk)
        if chunk.choices:
            yield from self._taken(_whole(chunk))
        elif chunk.usage is not None:
            self._usages.append(chunk)
        else:
            # What the service says of the request, as Azure does: there is no choice in it.
            yield self._same(chunk, chunk.choices) if self._follows else chunk

    def _taken(self, chunk: ChatCompletionChunk) -> Iterator[ChatCompletionChunk]:
        if self.first is None:
            self.first = chunk
        if self._same_stream(chunk) and (plain := self._plain(chunk)) is not None:
            self.opened.update(choice.index for choice in chunk.choices)
            if plain:
                yield chunk
            else:
                self._waiting.append(chunk)
            return
        now = [_spoken(each, keep_role=each.index not in self.opened) for each in chunk.choices]
        later = [choice for choice in map(_held, chunk.choices) if choice is not None]
        self.opened.update(choice.index for choice in chunk.choices)
        if later:
            self._waiting.append(self._same(chunk, later))
        spoken = [choice for choice in now if choice is not None]
        if spoken:
            said = self._same(chunk, spoken)
            yield _silent(said) if later else said
        if not (later or spoken) and chunk.usage is not None:
            self._usages.append(chunk)

    def _same_stream(self, chunk: ChatCompletionChunk) -> bool:
        """Whether *chunk* looks to the caller like the chunks before it."""
        return self.first is not None and self.first.id == chunk.id

    def _plain(self, chunk: ChatCompletionChunk) -> bool | None:
        """Whether the whole of *chunk* may go on (True) or must wait (False); None: it is mixed."""
        kinds = {_kind(choice, begun=choice.index in self.opened) for choice in chunk.choices}
        return kinds.pop() if len(kinds) == 1 else None

    def reply(self) -> ChatCompletion:
        """Give the whole turn as if it had not been streamed."""
        # Built as the SDK builds what it receives: a stream that never said its end is no error.
        whole = ChatCompletion.construct(None, **joined(self._read))
        self._whole = whole
        return whole

    def ending(self, final: ChatCompletion) -> Iterator[ChatCompletionChunk]:
        """Give what waited, now that *final* goes to the caller: the turn as the loop let it
        through, so that calls of ours may be gone from it. The usage comes last, if the service
        sent one.
        """
        whole = self._whole or final
        kept = {choice.index: _ids(choice) for choice in whole.choices}
        changed = [choice for choice in final.choices if _ids(choice) != kept.get(choice.index)]
        told = list(self._told_again(changed))
        told += [self._same(each, each.choices) for each in self._usages]
        others = self._follows or changed
        if told and final.usage is not None and (others or told[-1].usage is not None):
            # Those who read a stream take the last usage for that of the whole.
            told[-1] = told[-1].model_copy(update={"usage": final.usage})
        yield from told

    def rest(self) -> Iterator[ChatCompletionChunk]:
        """Give what waited, of a turn that brought nothing: nothing."""
        yield from ()

    def _told_again(self, changed: Sequence[Answered]) -> Iterator[ChatCompletionChunk]:
        """Give what waited. Of a choice that lost calls of ours, say the calls that are left in
        one chunk, numbered anew, and then its end.
        """
        ends = {choice.index: choice.finish_reason for choice in changed}
        for choice in changed:
            calls = [
                {"index": index, **call.to_dict()}
                for index, call in enumerate(choice.message.tool_calls or ())
            ]
            if calls:
                delta = {"index": choice.index, "delta": {"tool_calls": calls}}
                one = Choice.construct(None, **delta, finish_reason=None)
                yield _silent(self._same(self._waiting[0], [one]))
        for chunk in self._waiting:
            left = [
                _end(each, ends[each.index]) if each.index in ends else each
                for each in chunk.choices
            ]
            choices = [choice for choice in left if choice is not None]
            if choices:
                yield chunk if not changed else self._same(chunk, choices)

    def _same(self, chunk: ChatCompletionChunk, choices: list[Choice]) -> ChatCompletionChunk:
        first = self.first or chunk
        update = {"id": first.id, "created": first.created, "choices": choices}
        return chunk.model_copy(update=update)


def joined(chunks: Iterable[ChatCompletionChunk]) -> dict[str, Any]:
    """Put chunks together as the whole completion, by the rules of the format: texts grow, calls
    are told apart by their index, everything else is as it was said last.
    """
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        said = chunk.to_dict(warnings=False)
        for piece in _listed(said.pop("choices", None)):
            choice = choices.setdefault(piece["index"], {"message": {}})
            _grow(choice["message"], piece.pop("delta", None) or {})
            _grow_logprobs(choice, piece.pop("logprobs", None))
            choice.update({key: value for key, value in piece.items() if value is not None})
        whole.update({key: value for key, value in said.items() if value is not None})
    for choice in choices.values():
        calls = choice["message"].get("tool_calls")
        if calls is not None:
            choice["message"]["tool_calls"] = [calls[index] for index in sorted(calls)]
    listed = [choices[index] for index in sorted(choices)]
    return {**whole, "object": "chat.completion", "choices": listed}


def _grow(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key, value in delta.items():
        known = message.get(key)
        if key == "tool_calls":
            calls = message.setdefault(key, {})
            for fragment in _listed(value):
                index = fragment.pop("index", len(calls))
                _grow(calls.setdefault(index, {}), fragment)
        elif isinstance(value, dict) and isinstance(known, dict):
            _grow(known, value)
        elif value is not None or key not in message:
            message[key] = value if key in _ONCE else _after(known, value)


def _after(known: Any, value: Any) -> Any:
    """Texts and lists grow; of everything else the last word holds."""
    grows = isinstance(value, str | list) and type(known) is type(value)
    return known + value if grows else value


def _grow_logprobs(choice: dict[str, Any], said: object) -> None:
    if isinstance(said, dict):
        _grow(choice.setdefault("logprobs", {}), said)


def _listed(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _whole(chunk: ChatCompletionChunk) -> ChatCompletionChunk:
    """Fill in the deltas that a service left out."""
    if all(choice.delta is not None for choice in chunk.choices):
        return chunk
    choices = [
        each if each.delta is not None else each.model_copy(update={"delta": ChoiceDelta()})
        for each in chunk.choices
    ]
    return chunk.model_copy(update={"choices": choices})


def _kind(choice: Choice, *, begun: bool) -> bool | None:
    """True for text or a beginning alone, False for nothing but pieces of calls, None for anything
    else.
    """
    delta = choice.delta
    if choice.finish_reason is not None or (begun and delta.role is not None):
        return None
    if delta.tool_calls is None and (delta.content or delta.role is not None):
        return True
    silent = delta.role is None and delta.content is None and delta.refusal is None
    silent = silent and delta.function_call is None and not delta.model_extra
    return False if silent and delta.tool_calls else None


def _spoken(choice: Choice, *, keep_role: bool) -> Choice | None:
    """The part of a choice that is not about tools or the end; None if there is none."""
    delta = choice.delta.to_dict(warnings=False)
    delta.pop("tool_calls", None)
    if not keep_role:
        delta.pop("role", None)
    if not any(value or (name != "content" and value is not None) for name, value in delta.items()):
        return None
    return _part(choice, delta, finish_reason=None)


def _held(choice: Choice) -> Choice | None:
    """The part of a choice that waits; None if there is none."""
    if not choice.delta.tool_calls:
        return _end(choice)
    calls = choice.delta.to_dict(warnings=False)["tool_calls"]
    return _part(choice, {"tool_calls": calls}, finish_reason=choice.finish_reason)


def _end(choice: Choice, reason: str | None = None) -> Choice | None:
    """The end of a choice alone; None if it goes on."""
    if choice.finish_reason is None:
        return None
    return _part(choice, {}, finish_reason=reason or choice.finish_reason)


def _silent(chunk: ChatCompletionChunk) -> ChatCompletionChunk:
    """Give *chunk* without a usage, which another part of it tells."""
    return chunk if chunk.usage is None else chunk.model_copy(update={"usage": None})


def _ids(choice: Answered) -> list[str]:
    return [call.id for call in choice.message.tool_calls or ()]


def _part(choice: Choice, delta: Mapping[str, object], *, finish_reason: str | None) -> Choice:
    """The choice with less in it. What the server did not say stays unsaid."""
    kept = choice.to_dict(warnings=False)
    return Choice.construct(None, **{**kept, "delta": delta, "finish_reason": finish_reason})

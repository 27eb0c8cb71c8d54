"""One streamed turn: what may go to the caller at once, and what waits. No I/O.

* Text is passed on as it comes, however it is cut.
* Tool calls and the end of the turn wait until it is known whose calls they are.
* The turns of one call of the wrapper look like one completion: same id, one role, one end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion import Choice as Answered
from openai.types.chat.chat_completion_chunk import Choice
from pydantic import BaseModel

from gateway.chat.wire import IsOurs


class JoinedTurn:
    """The chunks of one turn."""

    def __init__(self, before: JoinedTurn | None = None) -> None:
        """Begin a turn that follows *before*; None at the start of the whole stream."""
        self._read: list[ChatCompletionChunk] = []
        self._waiting: list[ChatCompletionChunk] = []
        self._usage: ChatCompletionChunk | None = None
        self._whole: ChatCompletion | None = None
        self._chosen = False
        self.opened: set[int] = set(before.opened) if before else set()
        """The choices that have begun, in this turn or before."""
        self.first: ChatCompletionChunk | None = before.first if before else None
        """The first chunk of the whole stream, once there was one."""

    def again(self) -> JoinedTurn:
        """Begin the turn after this one."""
        return JoinedTurn(self)

    @property
    def began_as(self) -> str:
        """The id that the caller was given, if it means anything to the service."""
        return ""

    @property
    def empty(self) -> bool:
        """Whether the turn brought no choice at all: there is nothing to take."""
        return not self._chosen

    def feed(
        self, chunk: ChatCompletionChunk, _is_ours: IsOurs | None = None
    ) -> Iterator[ChatCompletionChunk]:
        """Take one chunk and give what may be passed on."""
        if self.first is None:
            self.first = chunk
        # Joined when the turn is over: nobody waits for that, while somebody waits for the chunk.
        self._read.append(chunk)
        if not chunk.choices:
            self._usage = chunk
            return
        if self._plain(chunk):
            self._chosen = True
            self.opened.update(choice.index for choice in chunk.choices)
            yield chunk
            return
        now = [_spoken(each, keep_role=each.index not in self.opened) for each in chunk.choices]
        later = [choice for choice in map(_held, chunk.choices) if choice is not None]
        self.opened.update(choice.index for choice in chunk.choices)
        self._chosen = True
        if later:
            self._waiting.append(self._same(chunk, later))
        spoken = [choice for choice in now if choice is not None]
        if spoken:
            yield self._same(chunk, spoken)

    def _plain(self, chunk: ChatCompletionChunk) -> bool:
        """Whether *chunk* may go on as it is: text, and of the first turn."""
        return (
            self.first is not None
            and self.first.id == chunk.id
            and all(
                choice.delta.content
                and choice.delta.tool_calls is None
                and choice.finish_reason is None
                and (choice.delta.role is None or choice.index not in self.opened)
                for choice in chunk.choices
            )
        )

    def reply(self) -> ChatCompletion:
        """Give the whole turn as if it had not been streamed."""
        state = ChatCompletionStreamState()
        for chunk in self._read:
            state.handle_chunk(chunk)
        found = state.current_completion_snapshot.to_dict(warnings=False)
        # Built as the SDK builds what it receives: a stream that never said its end is no error.
        whole = ChatCompletion.construct(None, **{**found, "object": "chat.completion"})
        for choice in whole.choices:
            for call in choice.message.tool_calls or ():
                _forget(call, "index")
                if call.type == "function":
                    _forget(call.function, "parsed_arguments")
        self._whole = whole
        return whole

    def ending(self, final: ChatCompletion, *, usage: bool) -> Iterator[ChatCompletionChunk]:
        """Give what waited, now that *final* goes to the caller.

        Args:
            final: The turn as the loop let it through: calls of ours may be gone from it.
            usage: Whether the caller asked for a last chunk with the usage.
        """
        whole = self._whole or final
        kept = {choice.index: _ids(choice) for choice in whole.choices}
        changed = [choice for choice in final.choices if _ids(choice) != kept.get(choice.index)]
        yield from self._told_again(changed)
        if usage and self._usage is not None:
            yield self._same(self._usage, [], usage=final.usage)

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
                yield self._same(self._waiting[0], [one])
        for chunk in self._waiting:
            left = [
                _end(each, ends[each.index]) if each.index in ends else each
                for each in chunk.choices
            ]
            choices = [choice for choice in left if choice is not None]
            if choices:
                yield chunk if not changed else self._same(chunk, choices)

    def _same(
        self,
        chunk: ChatCompletionChunk,
        choices: list[Choice],
        usage: CompletionUsage | None = None,
    ) -> ChatCompletionChunk:
        first = self.first or chunk
        update: dict[str, object] = {
            "id": first.id,
            "created": first.created,
            "choices": choices,
        }
        if usage is not None:
            update["usage"] = usage
        return chunk.model_copy(update=update)


def _forget(found: BaseModel, name: str) -> None:
    """Take away what the SDK added while it read the stream; services refuse it in a message."""
    (found.model_extra or {}).pop(name, None)


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


def _ids(choice: Answered) -> list[str]:
    return [call.id for call in choice.message.tool_calls or ()]


def _part(choice: Choice, delta: Mapping[str, object], *, finish_reason: str | None) -> Choice:
    """The choice with less in it. What the server did not say stays unsaid."""
    kept = choice.to_dict(warnings=False)
    return Choice.construct(None, **{**kept, "delta": delta, "finish_reason": finish_reason})

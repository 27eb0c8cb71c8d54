"""The conversation behind one call of the wrapper, without any I/O to the model.

    request() -> the driver asks the model -> take(reply) -> request() …

* Sync and async, streaming or not, drive this same loop; they differ only in how they ask.
* Calls of ours are executed here and answered once each, in order; calls of the host's tools go
  back to the caller. A turn that mixes both goes back with the host's calls alone: the model asks
  for the others again when it has seen the host's answers.
* The caller's objects are never changed: lists are copied where something is added.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Self

from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionMessage

from gateway.chat.events import Called, Event, Observer, Replied, Requested, Searched
from gateway.chat.messages import Plain, given, only, plain
from gateway.chat.usage import added
from gateway.discovery.answers import Answer, ToolCall, answer
from gateway.discovery.metatools import MetaNames
from gateway.discovery.offer import Discovery, Offer
from gateway.errors import LoopError
from gateway.gateway import Gateway
from gateway.telemetry import fail

_NOTHING = Offer(tools=(), names=MetaNames(search="", call=""), host=frozenset(), proxies=())


class Loop:
    """One call of the wrapper, from the caller's arguments to the reply."""

    def __init__(
        self,
        gateway: Gateway,
        discovery: Discovery,
        arguments: Mapping[str, object],
        observer: Observer | None = None,
    ) -> None:
        self._gateway = gateway
        self._discovery = discovery
        self._arguments = given(arguments)
        self._messages: list[Plain] = plain(self._arguments.get("messages"), "messages")
        self._given = len(self._messages)
        self._host_tools = plain(self._arguments.get("tools"), "tools")
        # An iterator of the caller's is spent by reading it: the copies go out instead.
        for name, read in (("messages", self._messages), ("tools", self._host_tools)):
            if not isinstance(self._arguments.get(name, []), list | tuple):
                self._arguments[name] = list(read)
        self._observer = observer
        self._offer = _NOTHING
        self._usage: CompletionUsage | None = None
        self._span = gateway.telemetry.begin("invoke_agent")
        self._ended = False
        self.turn = 0
        """Requests made so far."""

    def __enter__(self) -> Self:
        """Begin; the end of the block ends the conversation's span."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """End, and say what failed."""
        if kind is not None and kind is not GeneratorExit:
            fail(self._span, kind.__name__)
        self.end()

    def end(self) -> None:
        """End the conversation's span and count its turns. Twice is harmless."""
        if self._ended:
            return
        self._ended = True
        self._span.set_attribute("gateway.chat.turns", self.turn)
        self._span.end()
        self._gateway.telemetry.record("gateway.chat.turns", self.turn)

    @contextmanager
    def unless_it_fails(self) -> Iterator[None]:
        """End at once if the block raises; go on otherwise: a stream ends by itself."""
        with ExitStack() as stack:
            stack.push(self)
            yield
            stack.pop_all()

    @property
    def wants_usage(self) -> bool:
        """Whether the caller asked for the usage of a stream."""
        options = self._arguments.get("stream_options")
        return isinstance(options, Mapping) and options.get("include_usage") is True

    async def request(self) -> dict[str, object]:
        """Give the arguments of the next request to the model.

        Raises:
            LoopError: After ``ChatOptions.max_turns`` requests.
            InvalidRequestError: If the host's tools leave no room for ours.
        """
        if self.turn >= self._gateway.options.chat.max_turns:
            raise LoopError(self.turn)
        self.turn += 1
        with self._gateway.telemetry.within(self._span):
            offer = await self._discovery.offer(self._messages, self._host_tools)
        self._offer = offer
        self._tell(
            Requested(
                turn=self.turn,
                tools=offer.tool_names,
                proxies=offer.proxies,
                definition_tokens=offer.definition_tokens,
            )
        )
        arguments = dict(self._arguments)
        if self.turn > 1:
            # The first request hands on the caller's own messages, byte for byte.
            arguments["messages"] = list(self._messages)
        if self._offers_ours:
            arguments["tools"] = list(offer.tools)
        return arguments

    async def take(self, reply: ChatCompletion) -> ChatCompletion | None:
        """Take the model's reply: give what goes to the caller, or None if the loop goes on."""
        if reply.usage is not None:
            self._usage = added(self._usage, reply.usage)
        message = reply.choices[0].message if reply.choices else None
        ours, theirs = self._split(message)
        if message is None or not ours:
            return self._final(reply)
        if theirs:
            return self._final(only(reply, theirs))
        with self._gateway.telemetry.within(self._span):
            await self._answer(message, ours)
        return None

    @property
    def _offers_ours(self) -> bool:
        return len(self._offer.tools) > len(self._host_tools)

    def _split(self, message: ChatCompletionMessage | None) -> tuple[list[ToolCall], set[str]]:
        """Tell our calls from the ids of the caller's."""
        ours: list[ToolCall] = []
        theirs: set[str] = set()
        for call in (message.tool_calls or ()) if message else ():
            if call.type != "function" or call.function.name in self._offer.host:
                theirs.add(call.id)
            elif self._offers_ours:
                name, arguments = call.function.name, call.function.arguments
                ours.append(ToolCall(id=call.id, name=name, arguments=arguments))
            else:
                theirs.add(call.id)
        return ours, theirs

    async def _answer(self, message: ChatCompletionMessage, calls: Sequence[ToolCall]) -> None:
        options = self._gateway.options.chat
        gate = asyncio.Semaphore(options.max_parallel_calls)

        async def one(call: ToolCall) -> Answer:
            async with gate:
                return await answer(
                    self._gateway,
                    self._offer.names,
                    call,
                    hidden=self._offer.host,
                    max_result_chars=options.max_result_chars,
                )

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(call)) for call in calls]
        self._messages.append(message.model_dump(exclude_none=True, exclude_unset=True))
        for done in (task.result() for task in tasks):
            self._tell(_event(done))
            self._messages.append(
                {"role": "tool", "tool_call_id": done.call.id, "content": done.text}
            )

    def _final(self, reply: ChatCompletion) -> ChatCompletion:
        usage = self._usage
        content = reply.choices[0].message.content if reply.choices else None
        self._tell(
            Replied(
                turn=self.turn,
                text=content or "",
                prompt_tokens=usage.prompt_tokens if usage else 0,
                completion_tokens=usage.completion_tokens if usage else 0,
                messages=tuple(self._messages[self._given :]),
            )
        )
        return reply.model_copy(update={"usage": usage}) if usage is not None else reply

    def _tell(self, event: Event) -> None:
        if self._observer is not None:
            self._observer(event)


def _event(done: Answer) -> Event:
    if done.search is not None:
        return Searched(call_id=done.call.id, queries=done.queries, result=done.search)
    return Called(
        call_id=done.call.id,
        tool=done.tool,
        arguments=done.arguments or {},
        result=done.result,
        error=done.error,
    )

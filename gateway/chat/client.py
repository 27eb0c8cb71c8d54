"""Drop-in clients: the OpenAI client's own calls, with the catalog behind them.

* Same parameters, same return types, streaming or not. What is not wrapped passes through; what
  would lose discovery without a word raises.
* Nothing is kept here between two calls: one client serves any number of threads, tasks and
  conversations.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, overload

from openai import AsyncOpenAI, AsyncStream, OpenAI, Stream
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessageParam

from gateway.chat.events import Observer
from gateway.chat.joined import JoinedTurn
from gateway.chat.loop import Loop
from gateway.chat.streams import AsyncJoinedStream, JoinedStream
from gateway.discovery.offer import Discovery
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway

Messages = Iterable[ChatCompletionMessageParam]
_RAW = frozenset({"with_raw_response", "with_streaming_response"})
_UNWRAPPED = frozenset({"responses", "beta"}) | _RAW
"""Attributes of a client that lead to completions without discovery."""
_UNWRAPPED_COMPLETIONS = frozenset({"parse", "stream"}) | _RAW


def _refuse(name: str) -> NoReturn:
    raise InvalidRequestError(
        f"{name} is not wrapped, so the model would see no catalog: use chat.completions.create, "
        f"or the bare client as .openai"
    )


class AutoDiscoveryClient:
    """An `openai.OpenAI` whose chat completions search and call the gateway's tools.

    Args:
        openai: The client that asks the model. Any server that speaks its wire format.
        gateway: The catalog; it may be shared.
        observer: Told what happens in each conversation.
    """

    def __init__(
        self, openai: OpenAI, gateway: Gateway, *, observer: Observer | None = None
    ) -> None:
        self.openai = openai
        """The bare client."""
        self.gateway = gateway
        self._observer = observer
        self.chat = Chat(Completions(openai, gateway, observer))

    def __enter__(self) -> Self:
        """Open the bare client."""
        self.openai.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the bare client; the gateway stays open."""
        self.openai.__exit__(kind, error, trace)

    def with_options(self, **options: Any) -> AutoDiscoveryClient:
        """Give a wrapper around `openai.OpenAI.with_options`, over the same gateway."""
        changed = self.openai.with_options(**options)
        return AutoDiscoveryClient(changed, self.gateway, observer=self._observer)

    copy = with_options

    def __getattr__(self, name: str) -> Any:
        """Pass through what is not wrapped."""
        if name in _UNWRAPPED:
            _refuse(name)
        return getattr(self.openai, name)


class AsyncAutoDiscoveryClient:
    """An `openai.AsyncOpenAI` whose chat completions search and call the gateway's tools.

    Args:
        openai: The client that asks the model, on the loop that the caller runs.
        gateway: The catalog; it may be shared, also with blocking callers.
        observer: Told what happens in each conversation.
    """

    def __init__(
        self, openai: AsyncOpenAI, gateway: Gateway, *, observer: Observer | None = None
    ) -> None:
        self.openai = openai
        """The bare client."""
        self.gateway = gateway
        self._observer = observer
        self.chat = AsyncChat(AsyncCompletions(openai, gateway, observer))

    async def __aenter__(self) -> Self:
        """Open the bare client."""
        await self.openai.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the bare client; the gateway stays open."""
        await self.openai.__aexit__(kind, error, trace)

    def with_options(self, **options: Any) -> AsyncAutoDiscoveryClient:
        """Give a wrapper around `openai.AsyncOpenAI.with_options`, over the same gateway."""
        changed = self.openai.with_options(**options)
        return AsyncAutoDiscoveryClient(changed, self.gateway, observer=self._observer)

    copy = with_options

    def __getattr__(self, name: str) -> Any:
        """Pass through what is not wrapped."""
        if name in _UNWRAPPED:
            _refuse(name)
        return getattr(self.openai, name)


class Chat:
    """What ``client.chat`` is."""

    def __init__(self, completions: Completions) -> None:
        self.completions = completions


class AsyncChat:
    """What ``client.chat`` is."""

    def __init__(self, completions: AsyncCompletions) -> None:
        self.completions = completions


class Completions:
    """What ``client.chat.completions`` is."""

    def __init__(self, openai: OpenAI, gateway: Gateway, observer: Observer | None) -> None:
        self._bare = openai.chat.completions
        self._whole: Callable[..., ChatCompletion] = self._bare.create
        self._streamed: Callable[..., Stream[ChatCompletionChunk]] = self._bare.create
        self._gateway = gateway
        self._discovery = Discovery(gateway)
        self._observer = observer

    def __getattr__(self, name: str) -> Any:
        """Pass through what has nothing to do with tools: stored completions."""
        if name in _UNWRAPPED_COMPLETIONS:
            _refuse(f"chat.completions.{name}")
        return getattr(self._bare, name)

    @overload
    def create(
        self, *, messages: Messages, model: str, stream: Literal[True], **options: Any
    ) -> Stream[ChatCompletionChunk]: ...

    @overload
    def create(
        self,
        *,
        messages: Messages,
        model: str,
        stream: Literal[False] | None = None,
        **options: Any,
    ) -> ChatCompletion: ...

    def create(self, **arguments: Any) -> ChatCompletion | Stream[ChatCompletionChunk]:
        """Ask the model, run what it searches and calls, and give its answer.

        Args:
            arguments: As `openai.OpenAI.chat.completions.create` takes them.

        Returns:
            The model's last reply; its usage is that of all turns.

        Raises:
            LoopError: If the model goes on calling tools for too long.
            InvalidRequestError: If the host's own tools fill the request.
            openai.OpenAIError: As the bare client raises it.
        """
        loop = Loop(self._gateway, self._discovery, arguments, self._observer)
        if arguments.get("stream") is True:
            return self._stream(loop)
        call = self._gateway.bridge.call
        with loop:
            while True:
                reply = self._whole(**call(loop.request))
                final = call(partial(loop.take, reply))
                if final is not None:
                    return final

    def _stream(self, loop: Loop) -> Stream[ChatCompletionChunk]:
        with loop.unless_it_fails():
            opened = self._streamed(**self._gateway.bridge.call(loop.request))
        return JoinedStream(opened, self._chunks(loop, opened), loop.end)

    def _chunks(
        self, loop: Loop, opened: Stream[ChatCompletionChunk]
    ) -> Generator[ChatCompletionChunk, None, None]:
        call = self._gateway.bridge.call
        turn = JoinedTurn()
        with loop:
            while True:
                with opened:
                    for chunk in opened:
                        yield from turn.feed(chunk)
                if turn.empty:
                    return
                final = call(partial(loop.take, turn.reply()))
                if final is not None:
                    yield from turn.ending(final, usage=loop.wants_usage)
                    return
                turn = JoinedTurn(turn)
                opened = self._streamed(**call(loop.request))


class AsyncCompletions:
    """What ``client.chat.completions`` is."""

    def __init__(self, openai: AsyncOpenAI, gateway: Gateway, observer: Observer | None) -> None:
        self._bare = openai.chat.completions
        self._whole: Callable[..., Awaitable[ChatCompletion]] = self._bare.create
        self._streamed: Callable[..., Awaitable[AsyncStream[ChatCompletionChunk]]]
        self._streamed = self._bare.create
        self._gateway = gateway
        self._discovery = Discovery(gateway)
        self._observer = observer

    def __getattr__(self, name: str) -> Any:
        """Pass through what has nothing to do with tools: stored completions."""
        if name in _UNWRAPPED_COMPLETIONS:
            _refuse(f"chat.completions.{name}")
        return getattr(self._bare, name)

    @overload
    async def create(
        self, *, messages: Messages, model: str, stream: Literal[True], **options: Any
    ) -> AsyncStream[ChatCompletionChunk]: ...

    @overload
    async def create(
        self,
        *,
        messages: Messages,
        model: str,
        stream: Literal[False] | None = None,
        **options: Any,
    ) -> ChatCompletion: ...

    async def create(self, **arguments: Any) -> ChatCompletion | AsyncStream[ChatCompletionChunk]:
        """Ask the model, run what it searches and calls, and give its answer.

        Args:
            arguments: As `openai.AsyncOpenAI.chat.completions.create` takes them.

        Returns:
            The model's last reply; its usage is that of all turns.

        Raises:
            LoopError: If the model goes on calling tools for too long.
            InvalidRequestError: If the host's own tools fill the request.
            openai.OpenAIError: As the bare client raises it.
        """
        loop = Loop(self._gateway, self._discovery, arguments, self._observer)
        if arguments.get("stream") is True:
            return await self._stream(loop)
        with loop:
            while True:
                reply = await self._whole(**await loop.request())
                final = await loop.take(reply)
                if final is not None:
                    return final

    async def _stream(self, loop: Loop) -> AsyncStream[ChatCompletionChunk]:
        with loop.unless_it_fails():
            opened = await self._streamed(**await loop.request())
        return AsyncJoinedStream(opened, self._chunks(loop, opened), loop.end)

    async def _chunks(
        self, loop: Loop, opened: AsyncStream[ChatCompletionChunk]
    ) -> AsyncGenerator[ChatCompletionChunk, None]:
        turn = JoinedTurn()
        with loop:
            while True:
                async with opened:
                    async for chunk in opened:
                        for passed in turn.feed(chunk):
                            yield passed
                if turn.empty:
                    return
                final = await loop.take(turn.reply())
                if final is not None:
                    for passed in turn.ending(final, usage=loop.wants_usage):
                        yield passed
                    return
                turn = JoinedTurn(turn)
                opened = await self._streamed(**await loop.request())

"""Drives the loop: the bare client's ``post`` with discovery before it. Sync and async twins.

So everything that the SDK builds on ``post`` (`create`, `parse`, `stream`, raw responses) passes
through discovery. What is neither a chat completion nor a response goes straight to the service.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Any, Protocol

from openai import AsyncOpenAI, AsyncStream, BadRequestError, OpenAI, Stream
from pydantic import BaseModel

from gateway.chat.accounting import attach
from gateway.chat.call import DONE, Call, sse, streamed, whole
from gateway.chat.context import ClientContext
from gateway.chat.joined import JoinedTurn
from gateway.chat.joinedevents import JoinedResponse
from gateway.chat.loop import Loop
from gateway.chat.streams import AsyncJoinedStream, JoinedStream
from gateway.chat.wire import IsOurs


class Joined(Protocol):
    """One streamed turn, in either format."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""

    @property
    def began_as(self) -> str:
        """The id that the caller was given."""

    def feed(self, event: Any, is_ours: IsOurs) -> Iterator[Any]:
        """Take one event and give what may be passed on."""

    def reply(self) -> Any:
        """Give the whole turn as if it had not been streamed."""

    def ending(self, final: Any) -> Iterator[Any]:
        """Give what waited, now that *final* goes to the caller."""

    def rest(self) -> Iterator[Any]:
        """Give what waited, of a turn that is empty."""

    def again(self) -> Joined:
        """Begin the turn after this one."""


class Untouched:
    """A turn of a request to which nothing was added: everything goes on as it came."""

    def __init__(self, inner: Joined) -> None:
        self._inner = inner

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return self._inner.empty

    @property
    def began_as(self) -> str:
        """The id that the caller was given."""
        return self._inner.began_as

    def feed(self, event: Any, is_ours: IsOurs) -> Iterator[Any]:
        """Take one event and give it on."""
        yield event
        for _ in self._inner.feed(event, is_ours):
            pass

    def reply(self) -> Any:
        """Give the whole turn as if it had not been streamed."""
        return self._inner.reply()

    def ending(self, _final: Any) -> Iterator[Any]:
        """Give nothing: nothing waited."""
        yield from ()

    def rest(self) -> Iterator[Any]:
        """Give nothing, likewise."""
        yield from ()

    def again(self) -> Joined:
        """Stay: there is no turn after this one, since no call is ours."""
        return self


def _joined(call: Call, loop: Loop[Any]) -> Joined:
    made: Joined = JoinedResponse() if call.path == "/responses" else JoinedTurn()
    return Untouched(made) if loop.offer.empty else made


def _goes_on(loop: Loop[Any], error: BadRequestError) -> bool:
    """Whether the same turn may be tried again without the service's own tool search."""
    native = loop.offer.mode == "native" and "tool_search" in str(error)
    return native and loop.discovery.without_native(loop.talk.model)


def _told(call: Call, loop: Loop[Any], final: BaseModel) -> Any:
    accounting = loop.accounting
    return call.parsed(final, lambda told: attach(told, accounting) if accounting else None)


class Driver:
    """A blocking client's ``post``."""

    def __init__(self, openai: OpenAI, context: ClientContext) -> None:
        self._openai = openai
        self._context = context
        self._run = context.gateway.bridge.call

    def post(self, path: str, **given: Any) -> Any:
        """Send a request, as the bare client does, with discovery if it asks a model."""
        call = Call.of(path, given)
        if call is None:
            return self._openai.post(path, **given)
        loop = self._context.loop(call.talk(self._context.chains))
        if call.streams:
            return self._streamed(call, loop)
        with loop:
            while True:
                got = self._ask(call, loop)
                reply = got.parse() if call.raw else got
                final = loop.settle(reply)
                if final is None:
                    self._run(loop.answer)
                    continue
                loop.keep(final)
                if not call.raw:
                    return _told(call, loop, final)
                first = got.http_response
                return call.response(got, first if final is reply else whole(first, final))

    def _ask(self, call: Call, loop: Loop[Any]) -> Any:
        # Most requests wait for nothing: a hop to the gateway's loop would cost more than the work.
        body = loop.request_now() or self._run(loop.request)
        call.check(loop.offer)
        try:
            return self._openai.post(call.path, **call.turn(loop.turn, body))
        except BadRequestError as error:
            if not _goes_on(loop, error):
                raise
            body = self._run(loop.request)
            return self._openai.post(call.path, **call.turn(loop.turn, body))

    def _streamed(self, call: Call, loop: Loop[Any]) -> Any:
        with loop.unless_it_fails():
            got = self._ask(call, loop)
        opened: Stream[Any] = got.parse() if call.raw else got
        chunks = self._chunks(call, loop, opened)
        if not call.raw:
            return JoinedStream(opened, chunks, loop)
        return call.response(got, streamed(got.http_response, _events(chunks)))

    def _chunks(
        self, call: Call, loop: Loop[Any], opened: Stream[Any]
    ) -> Generator[Any, None, None]:
        turn = _joined(call, loop)
        with loop:
            while True:
                with opened:
                    for chunk in opened:
                        yield from turn.feed(chunk, loop.offer.is_ours)
                if turn.empty:
                    yield from turn.rest()
                    return
                final = loop.settle(turn.reply())
                if final is not None:
                    loop.keep(final, opened=turn.began_as)
                    yield from turn.ending(final)
                    return
                self._run(loop.answer)
                turn = turn.again()
                got = self._ask(call, loop)
                opened = got.parse() if call.raw else got


def _events(chunks: Generator[BaseModel, None, None]) -> Iterator[bytes]:
    for chunk in chunks:
        yield sse(chunk)
    yield DONE


class AsyncDriver:
    """An async client's ``post``."""

    def __init__(self, openai: AsyncOpenAI, context: ClientContext) -> None:
        self._openai = openai
        self._context = context

    async def post(self, path: str, **given: Any) -> Any:
        """Send a request, as the bare client does, with discovery if it asks a model."""
        call = Call.of(path, given)
        if call is None:
            return await self._openai.post(path, **given)
        loop = self._context.loop(call.talk(self._context.chains))
        if call.streams:
            return await self._streamed(call, loop)
        with loop:
            while True:
                got = await self._ask(call, loop)
                reply = await _parsed(got) if call.raw else got
                final = loop.settle(reply)
                if final is None:
                    await loop.answer()
                    continue
                loop.keep(final)
                if not call.raw:
                    return _told(call, loop, final)
                first = got.http_response
                return call.response(got, first if final is reply else whole(first, final))

    async def _ask(self, call: Call, loop: Loop[Any]) -> Any:
        body = await loop.request()
        call.check(loop.offer)
        try:
            return await self._openai.post(call.path, **call.turn(loop.turn, body))
        except BadRequestError as error:
            if not _goes_on(loop, error):
                raise
            body = await loop.request()
            return await self._openai.post(call.path, **call.turn(loop.turn, body))

    async def _streamed(self, call: Call, loop: Loop[Any]) -> Any:
        with loop.unless_it_fails():
            got = await self._ask(call, loop)
        opened: AsyncStream[Any] = await _parsed(got) if call.raw else got
        chunks = self._chunks(call, loop, opened)
        if not call.raw:
            return AsyncJoinedStream(opened, chunks, loop)
        return call.response(got, streamed(got.http_response, _async_events(chunks)))

    async def _chunks(
        self, call: Call, loop: Loop[Any], opened: AsyncStream[Any]
    ) -> AsyncGenerator[Any, None]:
        turn = _joined(call, loop)
        with loop:
            while True:
                async with opened:
                    async for chunk in opened:
                        for passed in turn.feed(chunk, loop.offer.is_ours):
                            yield passed
                if turn.empty:
                    for passed in turn.rest():
                        yield passed
                    return
                final = loop.settle(turn.reply())
                if final is not None:
                    loop.keep(final, opened=turn.began_as)
                    for passed in turn.ending(final):
                        yield passed
                    return
                await loop.answer()
                turn = turn.again()
                got = await self._ask(call, loop)
                opened = await _parsed(got) if call.raw else got


async def _parsed(got: Any) -> Any:
    """Read a raw response: one kind of the SDK's gives an awaitable, the other the value."""
    told = got.parse()
    return await told if hasattr(told, "__await__") else told


async def _async_events(chunks: AsyncGenerator[BaseModel, None]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield sse(chunk)
    yield DONE

"""How the two kinds of client send, wait and stream.

Discovery is written once, as coroutines. The transport of a blocking client blocks where the other
awaits, so its coroutines never suspend: `run_blocking` runs one to its end in one step.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar

from openai import AsyncOpenAI, AsyncStream, OpenAI, Stream
from pydantic import BaseModel

from gateway.chat.accounting import Accounting
from gateway.chat.loop import Loop
from gateway.runtime.background_loop import Bridge

E = TypeVar("E", bound=BaseModel)
"""A chunk or an event."""
T = TypeVar("T")


class Transport(Protocol):
    """How a client sends, and how the gateway's own work is run for it."""

    async def post(self, path: str, **arguments: Any) -> Any:
        """Send a request by the bare client."""

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run work of the gateway."""

    def stream(self, first: Any, events: AsyncGenerator[Any, None], loop: Loop[Any]) -> Any:
        """Return the stream that the caller reads; *first* is that of the first turn."""

    def content(self, lines: AsyncGenerator[bytes, None]) -> Any:
        """Return *lines* as the content of a response."""


class AsyncTransport:
    """An async client's way."""

    def __init__(self, openai: AsyncOpenAI) -> None:
        self._openai = openai

    async def post(self, path: str, **arguments: Any) -> Any:
        """Send a request by the bare client."""
        return await self._openai.post(path, **arguments)

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run work of the gateway on the caller's loop."""
        return await work()

    def stream(self, first: Any, events: AsyncGenerator[Any, None], loop: Loop[Any]) -> Any:
        """Return the stream that the caller reads."""
        return AsyncMergedStream(first, events, loop)

    def content(self, lines: AsyncGenerator[bytes, None]) -> Any:
        """Return *lines* as they are."""
        return lines


class BlockingTransport:
    """A blocking client's way. Nothing here suspends."""

    def __init__(self, openai: OpenAI, bridge: Bridge) -> None:
        self._openai = openai
        self._bridge = bridge

    async def post(self, path: str, **arguments: Any) -> Any:
        """Send a request by the bare client."""
        return self._openai.post(path, **arguments)

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run work of the gateway on its background loop, and block until it is done."""
        return self._bridge.call(work)

    def stream(self, first: Any, events: AsyncGenerator[Any, None], loop: Loop[Any]) -> Any:
        """Return the stream that the caller reads."""
        return MergedStream(first, iterate_blocking(events), loop)

    def content(self, lines: AsyncGenerator[bytes, None]) -> Any:
        """Return *lines* as a plain iterator."""
        return iterate_blocking(lines)


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("a blocking call was about to wait for an event loop")


def iterate_blocking(generator: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Iterate over an async generator that never suspends; closing this one closes that one."""
    try:
        while True:
            try:
                item = run_blocking(_next(generator))
            except StopAsyncIteration:
                return
            yield item
    finally:
        run_blocking(generator.aclose())


async def _next(generator: AsyncGenerator[T, None]) -> T:
    return await anext(generator)


class MergedStream(Stream[E], Generic[E]):
    """Several turns of the model as one stream. ``response`` is that of the first turn."""

    def __init__(self, first: Stream[E], events: Generator[E, None, None], loop: Loop[Any]) -> None:
        # The base would decode a response of its own: only its attributes are needed here.
        self.response = first.response
        self._events = self._iterator = events
        self._loop = loop

    @property
    def gateway(self) -> Accounting | None:
        """What the call did; None until the stream has ended."""
        return self._loop.accounting

    def close(self) -> None:
        """Stop: close whichever turn is being read."""
        self._events.close()
        self.response.close()
        # A generator that never began has nothing to close, and so ends nothing.
        self._loop.end()


class AsyncMergedStream(AsyncStream[E], Generic[E]):
    """Several turns of the model as one stream. ``response`` is that of the first turn."""

    def __init__(
        self, first: AsyncStream[E], events: AsyncGenerator[E, None], loop: Loop[Any]
    ) -> None:
        # As for `MergedStream`.
        self.response = first.response
        self._events = self._iterator = events
        self._loop = loop

    @property
    def gateway(self) -> Accounting | None:
        """What the call did; None until the stream has ended."""
        return self._loop.accounting

    async def close(self) -> None:
        """Stop: close whichever turn is being read."""
        await self._events.aclose()
        await self.response.aclose()
        self._loop.end()

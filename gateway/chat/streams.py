"""Streams that the SDK's users already know, over chunks that the loop lets through."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator

from openai import AsyncStream, Stream
from openai.types.chat import ChatCompletionChunk


class JoinedStream(Stream[ChatCompletionChunk]):
    """Several turns of the model as one stream. ``response`` is that of the first turn."""

    def __init__(
        self,
        opened: Stream[ChatCompletionChunk],
        chunks: Generator[ChatCompletionChunk, None, None],
        end: Callable[[], None],
    ) -> None:
        # The base would decode a response of its own: only its attributes are needed here.
        self.response = opened.response
        self._chunks = chunks
        self._iterator = chunks
        self._end = end

    def close(self) -> None:
        """Stop: close whichever turn is being read."""
        self._chunks.close()
        self.response.close()
        # A generator that never began has nothing to close, and so ends nothing.
        self._end()


class AsyncJoinedStream(AsyncStream[ChatCompletionChunk]):
    """Several turns of the model as one stream. ``response`` is that of the first turn."""

    def __init__(
        self,
        opened: AsyncStream[ChatCompletionChunk],
        chunks: AsyncGenerator[ChatCompletionChunk, None],
        end: Callable[[], None],
    ) -> None:
        # The base would decode a response of its own: only its attributes are needed here.
        self.response = opened.response
        self._chunks = chunks
        self._iterator = chunks
        self._end = end

    async def close(self) -> None:
        """Stop: close whichever turn is being read."""
        await self._chunks.aclose()
        await self.response.aclose()
        # A generator that never began has nothing to close, and so ends nothing.
        self._end()

"""Streams that the SDK's users already know, over what the loop lets through."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any, Generic, TypeVar

from openai import AsyncStream, Stream
from pydantic import BaseModel

from gateway.chat.accounting import Accounting
from gateway.chat.loop import Loop

E = TypeVar("E", bound=BaseModel)
"""A chunk or an event."""


class JoinedStream(Stream[E], Generic[E]):
    """Several turns of the model as one stream. ``response`` is that of the first turn."""

    def __init__(
        self, opened: Stream[E], chunks: Generator[E, None, None], loop: Loop[Any]
    ) -> None:
        # The base would decode a response of its own: only its attributes are needed here.
        self.response = opened.response
        self._chunks = chunks
        self._iterator = chunks
        self._loop = loop

    @property
    def gateway(self) -> Accounting | None:
        """What the call did; None until the stream has ended."""
        return self._loop.accounting

    def close(self) -> None:
        """Stop: close whichever turn is being read."""
        self._chunks.close()
        self.response.close()
        # A generator that never began has nothing to close, and so ends nothing.
        self._loop.end()


class AsyncJoinedStream(AsyncStream[E], Generic[E]):
    """Several turns of the model as one stream. ``response`` is that of the first turn."""

    def __init__(
        self, opened: AsyncStream[E], chunks: AsyncGenerator[E, None], loop: Loop[Any]
    ) -> None:
        # The base would decode a response of its own: only its attributes are needed here.
        self.response = opened.response
        self._chunks = chunks
        self._iterator = chunks
        self._loop = loop

    @property
    def gateway(self) -> Accounting | None:
        """What the call did; None until the stream has ended."""
        return self._loop.accounting

    async def close(self) -> None:
        """Stop: close whichever turn is being read."""
        await self._chunks.aclose()
        await self.response.aclose()
        # A generator that never began has nothing to close, and so ends nothing.
        self._loop.end()

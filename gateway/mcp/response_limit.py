"""Answers over HTTP within a limit: what is longer is not held.

The SDK caps the events of a stream, but reads a JSON answer whole, whatever its length.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

PLAIN = {"Accept-Encoding": "identity"}
"""Asks for no encoding: a few packed bytes may unpack to any length."""

_STREAM = "text/event-stream"
_UNPACKED = frozenset({"", "identity"})


def cap(response: httpx2.Response, *, max_bytes: int) -> None:
    """Have reading *response* fail beyond *max_bytes*, unless it is a stream of events.

    Raises:
        httpx2.DecodingError: It is packed, which was not asked for.
    """
    if response.headers.get("content-encoding", "").strip().lower() not in _UNPACKED:
        raise httpx2.DecodingError("the answer is packed, which was not asked for")
    streamed = response.headers.get("content-type", "").lower().startswith(_STREAM)
    if not streamed and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Capped(response.stream, max_bytes)


class _Capped(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                # Of the kind that the SDK takes for the failure of this one request.
                raise httpx2.StreamError("the answer is too long")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()

"""An HTTP server that sends the same bytes to every request, at the speed that a test needs."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from gateway.testing import Gate
from gateway.testing.endpoint import Loopback

EVENTS = "text/event-stream"


class Canned:
    """Sends *parts* to every request, from index `hold_at` on after the test opens the gate.

    The first requests get the elements of *before* instead.
    """

    def __init__(
        self,
        parts: Sequence[bytes],
        *,
        media_type: str = EVENTS,
        hold_at: int | None = None,
        before: Sequence[Sequence[bytes]] = (),
    ) -> None:
        self.gate = Gate()
        self.ended = threading.Event()
        """Set when a reply was sent completely, or its reader disconnected."""
        self._parts = parts
        self._before = iter(before)
        self._media_type = media_type
        self._hold_at = hold_at
        paths = ("/v1/chat/completions", "/v1/responses")
        routes = [Route(path, self._answer, methods=["POST"]) for path in paths]
        self._loopback = Loopback(Starlette(routes=routes))

    def __enter__(self) -> Self:
        self._loopback.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.gate.release()
        self._loopback.close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._loopback.port}/v1"

    async def _answer(self, _request: Request) -> Response:
        return StreamingResponse(self._each(), media_type=self._media_type)

    async def _each(self) -> AsyncIterator[bytes]:
        try:
            for place, part in enumerate(next(self._before, self._parts)):
                if place == self._hold_at:
                    await self.gate.hold()
                yield part
        finally:
            self.ended.set()


def event(
    delta: Mapping[str, Any] | None = None,
    *,
    finish: str | None = None,
    index: int = 0,
    **fields: Any,
) -> bytes:
    """Return a stream's chunk with *delta* in the choice *index*."""
    choices = (
        [{"index": index, "delta": delta, "finish_reason": finish}] if delta is not None else []
    )
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": choices,
        **fields,
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def fragment(position: int, **parts: Any) -> dict[str, Any]:
    """Return a delta with a fragment of the tool call at *position*."""
    head = {name: parts.pop(name) for name in ("id", "type") if name in parts}
    return {"tool_calls": [{"index": position, **head, "function": parts}]}


DONE = b"data: [DONE]\n\n"

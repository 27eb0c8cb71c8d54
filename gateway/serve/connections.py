"""Connections of clients to the served gateway: how many, and how long a request may take to come.

uvicorn limits requests that have come whole; one that is half sent would hold its connection for
ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class ConnectionLimits:
    """The limits of one server, and its connections that wait for a request.

    Args:
        max_connections: A further one takes the place of the one that has waited longest; if none
            waits, it is refused.
        request_timeout_s: How long a request may take to come whole.
    """

    def __init__(self, max_connections: int, request_timeout_s: float) -> None:
        self._max_connections = max_connections
        self._request_timeout_s = request_timeout_s
        self._waiting: dict[H11Protocol, asyncio.TimerHandle] = {}

    def __call__(self, **options: Any) -> H11Protocol:
        """Return a new connection, as uvicorn makes one."""
        return _Connection(self, **options)

    def make_room(self, new: H11Protocol) -> None:
        """Abort a connection if there are too many."""
        if len(new.connections) > self._max_connections:
            self._abort(next(iter(self._waiting), new))

    def note_request(self, connection: H11Protocol) -> None:
        """Start the timer of *connection*, unless a whole request is being answered."""
        cycle = connection.cycle
        if cycle is not None and not (cycle.response_complete or cycle.more_body):
            self.forget(connection)
        elif connection not in self._waiting and not connection.transport.is_closing():
            self._waiting[connection] = connection.loop.call_later(
                self._request_timeout_s, self._abort, connection
            )

    def forget(self, connection: H11Protocol) -> None:
        """Stop the timer of *connection*."""
        if timer := self._waiting.pop(connection, None):
            timer.cancel()

    def _abort(self, connection: H11Protocol) -> None:
        self.forget(connection)
        connection.transport.abort()


class _Connection(H11Protocol):
    def __init__(self, limits: ConnectionLimits, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limits.make_room(self)
        self._limits.note_request(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._limits.note_request(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._limits.note_request(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._limits.forget(self)

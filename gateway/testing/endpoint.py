"""HTTP server on the loopback interface, with logs, gates and faults for each endpoint.

A request is logged when it arrives. Tests wait for arrivals, so they do not sleep.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import socket
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Literal, Self, TypeVar

import uvicorn
from starlette.types import ASGIApp

from gateway.errors import ClosedError
from gateway.runtime.background_loop import Bridge

R = TypeVar("R")
_KEEP_ALIVE_S = 600
"""Seconds until an idle connection is closed. A shorter time could close a connection that a slow
client is about to use."""
GRACE_S = 1
"""Maximum time in seconds that an unfinished answer delays `Loopback.close`."""
EndpointName = Literal["chat", "embeddings"]
FaultKind = Literal["status", "drop", "garbage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Faults that replace the next answers of an endpoint."""

    status: int = 500
    """HTTP status of the kind ``status``. The response asks for a retry after a millisecond."""
    times: int = 1
    """Number of requests that fail."""
    kind: FaultKind = "status"
    """``status`` answers with an error status, ``drop`` breaks the connection in the middle of the
    answer, and ``garbage`` sends broken JSON with status 200."""


class Gate:
    """A barrier that holds requests until its release. Any thread may use it."""

    def __init__(self) -> None:
        self._arrival = threading.Condition()
        self._arrived = 0
        self._door: concurrent.futures.Future[None] = concurrent.futures.Future()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()

    @property
    def released(self) -> bool:
        """True after `release`."""
        return self._door.done()

    def release(self) -> None:
        """Release held and later requests. A second call has no effect."""
        with suppress(concurrent.futures.InvalidStateError):
            self._door.set_result(None)

    def wait(self, requests: int = 1, *, timeout_s: float = 10.0) -> None:
        """Block until *requests* have arrived since the gate was created.

        Raises:
            TimeoutError: If they did not arrive within ``timeout_s``.
        """
        with self._arrival:
            if not self._arrival.wait_for(lambda: self._arrived >= requests, timeout_s):
                raise TimeoutError(f"{self._arrived} of {requests} requests arrived")

    async def arrived(self, requests: int = 1, *, timeout_s: float = 10.0) -> None:
        """Wait as in `wait`, without blocking the event loop."""
        await asyncio.to_thread(self.wait, requests, timeout_s=timeout_s)

    async def hold(self) -> None:
        """Count an arrival and wait for the release."""
        with self._arrival:
            self._arrived += 1
            self._arrival.notify_all()
        # All requests share the future, so no cancellation may cancel it.
        await asyncio.shield(asyncio.wrap_future(self._door))


class Endpoint(Generic[R]):
    """Log, faults and gates of one endpoint. Any thread may use it."""

    def __init__(self) -> None:
        self.seen: list[R] = []
        """Requests in the order of arrival."""
        self._faults: deque[Faults] = deque()
        self._gates: list[Gate] = []

    def fail(self, faults: Faults) -> None:
        """Let the next requests fail, after pending faults."""
        self._faults.extend([faults] * faults.times)

    def gate(self) -> Gate:
        """Hold requests that arrive from now on. Requests at an older gate stay there."""
        gate = Gate()
        self._gates = [*(older for older in self._gates if not older.released), gate]
        return gate

    def release(self) -> None:
        """Release every gate of the endpoint."""
        for gate in self._gates:
            gate.release()

    async def admit(self, request: R) -> Faults | None:
        """Log *request*, hold it at the newest gate, and return its fault, if any."""
        self.seen.append(request)
        faults = self._faults.popleft() if self._faults else None
        if self._gates:
            await self._gates[-1].hold()
        return faults


class Loopback:
    """HTTP server for one application."""

    def __init__(self, app: ASGIApp) -> None:
        # log_config=None leaves the host's logging unchanged.
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
        )
        self._server = uvicorn.Server(config)
        self._bridge = Bridge("gateway-testing")
        self._serving: concurrent.futures.Future[None] | None = None
        self.port = 0
        """Port; 0 before `start`."""

    def start(self) -> None:
        """Listen on a free port and serve. A second call has no effect.

        Raises:
            ClosedError: After `close`.
        """
        if self._server.should_exit:
            raise ClosedError("this server is closed; make a new one")
        if self._serving is not None:
            return
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        # Otherwise each response waits for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = listener.getsockname()[1]
        self._serving = self._bridge.submit(lambda: self._server.serve(sockets=[listener]))

    def settle(self, timeout_s: float) -> None:
        """Block until every request that has arrived is answered or abandoned.

        Raises:
            TimeoutError: If a request is not finished within *timeout_s*.
        """
        if self._serving is not None and not self._serving.done():
            self._bridge.call(lambda: self._settled(timeout_s))

    async def _settled(self, timeout_s: float) -> None:
        async with asyncio.timeout(timeout_s):
            while answering := tuple(self._server.server_state.tasks):
                await asyncio.wait(answering)

    def close(self) -> None:
        """Finish running answers and stop. A second call has no effect."""
        self._server.should_exit = True
        if self._serving is not None:
            self._serving.result()
        self._bridge.close()

"""A server on this machine, what each of its endpoints has seen, and how it misbehaves on demand.

* A request is noted when it arrives, before it is held or fails: retries are counted too.
* Nothing here sleeps: a test waits for a request to arrive, and lets it go when it likes.
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
"""How long an idle connection is kept. Clients let go of theirs after seconds; a server that does
so first hangs up on a slow one that is about to ask again.
"""
GRACE_S = 1
"""How long an unfinished answer may hold up `Loopback.close`."""
EndpointName = Literal["chat", "embeddings"]
FaultKind = Literal["status", "drop", "garbage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What happens to the next requests of an endpoint, instead of an answer."""

    status: int = 500
    """The HTTP status of kind ``status``. It asks the client to try again in a millisecond."""
    times: int = 1
    """How many requests it meets."""
    kind: FaultKind = "status"
    """``drop`` breaks the connection half way through the answer; ``garbage`` is a 200 whose
    body is broken JSON."""


class Gate:
    """Holds the requests of an endpoint until it is released. Any thread may use it."""

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
        """Whether it holds nothing any more."""
        return self._door.done()

    def release(self) -> None:
        """Let go what is held and all that comes after. Twice is harmless."""
        with suppress(concurrent.futures.InvalidStateError):
            self._door.set_result(None)

    def wait(self, requests: int = 1, *, timeout_s: float = 10.0) -> None:
        """Block until *requests* have arrived since the gate was shut.

        Raises:
            TimeoutError: They did not arrive within ``timeout_s``.
        """
        with self._arrival:
            if not self._arrival.wait_for(lambda: self._arrived >= requests, timeout_s):
                raise TimeoutError(f"{self._arrived} of {requests} requests arrived")

    async def arrived(self, requests: int = 1, *, timeout_s: float = 10.0) -> None:
        """Await the same, on a loop that must go on meanwhile.

        Raises:
            TimeoutError: They did not arrive within ``timeout_s``.
        """
        await asyncio.to_thread(self.wait, requests, timeout_s=timeout_s)

    async def hold(self) -> None:
        """Count one arrival and wait for the release. For the endpoint."""
        with self._arrival:
            self._arrived += 1
            self._arrival.notify_all()
        # The door belongs to all who wait: the cancellation of one must not shut it for the rest.
        await asyncio.shield(asyncio.wrap_future(self._door))


class Endpoint(Generic[R]):
    """The log, the faults and the gate of one endpoint. Any thread may use it."""

    def __init__(self) -> None:
        self.seen: list[R] = []
        """The log, in the order of arrival."""
        self._faults: deque[Faults] = deque()
        self._gates: list[Gate] = []

    def fail(self, faults: Faults) -> None:
        """Queue *faults* behind those still due."""
        self._faults.extend([faults] * faults.times)

    def gate(self) -> Gate:
        """Hold what arrives from now on; an older gate keeps what it holds."""
        gate = Gate()
        self._gates = [*(each for each in self._gates if not each.released), gate]
        return gate

    def release(self) -> None:
        """Release every gate."""
        for gate in self._gates:
            gate.release()

    async def admit(self, request: R) -> Faults | None:
        """Note *request*, hold it at the gate, and return the fault that meets it."""
        self.seen.append(request)
        faults = self._faults.popleft() if self._faults else None
        if self._gates:
            await self._gates[-1].hold()
        return faults


class Loopback:
    """A real HTTP server for one app. It listens from `start` on, so nothing waits for it."""

    def __init__(self, app: ASGIApp) -> None:
        # No log_config: the host's logging is the host's.
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
        """0 until `start`."""

    def start(self) -> None:
        """Listen on a free port and serve. Twice is harmless.

        Raises:
            ClosedError: After `close`.
        """
        if self._server.should_exit:
            raise ClosedError("this server is closed; make a new one")
        if self._serving is not None:
            return
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        # Connections inherit it; without, each response waits some 40 ms for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = listener.getsockname()[1]
        self._serving = self._bridge.submit(lambda: self._server.serve(sockets=[listener]))

    def settle(self, timeout_s: float) -> None:
        """Block until the answer to every request that has arrived is done with: written, or given
        up because it is not read.

        Raises:
            TimeoutError: Not within ``timeout_s``.
        """
        if self._serving is not None and not self._serving.done():
            self._bridge.call(lambda: self._settled(timeout_s))

    async def _settled(self, timeout_s: float) -> None:
        async with asyncio.timeout(timeout_s):
            while answering := tuple(self._server.server_state.tasks):
                await asyncio.wait(answering)

    def close(self) -> None:
        """Finish what is being answered, hang up and join the thread. Twice is harmless."""
        self._server.should_exit = True
        if self._serving is not None:
            self._serving.result()
        self._bridge.close()

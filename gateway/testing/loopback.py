"""An ASGI app on a free port of 127.0.0.1, served from a background thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import socket

import uvicorn
from starlette.types import ASGIApp

from gateway.errors import ClosedError
from gateway.runtime.background_loop import Bridge

_KEEP_ALIVE_S = 600
"""How long an idle connection is kept. Clients let go of theirs after seconds; a server that does
so first hangs up on a slow one that is about to ask again.
"""
GRACE_S = 1
"""How long an unfinished answer may hold up `Loopback.close`."""


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
        # With the protocol named, asyncio sets TCP_NODELAY on every connection; without, each
        # answer waits some 40 ms for an acknowledgement.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
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

"""The tokens of an earlier sign-in, on requests; refreshed once for all that share them.

* A refresh goes on to its end even if the request that began it is cancelled: the authorization
  server has taken the old refresh token by then, and only the new one is worth anything.
* Of several processes one refreshes, where their store has a lock; the others take what it got.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from typing import TypeAlias

import anyio
import httpx2
from anyio.lowlevel import RunVar
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER

from gateway.errors import StoreError
from gateway.mcp.oauth import SignInRecord, oauth_client, read_record
from gateway.mcp.servers import OAuth, TokenStore
from gateway.runtime.background_loop import run_to_end

Flow: TypeAlias = AsyncGenerator[httpx2.Request, httpx2.Response]
"""Of `httpx2.Auth`: yields requests, and is sent their responses."""
MakeClient: TypeAlias = Callable[[], httpx2.AsyncClient]
"""Makes a client for an authorization server, which is closed after one use."""
UNAUTHORIZED = 401
_MAX_TRIES = 3
_MAX_LOCKS = 4
"""Held or waited for at a time. In a store each takes a connection, and to wait for it a thread, of
which the others have need to go on.
"""
_LOCKING = RunVar[anyio.CapacityLimiter]("gateway_locking")
"""Of a loop."""


class RefreshError(RuntimeError):
    """Tokens could not be refreshed, for a reason that no sign-in mends."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"its tokens cannot be refreshed ({reason}): try again")


class BearerAuth(httpx2.Auth):
    """Sends the tokens of an earlier sign-in; asks no person.

    Args:
        url: The server's address.
        auth: Whose tokens.
        make_client: Makes what refreshes them.
        timeout_s: How long the authorization server may take.
    """

    def __init__(self, url: str, auth: OAuth, make_client: MakeClient, *, timeout_s: float) -> None:
        self._url = url
        self._auth = auth
        self._make_client = make_client
        self._timeout_s = timeout_s
        self._refreshing = anyio.Lock()
        self._record = SignInRecord()
        """As it was read last: it serves while the store cannot be read."""

    async def async_auth_flow(self, request: httpx2.Request) -> Flow:
        """Send *request* with the token; refresh it once if it ran out or is refused.

        Not the SDK's own flow: that lets one request through at a time.

        Raises:
            RefreshError: The authorization server or the store is away.
        """
        refused, is_tried = "", False
        version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER, "")
        for _ in range(_MAX_TRIES):
            record = await self._read()
            if record.needs_refresh(refused) and not is_tried:
                try:
                    record, is_tried = await run_to_end(self._refresh(refused, version))
                except (StoreError, TimeoutError, httpx2.HTTPError) as error:
                    raise RefreshError(type(error).__name__) from error
            if refused and record.access_token == refused:
                return
            if record.access_token:
                request.headers["Authorization"] = f"Bearer {record.access_token}"
            response = yield request
            if response.status_code != UNAUTHORIZED or is_tried or not record.access_token:
                return
            refused = record.access_token

    async def _read(self) -> SignInRecord:
        with suppress(StoreError):
            record, own = await read_record(self._auth), self._record.sign_in
            # Who signed in anew may be somebody else at the server: its session is another one.
            self._record = record if own in {"", record.sign_in} else SignInRecord(sign_in=own)
        return self._record

    async def _refresh(self, refused: str, version: str) -> tuple[SignInRecord, bool]:
        """Return the tokens, refreshed unless another request or process did so meanwhile, and
        whether this one tried.
        """
        async with self._refreshing, locked(self._auth.tokens):
            record, is_tried = await self._read(), False
            if record.needs_refresh(refused):
                request = httpx2.Request("POST", self._url)
                if version:
                    request.headers[MCP_PROTOCOL_VERSION_HEADER] = version
                flow = oauth_client(self._url, self._auth).async_auth_flow(request)
                async with self._make_client() as client:
                    step = await anext(flow)
                    while step is not request:
                        is_tried = True
                        # Meanwhile a lock is held, and a connection to the store with it.
                        async with asyncio.timeout(self._timeout_s):
                            response = await client.send(step)
                        if response.is_server_error:
                            raise RefreshError(f"HTTP {response.status_code}")
                        step = await flow.asend(response)
                await flow.aclose()
                record = await self._read()
            return record, is_tried


@asynccontextmanager
async def locked(tokens: TokenStore | None) -> AsyncIterator[None]:
    """Hold the lock of *tokens* for the block, without blocking the loop.

    Raises:
        StoreError: It cannot be had.
    """
    async with _limiter():
        stack = ExitStack()
        lock = nullcontext() if tokens is None else tokens.lock()
        entering = asyncio.ensure_future(asyncio.to_thread(stack.enter_context, lock))
        try:
            await asyncio.shield(entering)
            yield
        finally:
            # Also what is had only after its caller has gone.
            await run_to_end(_release(entering, stack))


def _limiter() -> anyio.CapacityLimiter:
    limiter = _LOCKING.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_MAX_LOCKS)
        _LOCKING.set(limiter)
    return limiter


async def _release(entering: asyncio.Future[None], stack: ExitStack) -> None:
    await asyncio.wait({entering})
    await asyncio.to_thread(stack.close)

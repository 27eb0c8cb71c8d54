"""HTTP authentication with the tokens of an earlier sign-in.

* A refresh runs to its end even if its request is cancelled, because the old refresh token is then
  already invalid.
* If the token store has a lock, only one process refreshes. The others read the new tokens.
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
"""Authentication flow of `httpx2.Auth`: a generator that yields requests and receives responses."""
MakeClient: TypeAlias = Callable[[], httpx2.AsyncClient]
"""Returns a new HTTP client for the authorization server. The caller closes it."""
UNAUTHORIZED = 401
_MAX_TRIES = 3
_MAX_LOCKS = 4
"""Maximum number of token store locks that are held or waited for at a time. Each one takes a
connection of the store and a thread, so more could starve other work."""
_LIMITERS = RunVar[anyio.CapacityLimiter]("gateway_locking")


class RefreshError(RuntimeError):
    """Error of a token refresh that may succeed later. Signing in again would not help."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"its tokens cannot be refreshed ({reason}): try again")


class BearerAuth(httpx2.Auth):
    """Adds the access token of an earlier sign-in to requests, and refreshes it when needed.

    Args:
        url: URL of the server.
        auth: OAuth settings, with the store of the tokens.
        make_client: Creates the client that refreshes tokens.
        timeout_s: Maximum time for an answer of the authorization server, in seconds.
    """

    def __init__(self, url: str, auth: OAuth, make_client: MakeClient, *, timeout_s: float) -> None:
        self._url = url
        self._auth = auth
        self._make_client = make_client
        self._timeout_s = timeout_s
        self._refreshing = anyio.Lock()
        self._record = SignInRecord()
        """Last sign-in record from the token store, used while the store cannot be read."""

    async def async_auth_flow(self, request: httpx2.Request) -> Flow:
        """Send *request* with the token. Refresh the token once if it has expired or is refused.

        Raises:
            RefreshError: If the authorization server or the token store is unavailable.
        """
        refused, is_tried = "", False
        version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER, "")
        for _ in range(_MAX_TRIES):
            record = await self._read_record()
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

    async def _read_record(self) -> SignInRecord:
        with suppress(StoreError):
            record, last_sign_in = await read_record(self._auth), self._record.sign_in
            # A new sign-in may be a different person's and needs its own session.
            self._record = (
                record
                if last_sign_in in {"", record.sign_in}
                else SignInRecord(sign_in=last_sign_in)
            )
        return self._record

    async def _refresh(self, refused: str, version: str) -> tuple[SignInRecord, bool]:
        """Refresh the tokens, unless another request or process has already done so.

        Args:
            refused: Access token that the server refused, or "".
            version: MCP protocol version of the request, or "".

        Returns:
            The current sign-in record, and True if this call sent a refresh request.
        """
        async with self._refreshing, locked(self._auth.tokens):
            record, is_tried = await self._read_record(), False
            if record.needs_refresh(refused):
                request = httpx2.Request("POST", self._url)
                if version:
                    request.headers[MCP_PROTOCOL_VERSION_HEADER] = version
                flow = oauth_client(self._url, self._auth).async_auth_flow(request)
                async with self._make_client() as client:
                    step = await anext(flow)
                    while step is not request:
                        is_tried = True
                        # The store's lock is held until the answer arrives.
                        async with asyncio.timeout(self._timeout_s):
                            response = await client.send(step)
                        if response.is_server_error:
                            raise RefreshError(f"HTTP {response.status_code}")
                        step = await flow.asend(response)
                await flow.aclose()
                record = await self._read_record()
            return record, is_tried


@asynccontextmanager
async def locked(tokens: TokenStore | None) -> AsyncIterator[None]:
    """Hold the lock of *tokens* during the block, without blocking the event loop.

    Raises:
        StoreError: If the lock cannot be acquired.
    """
    async with _get_limiter():
        stack = ExitStack()
        lock = nullcontext() if tokens is None else tokens.lock()
        entering = asyncio.ensure_future(asyncio.to_thread(stack.enter_context, lock))
        try:
            await asyncio.shield(entering)
            yield
        finally:
            # Also release a lock that is acquired after the caller was cancelled.
            await run_to_end(_release(entering, stack))


def _get_limiter() -> anyio.CapacityLimiter:
    limiter = _LIMITERS.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_MAX_LOCKS)
        _LIMITERS.set(limiter)
    return limiter


async def _release(entering: asyncio.Future[None], stack: ExitStack) -> None:
    await asyncio.wait({entering})
    await asyncio.to_thread(stack.close)

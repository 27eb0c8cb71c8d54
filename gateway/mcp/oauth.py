"""Sign-in to HTTP servers: the SDK's OAuth client with persistent state.

* A person is asked only if the host provides a way to ask. Otherwise a refusal (401) is returned.
* The issuer is stored with the tokens, so that a refresh after a restart uses the same
  authorization server.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, ValidationError

from gateway.errors import ConfigError, StoreError, UpstreamError
from gateway.mcp.servers import OAuth, TokenStore

_EXPIRY_MARGIN_S = 30.0
"""Remaining lifetime of a token, in seconds, below which it is refreshed before use."""
_EXPIRED_AT = 1.0
"""Time in the past that marks a token as expired; the SDK treats 0 as missing."""
_WRITE_DELAYS_S = (0.2, 1.0, 4.0)
"""Delays before each new attempt to write tokens to a failing store, in seconds."""
_PATH = "/callback"
_MAX_LINE_BYTES = 8192
_LINE_TIMEOUT_S = 10.0
_ERROR_CODE = re.compile(r"[a-z_]{1,40}")
_PAGE = (
    "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}"
)


class SignInHandler(Protocol):
    """Interface of the OAuth client to the person who signs in."""

    address: str
    """Redirect URL to which the browser returns after the sign-in."""
    record: str
    """Sign-in record as JSON, to be stored by the caller; empty until the sign-in is finished."""

    async def show(self, url: str) -> None:
        """Ask the person to open *url*, the sign-in page."""

    async def wait(self) -> AuthorizationCodeResult:
        """Return the browser's answer after the person has signed in or refused."""


class LoopbackSignIn:
    """A `SignInHandler` that receives one answer of a browser on this machine (RFC 8252).

    Args:
        port: Port of the listener for the browser's answer.
        on_address: Called with the URL at which the person signs in.
    """

    def __init__(self, server: str, port: int, on_address: Callable[[str], None]) -> None:
        self._server = server
        self._on_address = on_address
        self._state = ""
        loop = asyncio.get_running_loop()
        self._response: asyncio.Future[AuthorizationCodeResult] = loop.create_future()
        self.address = f"http://127.0.0.1:{port}{_PATH}"
        self.record = ""

    async def show(self, url: str) -> None:
        """Ask the person to open *url*, the sign-in page."""
        self._state = query_value(url, "state")
        self._on_address(url)

    async def wait(self) -> AuthorizationCodeResult:
        """Return the browser's answer after the person has signed in.

        Raises:
            UpstreamError: If the person refused, or the answer has no code.
        """
        return await self._response

    def receive(self, target: str) -> tuple[str, str]:
        """Handle a browser's request for *target*; return the HTTP status and text of the page.

        Any web page can send a browser here, so requests without the expected state are ignored.
        """
        if urlsplit(target).path != _PATH:
            return "404 Not Found", "Page not found."
        state = query_value(target, "state")
        if not self._state or state != self._state or self._response.done():
            return "400 Bad Request", "No sign-in is waiting for this answer."
        fault, code = query_value(target, "error"), query_value(target, "code")
        if fault or not code:
            reason = fault if _ERROR_CODE.fullmatch(fault) else "no code"
            detail = f"the sign-in was refused ({reason})"
            error = UpstreamError(self._server, detail, kind="authorization", sent=False)
            self._response.set_exception(error)
            return "200 OK", "The sign-in was refused. You may close this page."
        issuer = query_value(target, "iss") or None
        self._response.set_result(AuthorizationCodeResult(code=code, state=state, iss=issuer))
        return "200 OK", "You are signed in. You may close this page."


@asynccontextmanager
async def listen_for_sign_in(
    server: str, on_address: Callable[[str], None], *, port: int = 0
) -> AsyncIterator[LoopbackSignIn]:
    """Listen on *port* (0 chooses a free one) for one answer of a browser during the block.

    Raises:
        ConfigError: If the port is not available.
    """
    sign_in: LoopbackSignIn

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_LINE_TIMEOUT_S):
                line = await reader.readline()
        except (TimeoutError, ValueError, ConnectionError):
            line = b""
        words = line.decode("latin-1").split()
        target = words[1] if len(words) > 1 and words[0] == "GET" else ""
        status, text = sign_in.receive(target)
        writer.write(_PAGE.format(status=status, length=len(text), text=text).encode())
        writer.close()

    try:
        listener = await asyncio.start_server(serve, "127.0.0.1", port, limit=_MAX_LINE_BYTES)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on 127.0.0.1:{port} for the sign-in: choose another callback_port"
        ) from error
    async with listener:
        sign_in = LoopbackSignIn(server, listener.sockets[0].getsockname()[1], on_address)
        yield sign_in


class SignInRecord(BaseModel):
    """Stored result of one sign-in: tokens, client and authorization server."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    tokens: OAuthToken | None = None
    expires_at: float | None = None
    """Time at which the tokens expire, in seconds since the epoch; None if unknown."""
    client: OAuthClientInformationFull | None = None
    issuer: OAuthMetadata | None = Field(default=None, alias="giver")
    resource: ProtectedResourceMetadata | None = None
    sign_in: str = ""
    """Random id of this sign-in of a user."""

    @property
    def access_token(self) -> str:
        """The access token; empty if missing."""
        return self.tokens.access_token if self.tokens is not None else ""

    def with_tokens(self, tokens: OAuthToken) -> SignInRecord:
        """Return a copy of the record with new *tokens*."""
        life_s = tokens.expires_in
        end = time.time() + life_s - _EXPIRY_MARGIN_S if life_s is not None else None
        return self.model_copy(update={"tokens": tokens, "expires_at": end})

    def needs_refresh(self, refused: str) -> bool:
        """Return whether the access token has expired or was *refused* by the server."""
        is_expired = self.expires_at is not None and self.expires_at <= time.time()
        return self.tokens is not None and (self.access_token == refused or is_expired)


async def read_record(auth: OAuth) -> SignInRecord:
    """Return the stored sign-in record; an empty one if missing or unreadable."""
    text = await asyncio.to_thread(auth.tokens.read) if auth.tokens is not None else None
    try:
        return SignInRecord.model_validate_json(text) if text else SignInRecord()
    except ValidationError:
        return SignInRecord()


class _Storage:
    """Adapter from a `TokenStore` to the SDK's token storage.

    During a sign-in it starts empty and does not change the stored record.
    """

    context: OAuthContext
    """Context of the SDK's client that uses this storage."""

    def __init__(self, auth: OAuth, sign_in: SignInHandler | None) -> None:
        self._auth = auth
        self._sign_in = sign_in
        self._record = SignInRecord()

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens, marked as expired, and restore the SDK client's state."""
        if self._sign_in is None:
            self._record = await read_record(self._auth)
        record, context = self._record, self.context
        context.token_expiry_time = _EXPIRED_AT
        context.oauth_metadata = record.issuer
        context.protected_resource_metadata = record.resource
        servers = record.resource.authorization_servers if record.resource is not None else []
        context.auth_server_url = str(servers[0]) if servers else None
        return record.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store new tokens and their issuer, unless the user signed out or in again meanwhile.

        Writing is retried, because the old refresh token is already invalid.

        Raises:
            StoreError: If the store still fails after a few seconds.
        """
        issuer = {
            "issuer": self.context.oauth_metadata,
            "resource": self.context.protected_resource_metadata,
        }
        before = self._record
        self._record = before.with_tokens(tokens).model_copy(update=issuer)
        text = self._record.model_dump_json(exclude_none=True)
        if self._sign_in is not None:
            self._sign_in.record = text
        elif self._auth.tokens is not None:
            await self._write(self._auth.tokens, text, before)

    async def _write(self, tokens: TokenStore, text: str, before: SignInRecord) -> None:
        for wait_s in (*_WRITE_DELAYS_S, None):
            try:
                stored = await read_record(self._auth)
                if (stored.sign_in, stored.tokens) == (before.sign_in, before.tokens):
                    await asyncio.to_thread(tokens.write, text)
            except StoreError:
                if wait_s is None:
                    raise
                await asyncio.sleep(wait_s)
            else:
                return

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the OAuth client that was registered by hand or by the SDK, or None."""
        auth = self._auth
        if not auth.client_id:
            return self._record.client
        return OAuthClientInformationFull(
            client_id=auth.client_id,
            client_secret=auth.client_secret or None,
            token_endpoint_auth_method="client_secret_post" if auth.client_secret else "none",
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Remember the OAuth client that the SDK has just registered."""
        self._record = self._record.model_copy(update={"client": client_info})


class _ClientMetadata(OAuthClientMetadata):
    """Metadata in which the SDK cannot replace a scope chosen by the host."""

    def __setattr__(self, name: str, value: object) -> None:
        if name != "scope" or not self.scope:
            super().__setattr__(name, value)


def oauth_client(
    url: str, auth: OAuth, sign_in: SignInHandler | None = None
) -> OAuthClientProvider:
    """Return the SDK's OAuth client for *url*, which first tries to refresh tokens.

    *sign_in* handles a sign-in; with None, no person is asked.
    """
    storage = _Storage(auth, sign_in)
    client = OAuthClientProvider(
        url,
        _ClientMetadata(
            client_name="tool-gateway",
            redirect_uris=[AnyUrl(sign_in.address if sign_in else f"http://127.0.0.1{_PATH}")],
            scope=auth.scope or None,
            token_endpoint_auth_method="none",  # noqa: S106  (no secret: it says that there is none)
        ),
        storage,
        redirect_handler=sign_in.show if sign_in else None,
        callback_handler=sign_in.wait if sign_in else None,
        client_metadata_url=auth.client_metadata_url or None,
    )
    storage.context = client.context
    return client


def query_value(url: str, name: str) -> str:
    """Return the query parameter *name* of *url*, or ""."""
    return parse_qs(urlsplit(url).query).get(name, [""])[0]

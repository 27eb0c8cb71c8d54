"""Signing in to HTTP servers: the SDK's OAuth client, with what it learns made to last.

* A request bears the token. One that ran out, or is refused, is refreshed, by one request for all.
* No person is asked unless the host says how: a refusal (401) is returned as it came.
* Beside the tokens stands who issued them: after a restart a refresh must not guess where to go.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

import anyio
import httpx2
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

from gateway.mcp.servers import OAuth

_EXPIRY_MARGIN_S = 30.0
"""A token that ends sooner than this is refreshed first."""
_EXPIRED = 1.0
"""A moment that is over; the SDK takes 0 for none."""
_MAX_TRIES = 3
_UNAUTHORIZED = 401
_UNUSED_CALLBACK = "http://127.0.0.1/callback"
_Flow = AsyncGenerator[httpx2.Request, httpx2.Response]


class SignInRecord(BaseModel):
    """What one sign-in gave, as it is stored."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    tokens: OAuthToken | None = None
    expires_at: float | None = None
    """Seconds since the epoch; None is not known."""
    client: OAuthClientInformationFull | None = None
    issuer: OAuthMetadata | None = Field(default=None, alias="giver")
    resource: ProtectedResourceMetadata | None = None

    @property
    def access_token(self) -> str:
        """The token; empty if there is none."""
        return self.tokens.access_token if self.tokens is not None else ""


class OAuthStorage:
    """The SDK's token storage on `TokenStore`, which also remembers what its client found out.

    Args:
        auth: Whose tokens.
        force_refresh: Make the SDK's client take the tokens for expired, so that it refreshes them.
    """

    def __init__(self, auth: OAuth, *, force_refresh: bool = False) -> None:
        self._auth = auth
        self._force_refresh = force_refresh
        self.context: OAuthContext | None = None
        """Of the SDK's client that this is the storage of."""

    async def load(self) -> SignInRecord:
        """Read the record; what cannot be read is an empty one."""
        tokens = self._auth.tokens
        text = await asyncio.to_thread(tokens.read) if tokens is not None else None
        try:
            return SignInRecord.model_validate_json(text) if text else SignInRecord()
        except ValidationError:
            return SignInRecord()

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens, and tell the SDK's client what else it needs to refresh them."""
        record = await self.load()
        context = self.context
        if context is not None:
            context.token_expiry_time = _EXPIRED if self._force_refresh else record.expires_at
            context.oauth_metadata = record.issuer
            context.protected_resource_metadata = record.resource
            servers = record.resource.authorization_servers if record.resource is not None else []
            context.auth_server_url = str(servers[0]) if servers else None
        return record.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store new tokens and their issuer."""
        life_s = tokens.expires_in
        context = self.context
        await self._update(
            tokens=tokens,
            expires_at=time.time() + life_s - _EXPIRY_MARGIN_S if life_s is not None else None,
            issuer=context.oauth_metadata if context is not None else None,
            resource=context.protected_resource_metadata if context is not None else None,
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the client that was registered, by hand or by the SDK."""
        auth = self._auth
        if not auth.client_id:
            return (await self.load()).client
        return OAuthClientInformationFull(
            client_id=auth.client_id,
            client_secret=auth.client_secret or None,
            token_endpoint_auth_method="client_secret_post" if auth.client_secret else "none",
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the client that was just registered."""
        await self._update(client=client_info)

    async def _update(self, **fields: object) -> None:
        tokens = self._auth.tokens
        if tokens is not None:
            record = (await self.load()).model_copy(update=fields)
            await asyncio.to_thread(tokens.write, record.model_dump_json(exclude_none=True))


class _ClientMetadata(OAuthClientMetadata):
    """What the client says of itself. A scope that the host chose stays; the SDK would replace it
    by the one that the server names.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name != "scope" or not self.scope:
            super().__setattr__(name, value)


class BearerAuth(httpx2.Auth):
    """Sends the tokens of an earlier sign-in; asks no person.

    Args:
        url: The server's address.
        auth: Whose tokens.
    """

    def __init__(self, url: str, auth: OAuth) -> None:
        self._url = url
        self._auth = auth
        self._storage = OAuthStorage(auth)
        self._refreshing = anyio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> _Flow:
        """Send *request* with the token; refresh it once if it ran out or is refused.

        Not the SDK's own flow: that lets one request through at a time.
        """
        refused = ""
        for _ in range(_MAX_TRIES):
            record, is_refreshed = await self._storage.load(), False
            if self._needs_refresh(record, refused):
                async with self._refreshing:
                    # Not if another request, or another process, did so meanwhile.
                    if self._needs_refresh(await self._storage.load(), refused):
                        flow = self._refresh_flow(request)
                        step = await anext(flow)
                        while step is not request:
                            is_refreshed = True
                            step = await flow.asend((yield step))
                        await flow.aclose()
                record = await self._storage.load()
                if record.access_token == refused and not is_refreshed:
                    return
            request.headers.pop("Authorization", None)
            if record.access_token:
                request.headers["Authorization"] = f"Bearer {record.access_token}"
            response = yield request
            if response.status_code != _UNAUTHORIZED or is_refreshed or not record.access_token:
                return
            refused = record.access_token

    def _needs_refresh(self, record: SignInRecord, refused: str) -> bool:
        if record.tokens is None:
            return False
        is_expired = record.expires_at is not None and record.expires_at <= time.time()
        return record.access_token == refused or is_expired

    def _refresh_flow(self, request: httpx2.Request) -> _Flow:
        """Return the SDK's flow: a refresh, where one can be, then *request*."""
        storage = OAuthStorage(self._auth, force_refresh=True)
        return _oauth_client(self._url, self._auth, storage).async_auth_flow(request)


def create_auth(url: str, auth: OAuth) -> httpx2.Auth:
    """Return what signs the requests to *url*; it asks a person only if *auth* says how."""
    if auth.sign_in is None:
        return BearerAuth(url, auth)
    return _oauth_client(url, auth, OAuthStorage(auth))


def _oauth_client(url: str, auth: OAuth, storage: OAuthStorage) -> OAuthClientProvider:
    sign_in = auth.sign_in

    async def wait_for_answer() -> AuthorizationCodeResult:
        assert sign_in is not None  # noqa: S101  (no person is asked without)
        response = await sign_in.wait()
        return AuthorizationCodeResult(
            code=response.code, state=response.state, iss=response.issuer
        )

    client = OAuthClientProvider(
        url,
        _ClientMetadata(
            client_name="tool-gateway",
            redirect_uris=[AnyUrl(sign_in.address if sign_in else _UNUSED_CALLBACK)],
            scope=auth.scope or None,
            token_endpoint_auth_method="none",  # noqa: S106  (no secret: it says that there is none)
        ),
        storage,
        redirect_handler=sign_in.show if sign_in is not None else None,
        callback_handler=wait_for_answer if sign_in is not None else None,
        client_metadata_url=auth.client_metadata_url or None,
    )
    storage.context = client.context
    return client

"""Signing in to HTTP servers: the SDK's OAuth client, with what it learns made to last.

* A request bears the token. One that ran out, or is refused, is refreshed, by one request for all.
* Nobody is asked unless the host says who asks: a refusal (401) is given back as it came.
* Beside the tokens is kept who gave them: after a restart a refresh must not guess where to go.
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
from pydantic import AnyUrl, BaseModel, ValidationError

from gateway.mcp.oauth import OAuth
from gateway.runtime.cache import Clock

_SPARE_S = 30.0
"""A token that ends sooner than this is refreshed first."""
_PAST = 1.0
"""A moment that is over; the SDK takes 0 for none."""
_TRIES = 3
_UNAUTHORIZED = 401
_NOWHERE = "http://127.0.0.1/callback"
_Flow = AsyncGenerator[httpx2.Request, httpx2.Response]


class Record(BaseModel):
    """What one sign-in gave."""

    tokens: OAuthToken | None = None
    expires_at: float | None = None
    """Seconds since the epoch; None is not known."""
    client: OAuthClientInformationFull | None = None
    giver: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None

    @property
    def bearer(self) -> str:
        """The token; empty if there is none."""
        return self.tokens.access_token if self.tokens is not None else ""


class Keeper:
    """The SDK's token storage on `Tokens`, which also remembers what its client found out.

    Args:
        auth: Whose tokens.
        wall: Seconds since the epoch.
        over: Have the SDK's client take the tokens for ended, so that it refreshes them.
    """

    def __init__(self, auth: OAuth, *, wall: Clock = time.time, over: bool = False) -> None:
        self._auth = auth
        self._wall = wall
        self._over = over
        self.context: OAuthContext | None = None
        """Of the SDK's client that this is the storage of."""

    async def record(self) -> Record:
        """Read what is kept; what cannot be read is nothing."""
        tokens = self._auth.tokens
        text = await asyncio.to_thread(tokens.read) if tokens is not None else None
        try:
            return Record.model_validate_json(text) if text else Record()
        except ValidationError:
            return Record()

    async def get_tokens(self) -> OAuthToken | None:
        """Give the tokens, and tell the SDK's client what else it needs to refresh them."""
        record = await self.record()
        context = self.context
        if context is not None:
            context.token_expiry_time = _PAST if self._over else record.expires_at
            context.oauth_metadata = record.giver
            context.protected_resource_metadata = record.resource
            servers = record.resource.authorization_servers if record.resource is not None else []
            context.auth_server_url = str(servers[0]) if servers else None
        return record.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep new tokens, and who gave them."""
        life_s = tokens.expires_in
        ends = self._wall() + life_s - _SPARE_S if life_s is not None else None
        found = self.context
        giver = found.oauth_metadata if found is not None else None
        resource = found.protected_resource_metadata if found is not None else None
        await self._keep(tokens=tokens, expires_at=ends, giver=giver, resource=resource)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Give the client that was registered, by hand or by us."""
        auth = self._auth
        if not auth.client_id:
            return (await self.record()).client
        method = "client_secret_post" if auth.client_secret else "none"
        return OAuthClientInformationFull(
            client_id=auth.client_id,
            client_secret=auth.client_secret or None,
            token_endpoint_auth_method=method,
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the client that was just registered."""
        await self._keep(client=client_info)

    async def _keep(self, **changed: object) -> None:
        tokens = self._auth.tokens
        if tokens is not None:
            record = (await self.record()).model_copy(update=changed)
            await asyncio.to_thread(tokens.write, record.model_dump_json(exclude_none=True))


class _Wanted(OAuthClientMetadata):
    """What our client says of itself. A scope that the host chose stays; the SDK would replace it
    by what the server names.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name != "scope" or not self.scope:
            super().__setattr__(name, value)


class Bearer(httpx2.Auth):
    """Bears what somebody signed in for; asks nobody.

    Args:
        url: The server's address.
        auth: Whose tokens.
        wall: Seconds since the epoch.
    """

    def __init__(self, url: str, auth: OAuth, *, wall: Clock = time.time) -> None:
        self._url = url
        self._auth = auth
        self._wall = wall
        self._keeper = Keeper(auth, wall=wall)
        self._renewing = anyio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> _Flow:
        """Send *request* with the token; refresh it once if it ran out or is refused.

        Not the SDK's own flow: that lets one request through at a time.
        """
        refused = ""
        for _ in range(_TRIES):
            record, spent = await self._keeper.record(), False
            if self._over(record, refused):
                async with self._renewing:
                    # Not if another request, or another process, did so meanwhile.
                    if self._over(await self._keeper.record(), refused):
                        flow = self._renewal(request)
                        sent = await anext(flow)
                        while sent is not request:
                            spent = True
                            sent = await flow.asend((yield sent))
                        await flow.aclose()
                record = await self._keeper.record()
                if record.bearer == refused and not spent:
                    return
            request.headers.pop("Authorization", None)
            if record.bearer:
                request.headers["Authorization"] = f"Bearer {record.bearer}"
            response = yield request
            if response.status_code != _UNAUTHORIZED or spent or not record.bearer:
                return
            refused = record.bearer

    def _over(self, record: Record, refused: str) -> bool:
        if record.tokens is None:
            return False
        ends = record.expires_at
        return record.bearer == refused or (ends is not None and ends <= self._wall())

    def _renewal(self, request: httpx2.Request) -> _Flow:
        """The SDK's flow: it begins with a refresh, where one can be, and then gives *request*."""
        keeper = Keeper(self._auth, wall=self._wall, over=True)
        return _client(self._url, self._auth, keeper, _NOWHERE).async_auth_flow(request)


def authentication(url: str, auth: OAuth) -> httpx2.Auth:
    """Give what signs the requests to *url*; it asks a person only if *auth* says who asks."""
    if auth.consent is None:
        return Bearer(url, auth)
    return _client(url, auth, Keeper(auth), auth.consent.address)


def _client(url: str, auth: OAuth, keeper: Keeper, address: str) -> OAuthClientProvider:
    consent = auth.consent

    async def answered() -> AuthorizationCodeResult:
        assert consent is not None  # noqa: S101  (nobody is asked without)
        answer = await consent.answer()
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)

    client = OAuthClientProvider(
        url,
        _Wanted(
            client_name="tool-gateway",
            redirect_uris=[AnyUrl(address)],
            scope=auth.scope or None,
            token_endpoint_auth_method="none",  # noqa: S106  (no secret: it says that there is none)
        ),
        keeper,
        redirect_handler=consent.show if consent is not None else None,
        callback_handler=answered if consent is not None else None,
        client_metadata_url=auth.client_metadata_url or None,
    )
    keeper.context = client.context
    return client

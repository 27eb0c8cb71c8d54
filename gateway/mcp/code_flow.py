"""Sign-in of a user in two steps: the URL to open, and the authorization code that comes back.

Another replica may handle the second step, so the state is in the user's token store. It includes
the token request that the SDK's client prepared.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import validate_authorization_response_iss
from mcp.shared.auth import OAuthToken
from pydantic import BaseModel, ValidationError

from gateway.errors import UpstreamError
from gateway.mcp.oauth import SignInRecord, oauth_client, query_value
from gateway.mcp.ssrf_guard import check_url, is_local
from gateway.mcp.traffic import Traffic
from gateway.mcp.transports import guarded_client
from gateway.mcp.user_sessions import UserSignIn

LIFE_S = 600.0
"""Maximum duration of a sign-in, in seconds."""
_PLACEHOLDER_CODE = "code"
_UNAUTHORIZED = 401
_OK_STATUSES = frozenset({200, 201})


class _PendingSignIn(BaseModel):
    """Stored state of a user's sign-in between its two steps."""

    state: str
    until: float
    """Time at which the pending sign-in expires, in seconds since the epoch."""
    token_url: str
    form: str
    """Form body of the token request with the PKCE verifier, without the authorization code."""
    authorization: str
    """``Authorization`` header of the token request; empty if the client does not use one."""
    record: SignInRecord
    """Sign-in record with the registered client and its issuer, but without tokens."""


class _Redirect:
    """A `SignInHandler` that stores the URL. *address* is the redirect URL."""

    context: OAuthContext
    record = ""

    def __init__(self, address: str) -> None:
        self.address = address
        self.url = ""
        """URL at which the person signs in; empty until `show` is called."""

    async def show(self, url: str) -> None:
        self.url = url

    async def wait(self) -> AuthorizationCodeResult:
        """Return a placeholder for the code, with which the SDK builds the token request."""
        metadata = self.context.oauth_metadata
        issuer = str(metadata.issuer) if metadata is not None else None
        state = query_value(self.url, "state")
        return AuthorizationCodeResult(code=_PLACEHOLDER_CODE, state=state, iss=issuer)


async def begin(sign_in: UserSignIn) -> str:
    """Begin a sign-in, and return the URL at which the user signs in.

    An earlier pending sign-in of the user is discarded.

    Raises:
        UpstreamError: If the server offers no sign-in or cannot be reached.
        ConfigError: If a URL is not allowed.
    """
    target, options = sign_in.target, sign_in.options
    redirect = _Redirect(sign_in.callback)
    request = httpx2.Request("GET", target.url, headers={"Accept": "text/event-stream"})
    provider = oauth_client(target.url, replace(sign_in.auth, tokens=None), redirect)
    redirect.context = context = provider.context
    flow = provider.async_auth_flow(request)
    try:
        async with (
            asyncio.timeout(options.connect_timeout_s),
            guarded_client(target.url, Traffic(options)) as client,
        ):
            step = await anext(flow)
            while not redirect.url:
                send = _request_challenge(client, step) if step is request else client.send(step)
                step = await flow.asend(await send)
            await step.aread()
    except (httpx2.HTTPError, OAuthFlowError, StopAsyncIteration, TimeoutError) as error:
        detail = f"the sign-in cannot start ({type(error).__name__}): look at its log"
        raise _sign_in_error(sign_in, detail) from error
    finally:
        await flow.aclose()
    # The person's browser opens this URL, so check it like requests.
    check_url(redirect.url, options.private_hosts, local=is_local(target.url))
    pending = _PendingSignIn(
        state=query_value(redirect.url, "state"),
        until=time.time() + LIFE_S,
        token_url=str(step.url),
        form=step.content.decode(),
        authorization=step.headers.get("Authorization", ""),
        record=SignInRecord(
            client=context.client_info,
            giver=context.oauth_metadata,
            resource=context.protected_resource_metadata,
            sign_in=secrets.token_urlsafe(16),
        ),
    )
    await asyncio.to_thread(sign_in.pending.write, pending.model_dump_json(exclude_none=True))
    return redirect.url


async def _request_challenge(
    client: httpx2.AsyncClient, request: httpx2.Request
) -> httpx2.Response:
    async with client.stream(request.method, request.url, headers=request.headers) as response:
        if response.status_code == _UNAUTHORIZED:
            await response.aread()
            return response
    return httpx2.Response(_UNAUTHORIZED, request=request)


async def complete(sign_in: UserSignIn, code: str, state: str, issuer: str | None) -> None:
    """Exchange the authorization code for tokens, and store them.

    Args:
        sign_in: Sign-in of the user.
        code: Authorization code from the redirect URL.
        state: ``state`` parameter of the redirect URL. Each value is accepted once.
        issuer: Issuer from the redirect URL (RFC 9207); None if missing.

    Raises:
        UpstreamError: If *state* belongs to no pending sign-in, or the token request fails.
    """
    target, options, pending = sign_in.target, sign_in.options, sign_in.pending
    pending_sign_in = _parse_pending(await asyncio.to_thread(pending.read), state)
    if pending_sign_in is None:
        detail = "the sign-in has expired or was not started here: start it again"
        raise _sign_in_error(sign_in, detail)
    await asyncio.to_thread(pending.forget)
    try:
        validate_authorization_response_iss(issuer, pending_sign_in.record.issuer)
        async with (
            asyncio.timeout(options.connect_timeout_s),
            guarded_client(target.url, Traffic(options)) as client,
        ):
            tokens = await _request_tokens(client, pending_sign_in, code)
    except (httpx2.HTTPError, OAuthFlowError, TimeoutError, ValidationError) as error:
        detail = f"gave no token ({type(error).__name__}): start the sign-in again"
        raise _sign_in_error(sign_in, detail) from None
    text = pending_sign_in.record.with_tokens(tokens).model_dump_json(exclude_none=True)
    await asyncio.to_thread(sign_in.tokens.write, text)


def _sign_in_error(sign_in: UserSignIn, detail: str) -> UpstreamError:
    return UpstreamError(sign_in.server, detail, kind="authorization", sent=False)


def _parse_pending(text: str | None, state: str) -> _PendingSignIn | None:
    """Parse a pending sign-in; return None if it has expired or has another *state*."""
    try:
        pending_sign_in = _PendingSignIn.model_validate_json(text or "")
    except ValidationError:
        return None
    is_own = secrets.compare_digest(
        pending_sign_in.state.encode(), state.encode("utf-8", "replace")
    )
    return pending_sign_in if is_own and pending_sign_in.until >= time.time() else None


async def _request_tokens(
    client: httpx2.AsyncClient, pending_sign_in: _PendingSignIn, code: str
) -> OAuthToken:
    form = dict(parse_qsl(pending_sign_in.form)) | {"code": code}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if pending_sign_in.authorization:
        headers["Authorization"] = pending_sign_in.authorization
    response = await client.post(
        pending_sign_in.token_url, content=urlencode(form), headers=headers
    )
    if response.status_code not in _OK_STATUSES:
        raise OAuthFlowError(f"HTTP {response.status_code}")
    return OAuthToken.model_validate_json(response.content)

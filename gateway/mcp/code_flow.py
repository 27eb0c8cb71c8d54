"""A user's sign-in to a server in two steps: an address to go to, and the code that comes back.

Between the two nothing is held in memory, so another replica may take the second one: what the
first one found out is kept where the user's tokens are to be. The SDK's client does the discovery,
the registration, the state and PKCE; its request for tokens is kept until there is a code for it.
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
"""How long a person may take to sign in."""
_PLACEHOLDER = "code"
_UNAUTHORIZED = 401
_OK = frozenset({200, 201})


class _PendingSignIn(BaseModel):
    """What is kept between the two steps."""

    state: str
    until: float
    """Seconds since the epoch."""
    token_url: str
    form: str
    """The request for tokens, all but the code; it holds the verifier of PKCE."""
    authorization: str
    """Its header, where the client has a secret that goes there."""
    record: SignInRecord
    """The client and its issuer."""


class _Redirect:
    """`gateway.mcp.oauth.SignInHandler` that goes on without the person.

    Args:
        address: Where the browser is sent back to.
    """

    context: OAuthContext
    record = ""

    def __init__(self, address: str) -> None:
        self.address = address
        self.url = ""
        """Where the person signs in; empty until it is known."""

    async def show(self, url: str) -> None:
        """See `SignInHandler.show`."""
        self.url = url

    async def wait(self) -> AuthorizationCodeResult:
        """Return a placeholder: the request that is made of it is never sent as it is."""
        metadata = self.context.oauth_metadata
        issuer = str(metadata.issuer) if metadata is not None else None
        state = query_value(self.url, "state")
        return AuthorizationCodeResult(code=_PLACEHOLDER, state=state, iss=issuer)


async def begin(sign_in: UserSignIn) -> str:
    """Return the address at which a user signs in; what was begun before is forgotten.

    Raises:
        UpstreamError: The server offers no sign-in, or cannot be reached.
        ConfigError: An address may not be used.
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
                send = _challenge(client, step) if step is request else client.send(step)
                step = await flow.asend(await send)
            await step.aread()
    except (httpx2.HTTPError, OAuthFlowError, StopAsyncIteration, TimeoutError) as error:
        detail = f"cannot be signed in to ({type(error).__name__}): look at its log"
        raise _failure(sign_in, detail) from error
    finally:
        await flow.aclose()
    # The browser of a person is sent there: that must be as safe as where we would go ourselves.
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


async def _challenge(client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """Return how the server refuses *request*; a plain refusal if it does not."""
    async with client.stream(request.method, request.url, headers=request.headers) as response:
        if response.status_code == _UNAUTHORIZED:
            await response.aread()
            return response
    return httpx2.Response(_UNAUTHORIZED, request=request)


async def complete(sign_in: UserSignIn, code: str, state: str, issuer: str | None) -> None:
    """Take what the browser brought back, and keep the tokens of the user.

    Args:
        sign_in: Of the user.
        code: What stands in the address that the browser came to.
        state: Likewise. It is good once.
        issuer: Likewise (RFC 9207); None if nothing does.

    Raises:
        UpstreamError: It answers nothing that was begun, or gets no tokens.
    """
    target, options, pending = sign_in.target, sign_in.options, sign_in.pending
    begun = _begun(await asyncio.to_thread(pending.read), state)
    if begun is None:
        detail = "the sign-in is over or was not begun here: begin it anew"
        raise _failure(sign_in, detail)
    await asyncio.to_thread(pending.forget)
    try:
        validate_authorization_response_iss(issuer, begun.record.issuer)
        async with (
            asyncio.timeout(options.connect_timeout_s),
            guarded_client(target.url, Traffic(options)) as client,
        ):
            tokens = await _ask_for_tokens(client, begun, code)
    except (httpx2.HTTPError, OAuthFlowError, TimeoutError, ValidationError) as error:
        detail = f"gave no token ({type(error).__name__}): begin the sign-in anew"
        raise _failure(sign_in, detail) from None
    text = begun.record.with_tokens(tokens).model_dump_json(exclude_none=True)
    await asyncio.to_thread(sign_in.tokens.write, text)


def _failure(sign_in: UserSignIn, detail: str) -> UpstreamError:
    return UpstreamError(sign_in.server, detail, kind="authorization", sent=False)


def _begun(text: str | None, state: str) -> _PendingSignIn | None:
    """Return the sign-in that *text* keeps; None if it is over, or *state* is not its own."""
    try:
        begun = _PendingSignIn.model_validate_json(text or "")
    except ValidationError:
        return None
    is_own = secrets.compare_digest(begun.state.encode(), state.encode("utf-8", "replace"))
    return begun if is_own and begun.until >= time.time() else None


async def _ask_for_tokens(
    client: httpx2.AsyncClient, begun: _PendingSignIn, code: str
) -> OAuthToken:
    form = dict(parse_qsl(begun.form)) | {"code": code}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if begun.authorization:
        headers["Authorization"] = begun.authorization
    response = await client.post(begun.token_url, content=urlencode(form), headers=headers)
    if response.status_code not in _OK:
        raise OAuthFlowError(f"HTTP {response.status_code}")
    return OAuthToken.model_validate_json(response.content)

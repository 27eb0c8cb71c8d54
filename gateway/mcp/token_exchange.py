"""Exchange of a user's access token for a token of a server (RFC 8693).

The user's own token is sent only to the token endpoint, never to a server.
"""

from __future__ import annotations

import json
import re
import time
from base64 import urlsafe_b64decode
from hashlib import sha256
from urllib.parse import quote

import anyio
import httpx2
from mcp.shared.auth import OAuthToken
from pydantic import BaseModel, ValidationError

from gateway.errors import UpstreamError
from gateway.mcp.bearer_auth import UNAUTHORIZED, Flow, MakeClient
from gateway.mcp.servers import ExchangedToken, TokenExchange
from gateway.runtime.cache import Clock
from gateway.types.caller import Secret

_GRANT_TYPE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  (no secret: the name of a type)
_EXPIRY_MARGIN_S = 30.0
_DEFAULT_LIFE_S = 60.0
"""Assumed lifetime of an exchanged token whose expiry the endpoint does not state, in seconds."""
_PER_TOKEN_CLAIMS = frozenset(
    {"exp", "iat", "nbf", "auth_time", "jti", "sid", "session_state", "uti", "aio", "rh"}
)
"""Claims that differ in each token of the same grant. The last three are Entra's."""
_ERROR_CODE = re.compile(r"[a-z_]{1,40}")
_OK = 200


class _Refusal(BaseModel):
    error: str = ""


def grant_of(token: Secret) -> str:
    """Return a digest of the claims of *token*, except for claims that differ in each token.

    Tokens with equal digests are exchanged only once. A token that is not a JSON Web Token is
    digested as a whole. The signature was checked when the token arrived.
    """
    text = token.reveal()
    try:
        payload = text.split(".")[1]
        claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        members = sorted((name, claims[name]) for name in claims.keys() - _PER_TOKEN_CLAIMS)
    except (ValueError, LookupError, AttributeError):
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return sha256(json.dumps(members, sort_keys=True).encode()).hexdigest()


class UserToken:
    """An `ExchangedToken`. *make_client* creates the HTTP client for the token endpoint."""

    def __init__(
        self,
        server: str,
        exchange: TokenExchange,
        make_client: MakeClient,
        *,
        clock: Clock = time.monotonic,
    ) -> None:
        self._server = server
        self._exchange = exchange
        self._make_client = make_client
        self._clock = clock
        self._lock = anyio.Lock()
        self._token = ""
        self._until = 0.0
        self.subject = Secret("")
        """The user's own token, from the last request of the user."""

    async def get(self, *, refused: str = "") -> str:
        """See `ExchangedToken.get`."""
        async with self._lock:
            if not self._token or self._token == refused or self._clock() >= self._until:
                self._token = ""
                answer = await self._exchange_token()
                life_s = _DEFAULT_LIFE_S if answer.expires_in is None else answer.expires_in
                self._until = self._clock() + life_s - min(_EXPIRY_MARGIN_S, life_s / 2)
                self._token = answer.access_token
            return self._token

    async def _exchange_token(self) -> OAuthToken:
        exchange = self._exchange
        form = {
            "grant_type": _GRANT_TYPE,
            "subject_token": self.subject.reveal(),
            "subject_token_type": _ACCESS_TOKEN_TYPE,
            "requested_token_type": _ACCESS_TOKEN_TYPE,
            "audience": exchange.audience,
            "resource": exchange.resource,
            "scope": exchange.scope,
            "client_id": "" if exchange.client_secret else exchange.client_id,
        }
        form = {name: text for name, text in form.items() if text}
        pair = quote(exchange.client_id, safe=""), quote(exchange.client_secret, safe="")
        auth = httpx2.BasicAuth(*pair) if exchange.client_secret else httpx2.Auth()
        try:
            async with self._make_client() as client:
                response = await client.post(exchange.token_url, data=form, auth=auth)
                if response.status_code == _OK:
                    return OAuthToken.model_validate_json(response.content)
                detail = _refusal_reason(response)
        except httpx2.HTTPError as error:
            detail = f"the token endpoint cannot be asked ({type(error).__name__})"
        except ValidationError:
            detail = "the token endpoint answered with no bearer token"
        raise UpstreamError(self._server, detail, kind="authorization", sent=False)


def _refusal_reason(response: httpx2.Response) -> str:
    """Return the error code or HTTP status of a refusal, because other texts are not trusted."""
    try:
        code = _Refusal.model_validate_json(response.content).error
    except ValidationError:
        code = ""
    code = code if _ERROR_CODE.fullmatch(code) else f"HTTP {response.status_code}"
    return f"the token endpoint refused to exchange your token ({code})"


class ExchangeAuth(httpx2.Auth):
    """Adds a user's exchanged token to requests. If refused, retries once with a new token."""

    def __init__(self, token: ExchangedToken) -> None:
        self._token = token

    async def async_auth_flow(self, request: httpx2.Request) -> Flow:
        """Send *request* with the token. If the exchange fails, the request is not sent."""
        token = await self._token.get()
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == UNAUTHORIZED:
            try:
                token = await self._token.get(refused=token)
            except UpstreamError:
                return
            request.headers["Authorization"] = f"Bearer {token}"
            yield request

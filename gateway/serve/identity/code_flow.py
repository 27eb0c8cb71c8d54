"""Sign-in of people at an identity provider with OpenID Connect's authorization code flow.

The state (`PendingSignIn`) is only in an encrypted cookie, so another replica can handle the second
step. The ID token proves that the response belongs to this sign-in (nonce) and client. The caller
comes from the access token, or from the ID token if so configured.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from mcp.client.auth.oauth2 import PKCEParameters
from pydantic import BaseModel

from gateway.errors import Failed, attempt
from gateway.mcp.json_fetch import fetch_json
from gateway.runtime.json_models import read_value
from gateway.serve.api.problems import RefusedError
from gateway.serve.auth import BearerToken
from gateway.serve.identity.access_tokens import AccessTokens
from gateway.serve.identity.issuers import CALLBACK, BrowserSignIn, Issuer, address_fault
from gateway.serve.identity.provider_keys import (
    FETCH_TIMEOUT_S,
    MAX_BYTES,
    REFRESH_S,
    RETRY_S,
    find_metadata,
)

_NEEDED = {"authorization_endpoint": "its sign-in page", "token_endpoint": "tokens"}

log = logging.getLogger("gateway.serve")


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSignIn:
    """State of a sign-in, stored by the browser meanwhile."""

    issuer: str
    state: str
    nonce: str
    verifier: str
    """PKCE code verifier (RFC 7636)."""


class _Tokens(BaseModel):
    """Response of a token endpoint."""

    access_token: str
    id_token: str


class ProviderSignIn:
    """Sign-in of browsers at one identity provider. *resource* is the address of ``/mcp``."""

    def __init__(
        self, issuer: Issuer, settings: BrowserSignIn, resource: str, tokens: AccessTokens
    ) -> None:
        self._issuer, self._settings, self._tokens = issuer, settings, tokens
        parts = urlsplit(resource)
        self.redirect_uri = settings.redirect_uri or f"{parts.scheme}://{parts.netloc}{CALLBACK}"
        self.label = issuer.issuer.partition("://")[2].rstrip("/")
        """Name of the provider that people see: its address without the scheme."""
        defaults = {"resource": resource} if settings.caller_from == "access_token" else {}
        self._parameters = defaults if settings.parameters is None else settings.parameters
        self._lock = asyncio.Lock()
        self._cached_metadata: Mapping[str, Any] | Failed = {}
        self._due = 0.0

    async def check(self) -> None:
        """Check that the provider publishes its sign-in endpoints.

        Raises:
            UpstreamError: If an endpoint is missing, or the provider is unavailable.
        """
        await find_metadata(self._issuer.issuer, _NEEDED)

    async def begin(self) -> tuple[str, PendingSignIn]:
        """Return the provider's sign-in address for the browser, and the state for its cookie.

        Raises:
            RefusedError: 503 if the provider is unavailable.
        """
        endpoint = (await self._metadata())["authorization_endpoint"]
        proof = PKCEParameters.generate()
        pending = PendingSignIn(
            issuer=self._issuer.issuer,
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=proof.code_verifier,
        )
        query = self._parameters | {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": self._scope(),
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": proof.code_challenge,
            "code_challenge_method": "S256",
        }
        return f"{endpoint}?{urlencode(query)}", pending

    async def complete(self, pending: PendingSignIn, code: str, issuer: str | None) -> BearerToken:
        """Exchange the provider's code for tokens, and return the token and its caller.

        Args:
            pending: State from the browser's cookie.
            code: Authorization code. Empty if the provider refused the sign-in.
            issuer: Parameter ``iss`` of the response (RFC 9207), if any.

        Raises:
            RefusedError: 400 if the provider refused, or the response is from another provider.
                503 if the provider is unavailable or returns no tokens. Otherwise as for
                `AccessTokens.verify`.
        """
        metadata = await self._metadata()
        says_issuer = metadata.get("authorization_response_iss_parameter_supported") is True
        if issuer != self._issuer.issuer and (issuer is not None or says_issuer):
            raise RefusedError(
                400, "foreign_answer", "the response is from another identity provider"
            )
        if not code:
            raise RefusedError(400, "sign_in_refused", f"{self.label} did not sign you in.")
        tokens = await attempt(self._redeem(metadata, pending, code))
        if isinstance(tokens, Failed):
            log.warning("a sign-in at %s failed: %s", self.label, tokens.reason)
            raise self._unavailable("returned no tokens")
        claims = await self._tokens.verify_id_token(tokens.id_token, self._issuer, pending.nonce)
        if self._settings.caller_from == "id_token":
            return self._tokens.bearer_of(claims, self._issuer)
        bearer = await self._tokens.verify(tokens.access_token)
        if bearer.issuer != self._issuer.issuer:
            raise self._tokens.rejected_token("the token is from another issuer")
        return bearer

    async def sign_out_address(self) -> str:
        """Return the address of the provider's sign-out page. Empty if it is unknown."""
        metadata = await attempt(self._metadata())
        url = "" if isinstance(metadata, Failed) else metadata.get("end_session_endpoint")
        if not isinstance(url, str) or not url or address_fault(url):
            return ""
        return f"{url}?{urlencode({'client_id': self._settings.client_id})}"

    def _scope(self) -> str:
        named = sorted({*self._issuer.required_scopes, *self._issuer.scopes} - {"openid"})
        return self._settings.scope or " ".join(["openid", *named])

    async def _metadata(self) -> Mapping[str, Any]:
        """Return the provider's metadata, cached for an hour."""
        async with self._lock:
            if not self._cached_metadata or self._tokens.clock() >= self._due:
                metadata = self._cached_metadata = await attempt(
                    find_metadata(self._issuer.issuer, _NEEDED)
                )
                wait_s = RETRY_S if isinstance(metadata, Failed) else REFRESH_S
                self._due = self._tokens.clock() + wait_s
                if isinstance(metadata, Failed):
                    log.warning("people cannot sign in at %s: %s", self.label, metadata.reason)
            if isinstance(self._cached_metadata, Failed):
                raise self._unavailable("cannot be reached")
            return self._cached_metadata

    async def _redeem(
        self, metadata: Mapping[str, Any], pending: PendingSignIn, code: str
    ) -> _Tokens:
        settings = self._settings
        form = {
            **self._parameters,
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": pending.verifier,
        }
        client = {"client_id": settings.client_id}
        if settings.client_secret:
            client["client_secret"] = settings.client_secret
        methods = metadata.get("token_endpoint_auth_methods_supported")
        takes_basic = not isinstance(methods, list) or "client_secret_basic" in methods
        is_basic = len(client) > 1 and takes_basic
        answer = await fetch_json(
            metadata["token_endpoint"],
            configured=self._issuer.issuer,
            max_bytes=MAX_BYTES,
            timeout_s=FETCH_TIMEOUT_S,
            form=form if is_basic else form | client,
            client=tuple(client.values()) if is_basic else (),
        )
        # The error message contains no values, so it reveals no token.
        tokens: _Tokens = read_value(_Tokens, answer, where="the tokens")
        return tokens

    def _unavailable(self, what: str) -> RefusedError:
        detail = (
            f"{self.label} {what}; sign in again, or ask the administrator of this gateway to read "
            "its log"
        )
        after = {"Retry-After": f"{RETRY_S:.0f}"}
        return RefusedError(503, "provider_unavailable", detail, headers=after)

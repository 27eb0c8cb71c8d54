"""Verification of JSON Web Tokens as access tokens (RFC 9068), and of ID tokens.

Only the issuer's own keys count. References to keys in a header (``jku``, ``x5u``, ``jwk``) are
ignored. ID tokens, refresh tokens, and tokens bound to a key are rejected as access tokens.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jwt

from gateway.errors import UpstreamError
from gateway.runtime.cache import Clock
from gateway.serve.api.problems import RefusedError
from gateway.serve.auth import BearerToken, Challenge
from gateway.serve.identity.issuers import Issuer
from gateway.serve.identity.provider_keys import RETRY_S, Key, ProviderKeys
from gateway.types.caller import Secret

LEEWAY_S = 30.0
"""Tolerated difference between the provider's and the gateway's clock."""
MAX_TOKEN_CHARS = 16 * 1024
"""Longer tokens are rejected without parsing."""
_LATEST = 2**53
_ACCESS_TOKEN = frozenset({"at+jwt", "application/at+jwt"})
_TYPES = _ACCESS_TOKEN | {"jwt", ""}
"""Accepted values of ``typ`` in the header, in lower case."""
_OTHER_KINDS = frozenset({"id", "refresh", "offline", "logout"})
"""Values of the claims ``typ`` (Keycloak) and ``token_use`` (Cognito) in other kinds of tokens."""
_IS_ID_FAULT = "the token is an ID token"
_REJECTED_CLAIMS: Mapping[str, str] = {
    "at_hash": _IS_ID_FAULT,
    "c_hash": _IS_ID_FAULT,
    "nonce": _IS_ID_FAULT,
    "events": "the token describes an event",
    "cnf": "the token is bound to a key; only plain bearer tokens are accepted",
}
"""Reason to reject a token, keyed by a claim that bearer access tokens do not have."""
_FAULTS: Sequence[tuple[type[jwt.PyJWTError], str]] = (
    (jwt.ExpiredSignatureError, "the token has expired"),
    (jwt.ImmatureSignatureError, "the token is not valid yet"),
    (jwt.InvalidAudienceError, "the token is for another audience"),
    (
        jwt.MissingRequiredClaimError,
        "a claim of the token is missing; iss, aud, sub and exp are required",
    ),
    (jwt.InvalidSignatureError, "the signature of the token is wrong"),
    (jwt.PyJWTError, "the token cannot be verified"),
)


class AccessTokens:
    """Verifies the tokens of identity providers.

    Args:
        issuers: Accepted identity providers.
        resource: Required audience of tokens, for issuers without ``audiences``.
        metadata_url: Address of this resource's metadata, for refusals.
        clock: Clock in seconds, for the age of the providers' keys.
    """

    def __init__(
        self,
        issuers: Sequence[Issuer],
        *,
        resource: str = "",
        metadata_url: str = "",
        clock: Clock = time.monotonic,
    ) -> None:
        self._keys = {issuer.issuer: ProviderKeys(issuer, clock=clock) for issuer in issuers}
        self._resource, self.clock = resource, clock
        required = sorted(issuers[0].required_scopes) if len(issuers) == 1 else ()
        self._scope = " ".join(required)
        self.challenge = Challenge(metadata_url=metadata_url)
        self._challenges = {issuer.issuer: issuer.challenge(metadata_url) for issuer in issuers}

    def challenge_of(self, bearer: BearerToken) -> Challenge:
        """Return the challenge for a caller of *bearer* that lacks a scope."""
        return self._challenges.get(bearer.issuer, self.challenge)

    def missing_token(self) -> RefusedError:
        """Return the 401 response for a request without a token."""
        detail = "send a bearer token: Authorization: Bearer …"
        return self.challenge.refusal(401, "token_missing", detail, scope=self._scope)

    def rejected_token(self, reason: str = "") -> RefusedError:
        """Return the 401 response for a rejected token. Without *reason*, it is unknown."""
        code = "token_invalid" if reason else "token_unknown"
        reason = reason or "this bearer token is unknown"
        return self.challenge.refusal(401, code, reason, error="invalid_token", scope=self._scope)

    async def verify(self, token: str) -> BearerToken:
        """Verify an access token, and return it with its caller.

        Raises:
            RefusedError: 401 if the token is rejected, 403 if it lacks a required scope, 503 if the
                provider's keys cannot be fetched.
        """
        header, keys = self._read(token)
        issuer = keys.issuer
        audiences = issuer.audiences or (self._resource,)
        claims = await self._verify_claims(token, header, keys, audiences)
        if fault := _kind_fault(header, claims, strict=issuer.only_access_tokens):
            raise self.rejected_token(fault)
        bearer = self.bearer_of(claims, issuer)
        # Upstream servers may need the token for exchange.
        return replace(bearer, caller=replace(bearer.caller, token=Secret(token)))

    async def verify_id_token(self, token: str, issuer: Issuer, nonce: str) -> Mapping[str, Any]:
        """Verify an ID token of *issuer* for this client and *nonce*, and return its claims.

        Raises:
            RefusedError: 401 if the token is rejected, 503 if the provider's keys cannot be
                fetched.
        """
        client = issuer.sign_in.client_id if issuer.sign_in else ""
        header, keys = self._read(token)
        if keys.issuer != issuer:
            raise self.rejected_token("the token is from another issuer")
        claims = await self._verify_claims(token, header, keys, (client,))
        # A second audience could have sent it (OpenID Connect Core 3.1.3.7).
        if claims["aud"] not in (client, [client]) or claims.get("azp", client) != client:
            raise self.rejected_token("the token is for another client")
        if claims.get("nonce") != nonce:
            raise self.rejected_token("the nonce of the token belongs to another sign-in")
        return claims

    def bearer_of(self, claims: Mapping[str, Any], issuer: Issuer) -> BearerToken:
        """Return a bearer token for the caller that the verified *claims* describe.

        Raises:
            RefusedError: 403 if a required scope is missing, 401 if a claim is missing.
        """
        if issuer.required_scopes - issuer.provider_scopes(claims):
            scope = " ".join(sorted(issuer.required_scopes))
            detail = f"this needs a token with the scopes {scope!r}"
            raise self.challenge.refusal(
                403, "scope_missing", detail, error="insufficient_scope", scope=scope
            )
        expires_at = float(min(int(claims["exp"]), _LATEST)) + LEEWAY_S
        try:
            return issuer.bearer(claims, expires_at=expires_at).with_audit_name()
        except ValueError as error:
            raise self.rejected_token(str(error)) from error

    def _read(self, token: str) -> tuple[Mapping[str, Any], ProviderKeys]:
        """Return the unverified header of *token*, and the keys of its unverified issuer."""
        if len(token) > MAX_TOKEN_CHARS:
            raise self.rejected_token("the token is too long")
        try:
            unverified = jwt.decode_complete(token, options={"verify_signature": False})
        except (jwt.PyJWTError, UnicodeError) as error:
            raise self.rejected_token() from error
        header, claimed = unverified["header"], unverified["payload"].get("iss")
        keys = self._keys.get(claimed) if isinstance(claimed, str) else None
        if keys is None:
            raise self.rejected_token("the issuer of the token is not accepted")
        if header.get("alg") not in keys.issuer.algorithms:
            raise self.rejected_token("the signature algorithm of the token is not accepted")
        return header, keys

    async def _find_key(self, keys: ProviderKeys, header: Mapping[str, Any]) -> Key:
        try:
            # PyJWT has checked that ``kid`` is a string.
            key = await keys.find(header["kid"]) if "kid" in header else None
        except UpstreamError as error:
            detail = "the keys of the identity provider cannot be fetched; try again"
            after = {"Retry-After": f"{RETRY_S:.0f}"}
            raise RefusedError(503, "provider_unavailable", detail, headers=after) from error
        if key is None or key.get("alg", header["alg"]) != header["alg"]:
            raise self.rejected_token("the token names an unknown key of its issuer")
        return key

    async def _verify_claims(
        self, token: str, header: Mapping[str, Any], keys: ProviderKeys, audiences: Sequence[str]
    ) -> Mapping[str, Any]:
        key, issuer = await self._find_key(keys, header), keys.issuer
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                jwt.PyJWK(dict(key), header["alg"]),
                algorithms=issuer.algorithms,
                audience=audiences,
                issuer=issuer.issuer,
                leeway=LEEWAY_S,
                options={
                    "require": ["iss", "aud", "sub", "exp"],
                    "enforce_minimum_key_length": True,
                },
            )
        except jwt.PyJWTError as error:
            fault = next(text for kind, text in _FAULTS if isinstance(error, kind))
            raise self.rejected_token(fault) from error
        return claims


def _kind_fault(header: Mapping[str, Any], claims: Mapping[str, Any], *, strict: bool) -> str:
    """Return the reason why a token is not a bearer access token. Empty if it may be one.

    With *strict*, the header must declare an access token.
    """
    kind, claimed_kind = (
        str(header.get("typ", "")).casefold(),
        str(claims.get("typ", "")).casefold(),
    )
    if kind not in (_ACCESS_TOKEN if strict else _TYPES):
        return "the type of the token is not that of an access token"
    if {claimed_kind, str(claims.get("token_use", "")).casefold()} & _OTHER_KINDS:
        return "the token is of another kind"
    says_so = kind in _ACCESS_TOKEN or claimed_kind == "bearer"
    # Access tokens of older Keycloak versions have a nonce, so a declared kind takes precedence.
    reasons = (why for name, why in _REJECTED_CLAIMS.items() if name in claims)
    return next((why for why in reasons if not (says_so and why == _IS_ID_FAULT)), "")

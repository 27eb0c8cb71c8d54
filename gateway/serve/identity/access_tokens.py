"""JSON Web Tokens as access tokens (RFC 9068): verified, they name a party.

* The signature is one of an allow list, by a key of the issuer's own set that the header names by
  its id. Nothing else of a header is followed (``jku``, ``x5u``, ``jwk``).
* Issuer, audience, subject and expiry must be there and right. What tells that it is another kind
  of token (an ID token, a refresh token, one bound to a key that we do not check) is refused.
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
"""How far clocks may be apart."""
MAX_TOKEN_CHARS = 16 * 1024
"""A longer token is not looked at."""
_LATEST = 2**53
_ACCESS_TOKEN = frozenset({"at+jwt", "application/at+jwt"})
_TYPES = _ACCESS_TOKEN | {"jwt", ""}
"""What a header may say of the type, in small letters. Other kinds of tokens name theirs."""
_OTHER_KINDS = frozenset({"id", "refresh", "offline", "logout"})
"""What Keycloak (``typ``) and Cognito (``token_use``) call other tokens in the claims."""
_OF_A_SIGN_IN = "it is an ID token"
_OF_OTHERS: Mapping[str, str] = {
    "at_hash": _OF_A_SIGN_IN,
    "c_hash": _OF_A_SIGN_IN,
    "nonce": _OF_A_SIGN_IN,
    "events": "it tells of an event",
    "cnf": "it is bound to a key: only plain bearer tokens are accepted",
}
"""Claims that no bearer access token has, and what each says."""
_FAULTS: Sequence[tuple[type[jwt.PyJWTError], str]] = (
    (jwt.ExpiredSignatureError, "it has expired"),
    (jwt.ImmatureSignatureError, "it is not valid yet"),
    (jwt.InvalidAudienceError, "it is for another audience"),
    (jwt.MissingRequiredClaimError, "a claim is missing: it needs iss, aud, sub and exp"),
    (jwt.InvalidSignatureError, "its signature is wrong"),
    (jwt.PyJWTError, "it cannot be verified"),
)


class AccessTokens:
    """Verifies the access tokens of identity providers.

    Args:
        issuers: The providers.
        resource: The audience of tokens, where an issuer names none.
        metadata_url: Where the metadata of this resource are, for refusals.
        clock: Tells seconds, for the age of keys.
    """

    def __init__(
        self,
        issuers: Sequence[Issuer],
        *,
        resource: str = "",
        metadata_url: str = "",
        clock: Clock = time.monotonic,
    ) -> None:
        self._keys = {each.issuer: ProviderKeys(each, clock=clock) for each in issuers}
        self._resource, self.clock = resource, clock
        required = sorted(issuers[0].required_scopes) if len(issuers) == 1 else ()
        self._scope = " ".join(required)
        self.challenge = Challenge(metadata_url=metadata_url)
        self._challenges = {each.issuer: each.challenge(metadata_url) for each in issuers}

    def challenge_of(self, bearer: BearerToken) -> Challenge:
        """Return what *bearer* is told where a right is missing."""
        return self._challenges.get(bearer.issuer, self.challenge)

    def missing(self) -> RefusedError:
        """Return the refusal of a request without a token."""
        detail = "send a bearer token: Authorization: Bearer …"
        return self.challenge.refusal(401, "token_missing", detail, scope=self._scope)

    def unknown(self, reason: str = "") -> RefusedError:
        """Return the refusal of a token.

        Args:
            reason: What is wrong with it, in words of ours; empty if it is not known here.
        """
        code = "token_invalid" if reason else "token_unknown"
        reason = reason or "this bearer token is not known here"
        return self.challenge.refusal(401, code, reason, error="invalid_token", scope=self._scope)

    async def verify(self, token: str) -> BearerToken:
        """Return the party that *token* names.

        Raises:
            RefusedError: 401, if it is not accepted; 403, if it lacks a required scope; 503, if the
                keys of its provider cannot be had.
        """
        header, keys = self._read(token)
        issuer = keys.issuer
        audiences = issuer.audiences or (self._resource,)
        claims = await self._verified(token, header, keys, audiences)
        if fault := _kind_fault(header, claims, strict=issuer.only_access_tokens):
            raise self.unknown(fault)
        bearer = self.bearer_of(claims, issuer)
        # A server may want it in exchange; a token of the file is nobody else's business.
        return replace(bearer, caller=replace(bearer.caller, token=Secret(token)))

    async def verify_id_token(self, token: str, issuer: Issuer, nonce: str) -> Mapping[str, Any]:
        """Return the claims of an ID token that *issuer* made for our client and *nonce*.

        Raises:
            RefusedError: As of `verify`; 401 also if it is for another client or another nonce.
        """
        client = issuer.sign_in.client_id if issuer.sign_in else ""
        header, keys = self._read(token)
        if keys.issuer != issuer:
            raise self.unknown("it is of another issuer")
        claims = await self._verified(token, header, keys, (client,))
        # Nobody else may be an audience: it could have been given to that one (Core, 3.1.3.7).
        if claims["aud"] not in (client, [client]) or claims.get("azp", client) != client:
            raise self.unknown("it is for another client")
        if claims.get("nonce") != nonce:
            raise self.unknown("its nonce is not that of this sign-in")
        return claims

    def bearer_of(self, claims: Mapping[str, Any], issuer: Issuer) -> BearerToken:
        """Return the party that verified *claims* of *issuer* name.

        Raises:
            RefusedError: 403, if they lack a required scope; 401, if they lack a claim.
        """
        if issuer.required_scopes - issuer.provider_scopes(claims):
            scope = " ".join(sorted(issuer.required_scopes))
            detail = f"this needs a token with the scopes {scope!r}"
            raise self.challenge.refusal(
                403, "scope_missing", detail, error="insufficient_scope", scope=scope
            )
        expires_at = float(min(int(claims["exp"]), _LATEST)) + LEEWAY_S
        try:
            return issuer.bearer(claims, expires_at=expires_at).named()
        except ValueError as error:
            raise self.unknown(str(error)) from error

    def _read(self, token: str) -> tuple[Mapping[str, Any], ProviderKeys]:
        """Return the header of *token*, and the keys of the issuer that it claims to be of."""
        if len(token) > MAX_TOKEN_CHARS:
            raise self.unknown("it is too long")
        try:
            unverified = jwt.decode_complete(token, options={"verify_signature": False})
        except (jwt.PyJWTError, UnicodeError) as error:
            raise self.unknown() from error
        header, claimed = unverified["header"], unverified["payload"].get("iss")
        keys = self._keys.get(claimed) if isinstance(claimed, str) else None
        if keys is None:
            raise self.unknown("its issuer is not accepted here")
        if header.get("alg") not in keys.issuer.algorithms:
            raise self.unknown("its signature algorithm is not accepted here")
        return header, keys

    async def _find_key(self, keys: ProviderKeys, header: Mapping[str, Any]) -> Key:
        try:
            # PyJWT has checked that an id is a text.
            key = await keys.find(header["kid"]) if "kid" in header else None
        except UpstreamError as error:
            detail = "the identity provider cannot be asked for its keys: try again"
            after = {"Retry-After": f"{RETRY_S:.0f}"}
            raise RefusedError(503, "provider_unavailable", detail, headers=after) from error
        if key is None or key.get("alg", header["alg"]) != header["alg"]:
            raise self.unknown("it names no key of its issuer")
        return key

    async def _verified(
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
            raise self.unknown(fault) from error
        return claims


def _kind_fault(header: Mapping[str, Any], claims: Mapping[str, Any], *, strict: bool) -> str:
    """Return why a token is no bearer access token; empty if nothing tells that."""
    kind, own = str(header.get("typ", "")).casefold(), str(claims.get("typ", "")).casefold()
    if kind not in (_ACCESS_TOKEN if strict else _TYPES):
        return "its type is not that of an access token"
    if {own, str(claims.get("token_use", "")).casefold()} & _OTHER_KINDS:
        return "it is another kind of token"
    says_so = kind in _ACCESS_TOKEN or own == "bearer"
    # Older versions of Keycloak put a nonce into access tokens too.
    found = (why for name, why in _OF_OTHERS.items() if name in claims)
    return next((why for why in found if not (says_so and why == _OF_A_SIGN_IN)), "")

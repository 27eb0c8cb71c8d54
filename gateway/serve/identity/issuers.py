"""Configuration of accepted identity providers, and the mapping of token claims to callers.

* A user is ``ISSUER#SUBJECT``. The address of an issuer contains no ``#`` (RFC 8414, section 2), so
  users of different issuers are distinct.
* Scopes and groups of the provider grant only the scopes that they are mapped to. Scopes with
  ``scope_prefix`` also grant themselves, except the gateway's own rights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, Strict, model_validator

from gateway.mcp.ssrf_guard import is_local
from gateway.runtime.json_models import StrictModel, Text
from gateway.serve.auth import OPERATOR, BearerToken, Challenge, Scope
from gateway.types import ALL_SCOPES, Caller

Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
"""Signature algorithms in which only the provider has the key that signs."""
ALGORITHMS: tuple[Algorithm, ...] = ("RS256", "PS256", "ES256", "ES384", "EdDSA")
CALLBACK = "/account/callback"
"""Path to which a provider redirects a browser after sign-in."""
Claim = Text | Annotated[tuple[Text, ...], Strict(strict=False), Field(min_length=1)]
"""Name of a claim, or the names that lead to a nested claim."""
_Texts = Annotated[tuple[Text, ...], Strict(strict=False)]
_Claims = Annotated[tuple[Claim, ...], Strict(strict=False)]
_Scopes = Annotated[frozenset[Scope], Strict(strict=False)]
_MAX_LABEL_CHARS = 255
"""Maximum length of a token's subject (OpenID Connect Core, section 2)."""


class BrowserSignIn(StrictModel):
    """Browser sign-in at a provider: the table ``[issuers.NAME.sign_in]`` of the token file."""

    client_id: Text
    client_secret: str = Field(default="", repr=False)
    """Secret of the client at the provider, or a reference to it. Empty for a public client."""
    redirect_uri: str = ""
    """Address to which the provider redirects browsers. Empty uses `CALLBACK` at the resource."""
    caller_from: Literal["access_token", "id_token"] = "access_token"
    """Token whose claims identify the caller."""
    scope: str = ""
    """Scopes that the sign-in requests. Empty requests ``openid`` and all provider scopes that the
    issuer's table names."""
    parameters: dict[Text, str] | None = None
    """Additional parameters of the sign-in and token requests. None sends ``resource`` if
    `caller_from` is ``access_token``."""


class Issuer(StrictModel):
    """An identity provider: the table ``[issuers.NAME]`` of the token file."""

    issuer: Text
    """Identifier of the issuer, exactly as in its tokens."""
    audiences: _Texts = ()
    """Accepted audiences of tokens. Empty accepts only the address of the gateway."""
    jwks_uri: str = ""
    """Address of the provider's public keys. Empty uses the provider's metadata."""
    algorithms: Annotated[tuple[Algorithm, ...], Strict(strict=False), Field(min_length=1)] = (
        ALGORITHMS
    )
    only_access_tokens: bool = False
    """True to accept only tokens of the type ``at+jwt`` (RFC 9068)."""
    user_claim: Claim = "sub"
    tenant_claim: Claim | None = None
    tenant: str = ""
    """Tenant of all users of this provider, instead of a tenant claim."""
    scope_claims: _Claims = ("scope", "scp")
    group_claims: _Claims = ("groups",)
    required_scopes: _Scopes = frozenset()
    """Scopes of the provider that a token must have."""
    scope_prefix: str = ""
    """Provider scopes with this prefix are granted under the same name, except the gateway's own
    rights. Empty grants none."""
    scopes: dict[Scope, _Scopes] = Field(default_factory=dict)
    """Granted scopes, keyed by scope of the provider."""
    groups: dict[Text, _Scopes] = Field(default_factory=dict)
    """Granted scopes, keyed by group of the provider."""
    sign_in: BrowserSignIn | None = None
    """Browser sign-in at this provider. None disables it."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, url in (("issuer", self.issuer), ("jwks_uri", self.jwks_uri)):
            if url and (fault := address_fault(url)):
                raise ValueError(f"{name} {fault}")
        back = self.sign_in.redirect_uri if self.sign_in else ""
        if back and (address_fault(back) or not urlsplit(back).path == CALLBACK):
            raise ValueError(f"redirect_uri must be an https address with the path {CALLBACK}")
        if self.tenant and self.tenant_claim:
            raise ValueError("tenant and tenant_claim exclude each other")
        return self

    def bearer(self, claims: Mapping[str, Any], *, expires_at: float) -> BearerToken:
        """Return a bearer token for the caller that verified *claims* describe.

        *expires_at* is Unix time in seconds.

        Raises:
            ValueError: If a required claim is missing or invalid. The message names the claim.
        """
        tenant = self.tenant
        if self.tenant_claim:
            tenant = f"{self.issuer}#{_label(claims, self.tenant_claim)}"
        caller = Caller(
            user=f"{self.issuer}#{_label(claims, self.user_claim)}",
            tenant=tenant,
            scopes=self._scopes_of(claims),
        )
        name = f"{self.issuer}#{_label(claims, 'sub')}"
        return BearerToken(name=name, caller=caller, issuer=self.issuer, expires_at=expires_at)

    def provider_scopes(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """Return the scopes in *claims*, as the provider names them."""
        return frozenset(_texts(claims, self.scope_claims))

    def _scopes_of(self, claims: Mapping[str, Any]) -> frozenset[str]:
        scopes = self.provider_scopes(claims)
        groups = frozenset(_texts(claims, self.group_claims, splits=False))
        mapped = [granted for name, granted in self.scopes.items() if name in scopes]
        mapped += [granted for name, granted in self.groups.items() if name in groups]
        if self.scope_prefix:
            passing = frozenset(name for name in scopes if name.startswith(self.scope_prefix))
            mapped.append(passing - {ALL_SCOPES, *OPERATOR})
        return frozenset[str]().union(*mapped)

    def challenge(self, metadata_url: str) -> Challenge:
        """Return the challenge for users that lack a scope.

        *metadata_url* is the address of the protected resource's metadata.
        """
        granting = {
            scope: name
            for name, scopes in sorted(self.scopes.items(), reverse=True)
            for scope in scopes
        }
        return Challenge(metadata_url=metadata_url, granting=granting)


def address_fault(url: str) -> str:
    """Return the reason why *url* is not a valid address of a provider or resource, or ""."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "is not an address"
    if not host or "#" in url or "?" in url or not url.isascii() or not url.isprintable():
        return "must be an address without '?' and '#'"
    if "@" in parts.netloc:
        return "must not contain a user or password"
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local(url)):
        return "must be an https address"
    return ""


def _find(claims: Mapping[str, Any], claim: Claim) -> object:
    value: object = claims
    for step in (claim,) if isinstance(claim, str) else claim:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _label(claims: Mapping[str, Any], claim: Claim) -> str:
    value = _find(claims, claim)
    name = claim if isinstance(claim, str) else ".".join(claim)
    if not isinstance(value, str) or not value:
        raise ValueError(f"the claim {name!r} is missing, or is not a text")
    if len(value) > _MAX_LABEL_CHARS or not value.isprintable():
        raise ValueError(f"the claim {name!r} is too long, or contains invisible characters")
    return value


def _texts(
    claims: Mapping[str, Any], names: tuple[Claim, ...], *, splits: bool = True
) -> Iterator[str]:
    """Yield the strings in the claims *names*. *splits* splits claims of one string at spaces."""
    for name in names:
        value = _find(claims, name)
        if isinstance(value, str):
            yield from value.split(" ") if splits else [value]
        elif isinstance(value, list):
            yield from (text for text in value if isinstance(text, str))

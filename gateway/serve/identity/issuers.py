"""An identity provider whose access tokens are accepted, and which caller a token names.

* A user is ``ISSUER#SUBJECT``: an issuer has no ``#`` in its address (RFC 8414, section 2), so two
  issuers never name one user, nor does a token of a file unless the host wrote that very text.
* Scopes and groups of the provider give the scopes that they are mapped to, and no others. With
  ``scope_prefix`` scopes that begin so pass as they are; rights of the gateway never do.
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
"""Signatures with a key of which only the provider has the private half."""
ALGORITHMS: tuple[Algorithm, ...] = ("RS256", "PS256", "ES256", "ES384", "EdDSA")
CALLBACK = "/account/callback"
"""The path to which a provider sends a browser back."""
Claim = Text | Annotated[tuple[Text, ...], Strict(strict=False), Field(min_length=1)]
"""The name of a claim, or the names that lead to it through objects."""
_Texts = Annotated[tuple[Text, ...], Strict(strict=False)]
_Claims = Annotated[tuple[Claim, ...], Strict(strict=False)]
_Scopes = Annotated[frozenset[Scope], Strict(strict=False)]
_MAX_LABEL_CHARS = 255
"""OpenID Connect Core, section 2: no subject is longer."""


class BrowserSignIn(StrictModel):
    """How people sign in at a provider in a browser: a table ``[issuers.NAME.sign_in]``."""

    client_id: Text
    client_secret: str = Field(default="", repr=False)
    """A reference, where it stands in a file; empty for a public client."""
    redirect_uri: str = ""
    """Where the provider sends browsers back to; empty is `CALLBACK` beside the resource."""
    caller_from: Literal["access_token", "id_token"] = "access_token"
    """Which token names the caller."""
    scope: str = ""
    """What is asked for; empty asks for ``openid`` and all scopes that the issuer's entry names."""
    parameters: dict[Text, str] | None = None
    """More parameters of both requests; None sends the ``resource``."""


class Issuer(StrictModel):
    """An identity provider, as a table ``[issuers.NAME]`` has it."""

    issuer: Text
    """To the letter as in its tokens."""
    audiences: _Texts = ()
    """A token names one of these; empty is the address of the gateway itself."""
    jwks_uri: str = ""
    """Where its public keys are; empty has its metadata tell."""
    algorithms: Annotated[tuple[Algorithm, ...], Strict(strict=False), Field(min_length=1)] = (
        ALGORITHMS
    )
    only_access_tokens: bool = False
    """Whether a token must say that it is an access token (``at+jwt``; RFC 9068)."""
    user_claim: Claim = "sub"
    tenant_claim: Claim | None = None
    tenant: str = ""
    """The tenant of all its users, where no claim names it."""
    scope_claims: _Claims = ("scope", "scp")
    group_claims: _Claims = ("groups",)
    required_scopes: _Scopes = frozenset()
    """Those of the provider without which a token is refused."""
    scope_prefix: str = ""
    """Its scopes that begin so pass as they are, but for rights; empty lets none pass."""
    scopes: dict[Scope, _Scopes] = Field(default_factory=dict)
    """Scopes of callers, by scope of the provider."""
    groups: dict[Text, _Scopes] = Field(default_factory=dict)
    """Scopes of callers, by group of the provider."""
    sign_in: BrowserSignIn | None = None
    """None: no browser can sign in there."""

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
        """Return the party that *claims* name, which were verified.

        Args:
            claims: Of an access token.
            expires_at: When it ends, in seconds since the epoch.

        Raises:
            ValueError: A claim that is needed is missing or no label; the message says which.
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
        """Return the scopes of the provider that *claims* hold."""
        return frozenset(_texts(claims, self.scope_claims))

    def _scopes_of(self, claims: Mapping[str, Any]) -> frozenset[str]:
        scopes = self.provider_scopes(claims)
        groups = frozenset(_texts(claims, self.group_claims, splits=False))
        mapped = [own for name, own in self.scopes.items() if name in scopes]
        mapped += [own for name, own in self.groups.items() if name in groups]
        if self.scope_prefix:
            passing = frozenset(name for name in scopes if name.startswith(self.scope_prefix))
            mapped.append(passing - {ALL_SCOPES, *OPERATOR})
        return frozenset[str]().union(*mapped)

    def challenge(self, metadata_url: str) -> Challenge:
        """Return what its users are told where a right is missing.

        Args:
            metadata_url: Where the metadata of the protected resource is.
        """
        granting = {
            own: name
            for name, scopes in sorted(self.scopes.items(), reverse=True)
            for own in scopes
        }
        return Challenge(metadata_url=metadata_url, granting=granting)


def address_fault(url: str) -> str:
    """Return why *url* is no address of a provider or a resource; empty if it is one."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "is no address"
    if not host or "#" in url or "?" in url or not url.isascii() or not url.isprintable():
        return "must be an address without '?' and '#'"
    if "@" in parts.netloc:
        return "must hold no user and no password"
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
        raise ValueError(f"it has no text {name!r}")
    if len(value) > _MAX_LABEL_CHARS or not value.isprintable():
        raise ValueError(f"its {name!r} is no label")
    return value


def _texts(
    claims: Mapping[str, Any], names: tuple[Claim, ...], *, splits: bool = True
) -> Iterator[str]:
    """Return the texts that claims hold: a list of texts, or one text, which blanks may split."""
    for name in names:
        value = _find(claims, name)
        if isinstance(value, str):
            yield from value.split(" ") if splits else [value]
        elif isinstance(value, list):
            yield from (text for text in value if isinstance(text, str))

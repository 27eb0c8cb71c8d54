"""Authentication of requests by tokens of the token file or of identity providers.

The token file is TOML:

[tokens.dashboard]
token = "${DASHBOARD_TOKEN}"
scopes = ["catalog:write", "billing"]
tenant = "acme"
user = "ada"

``resource`` and ``[issuers.NAME]`` are described in `gateway.serve.identity.issuers`.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypedDict
from urllib.parse import parse_qs, urlsplit

from mcp.server.auth.routes import build_resource_metadata_url
from pydantic import AnyHttpUrl, Field

from gateway.errors import ConfigError
from gateway.runtime.cache import Clock
from gateway.runtime.json_models import StrictModel, read_value
from gateway.runtime.secrets import read_secret
from gateway.serve import auth
from gateway.serve.auth import BearerToken, Challenge, Scope
from gateway.serve.http_options import HttpOptions
from gateway.serve.identity.access_tokens import AccessTokens
from gateway.serve.identity.code_flow import ProviderSignIn
from gateway.serve.identity.issuers import Issuer
from gateway.types import Caller

METADATA_PATH = "/.well-known/oauth-protected-resource"


class Authenticator:
    """Authenticates requests. The accepted tokens can be replaced while the server runs.

    *clock* returns seconds, for the age of the providers' keys.
    """

    def __init__(self, options: HttpOptions, *, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self.changes = 0
        """Number of replacements of the accepted tokens. Each ends all browser sessions."""
        self._accept(options)
        self._trust(options)

    def replace(self, options: HttpOptions) -> None:
        """Accept only the tokens and identity providers in *options* from now on."""
        before = self._options
        if options == before:
            return
        self.changes += 1
        self._accept(options)
        if (options.issuers, options.resource) != (before.issuers, before.resource):
            self._trust(options)

    def _accept(self, options: HttpOptions) -> None:
        self._options, self._tokens = options, options.accepted_tokens()

    def _trust(self, options: HttpOptions) -> None:
        """Accept the identity providers in *options*. Their keys are fetched again."""
        resource = options.resource
        url = str(build_resource_metadata_url(AnyHttpUrl(resource))) if options.issuers else ""
        self._access_tokens = AccessTokens(
            options.issuers, resource=resource, metadata_url=url, clock=self._clock
        )
        self.sign_ins: Mapping[str, ProviderSignIn] = {
            issuer.issuer: ProviderSignIn(issuer, issuer.sign_in, resource, self._access_tokens)
            for issuer in options.issuers
            if issuer.sign_in
        }
        """Browser sign-ins of the providers that offer them, keyed by issuer."""
        self._metadata = _metadata(options)
        self._metadata_paths = {METADATA_PATH, urlsplit(url).path} if url else set[str]()

    @property
    def needs_token(self) -> bool:
        """True if requests need a token."""
        return self._options.needs_token

    def metadata(self, path: str) -> Mapping[str, object] | None:
        """Return the resource's metadata (RFC 9728) if *path* is their address, else None."""
        return self._metadata if path in self._metadata_paths else None

    def challenge_of(self, bearer: BearerToken) -> Challenge:
        """Return the challenge for a caller of *bearer* that lacks a scope."""
        return self._access_tokens.challenge_of(bearer)

    async def authenticate(self, authorization: Sequence[str], query: str = "") -> BearerToken:
        """Return the accepted token of a request, with its caller.

        *authorization* has all ``Authorization`` headers, and *query* is the query string.

        Raises:
            RefusedError: 401 if a required token is missing or unknown. 400 for several tokens, or
                for a token in the address, which logs would store. Otherwise as for
                `AccessTokens.verify`.
        """
        if len(authorization) > 1 or "access_token" in parse_qs(query, keep_blank_values=True):
            detail = "send one bearer token in one Authorization header, never in the address"
            challenge = self._access_tokens.challenge
            raise challenge.refusal(400, "token_misplaced", detail, error="invalid_request")
        secret = auth.bearer_secret(authorization[0]) if authorization else ""
        if bearer := auth.find_token(self._tokens, secret):
            return bearer.with_audit_name()
        if not secret:
            raise self._access_tokens.missing_token()
        return await self._access_tokens.verify(secret)


def _metadata(options: HttpOptions) -> Mapping[str, object]:
    """Return the metadata of the protected resource (RFC 9728, section 2)."""
    named = {
        name for issuer in options.issuers for name in (*issuer.required_scopes, *issuer.scopes)
    }
    return {
        "resource": options.resource,
        "authorization_servers": [issuer.issuer for issuer in options.issuers],
        "bearer_methods_supported": ["header"],
        **({"scopes_supported": sorted(named)} if named else {}),
    }


MIN_SECRET_CHARS = 16
"""Minimum length of a token's secret. Shorter secrets can be guessed."""


class TokenFile(TypedDict):
    """Content of a token file, as arguments of `HttpOptions`."""

    tokens: tuple[BearerToken, ...]
    issuers: tuple[Issuer, ...]
    resource: str


NOBODY = TokenFile(tokens=(), issuers=(), resource="")
"""Content of a missing token file, which accepts no callers."""


class _TokenEntry(StrictModel):
    token: str = ""
    scopes: list[Scope] = Field(default_factory=list)
    tenant: str = ""
    user: str = ""


class _TokenFile(StrictModel):
    tokens: Annotated[dict[str, _TokenEntry], Field(default_factory=dict)]
    resource: str = ""
    issuers: Annotated[dict[str, Issuer], Field(default_factory=dict)]


def read_token_file(path: Path) -> TokenFile:
    """Read a file of tokens and identity providers.

    Raises:
        ConfigError: If the file is invalid, contains a secret instead of a reference, or refers to
            a missing secret.
    """
    where = repr(str(path))
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where} cannot be read: {error}") from error
    file: _TokenFile = read_value(_TokenFile, table, where=where)
    if not (file.tokens or file.issuers):
        raise ConfigError(f"{where} accepts no callers: add 'tokens' or 'issuers'")
    tokens = tuple(
        BearerToken.from_secret(
            name,
            _read_secret(name, entry.token),
            Caller(user=entry.user, tenant=entry.tenant, scopes=frozenset(entry.scopes)),
        )
        for name, entry in file.tokens.items()
    )
    if len({token.digest for token in tokens}) < len(tokens):
        raise ConfigError(f"{where}: two tokens are the same; give each its own secret")
    issuers = tuple(_with_secret(name, issuer) for name, issuer in file.issuers.items())
    return TokenFile(tokens=tokens, issuers=issuers, resource=file.resource)


def _with_secret(name: str, issuer: Issuer) -> Issuer:
    """Return *issuer*, called *name*, with its client secret instead of the reference."""
    sign_in = issuer.sign_in
    if sign_in is None or not sign_in.client_secret:
        return issuer
    secret = read_secret(sign_in.client_secret, owner=f"client_secret of issuer {name!r}")
    update = {"sign_in": sign_in.model_copy(update={"client_secret": secret})}
    return issuer.model_copy(update=update)


def _read_secret(name: str, reference: str) -> str:
    secret = read_secret(reference, owner=f"token {name!r}")
    if len(secret) < MIN_SECRET_CHARS:
        raise ConfigError(
            f"token {name!r} is too short; use at least {MIN_SECRET_CHARS} random characters"
        )
    return secret

"""The TOML file that says who may call: tokens, and identity providers.

[tokens.dashboard]
token = "${DASHBOARD_TOKEN}"
scopes = ["catalog:write", "billing"]
tenant = "acme"
user = "ada"

resource and [issuers.NAME]: see `gateway.serve.identity.issuers`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, TypedDict

from pydantic import Field

from gateway.errors import ConfigError
from gateway.runtime.json_models import StrictModel, read_value
from gateway.runtime.secrets import read_secret
from gateway.serve.auth import BearerToken, Scope
from gateway.serve.identity.issuers import Issuer
from gateway.types import Caller

MIN_SECRET_CHARS = 16
"""A shorter secret can be guessed."""


class TokenFile(TypedDict):
    """The callers that are accepted, as options of `HttpOptions`."""

    tokens: tuple[BearerToken, ...]
    issuers: tuple[Issuer, ...]
    resource: str


NOBODY = TokenFile(tokens=(), issuers=(), resource="")
"""Where there is no file."""


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
        ConfigError: It cannot be read, has another form, holds a secret instead of a reference, or
            refers to a missing secret.
    """
    where = repr(str(path))
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where} cannot be read: {error}") from error
    file: _TokenFile = read_value(_TokenFile, table, where=where)
    if not (file.tokens or file.issuers):
        raise ConfigError(f"{where} names nobody: 'tokens' is missing, and 'issuers' too")
    tokens = tuple(
        BearerToken.from_secret(
            name,
            _read_secret(name, entry.token),
            Caller(user=entry.user, tenant=entry.tenant, scopes=frozenset(entry.scopes)),
        )
        for name, entry in file.tokens.items()
    )
    if len({token.digest for token in tokens}) < len(tokens):
        raise ConfigError(f"{where}: two tokens are the same: give each its own secret")
    issuers = tuple(_with_secret(name, issuer) for name, issuer in file.issuers.items())
    return TokenFile(tokens=tokens, issuers=issuers, resource=file.resource)


def _with_secret(name: str, issuer: Issuer) -> Issuer:
    """Return *issuer* with the secret of the client in place of a reference to it."""
    sign_in = issuer.sign_in
    if sign_in is None or not sign_in.client_secret:
        return issuer
    secret = read_secret(sign_in.client_secret, owner=f"client_secret of issuer {name!r}")
    update = {"sign_in": sign_in.model_copy(update={"client_secret": secret})}
    return issuer.model_copy(update=update)


def _read_secret(name: str, reference: str) -> str:
    secret = read_secret(reference, owner=f"token {name!r}")
    if len(secret) < MIN_SECRET_CHARS:
        raise ConfigError(f"token {name!r}: take at least {MIN_SECRET_CHARS} random characters")
    return secret

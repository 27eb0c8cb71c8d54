"""Bearer tokens with scopes (RFC 6750), and the TOML file that lists them.

* A token is kept as its SHA-256 alone, and compared with every known one in constant time.
* Two scopes are rights of this API; all others are scopes of entities.

[tokens.dashboard]
token = "${DASHBOARD_TOKEN}"
scopes = ["catalog:write", "billing"]
"""

from __future__ import annotations

import hashlib
import secrets
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from gateway.errors import ConfigError
from gateway.manifests.secrets import read_secret
from gateway.runtime.json_models import StrictModel, read_value
from gateway.serve.api.problems import RefusedError
from gateway.serve.http import REALM, bearer_secret

WRITE = "catalog:write"
"""Allows to add, change and remove entities."""
ADMIN = "catalog:admin"
"""Allows to rebuild the index, and to read why a build failed."""
ALL_SCOPES = "*"
"""Stands for every scope."""
OPERATOR = frozenset({WRITE, ADMIN})
"""The scopes of the server's own token, and of every caller where no token is needed."""
MIN_SECRET_CHARS = 16
"""A shorter secret can be guessed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCaller:
    """The sender of a request, known by its token."""

    name: str = ""
    """The name of its token; empty without one."""
    scopes: frozenset[str] = frozenset()
    digest: bytes = b""
    """SHA-256 of the token; the token itself is not kept."""

    @classmethod
    def from_secret(cls, name: str, secret: str, scopes: Iterable[str] = ()) -> ApiCaller:
        """Return the caller whose token is *secret*."""
        return cls(name=name, scopes=frozenset(scopes), digest=_digest(secret))

    def has_scope(self, scope: str) -> bool:
        """Return whether the caller holds *scope*."""
        return scope in self.scopes or ALL_SCOPES in self.scopes

    def check_right(self, right: str) -> None:
        """Refuse a caller that lacks *right*; an empty right is granted to every caller.

        Raises:
            RefusedError: 403, naming the missing scope.
        """
        if right and not self.has_scope(right):
            detail = f"this needs a token with the scope {right!r}"
            error = f', error="insufficient_scope", scope="{right}"'
            raise _challenge(403, "scope_missing", detail, error)


ANONYMOUS = ApiCaller()


def authenticate(callers: Sequence[ApiCaller], authorization: str) -> ApiCaller:
    """Return the one of *callers* that the header *authorization* names by its token.

    Without any of them every caller is the operator, which only a server on loopback may allow.

    Raises:
        RefusedError: 401, if the token is missing or unknown.
    """
    if not callers:
        return ApiCaller(scopes=OPERATOR)
    secret = bearer_secret(authorization)
    if not secret:
        raise _challenge(401, "token_missing", "send a bearer token: Authorization: Bearer …")
    digest = _digest(secret)
    found = [each for each in callers if secrets.compare_digest(each.digest, digest)]
    if not found:
        detail, error = "this bearer token is not known here", ', error="invalid_token"'
        raise _challenge(401, "token_unknown", detail, error)
    return found[-1]


def _challenge(status: int, code: str, detail: str, error: str = "") -> RefusedError:
    return RefusedError(status, code, detail, headers={"WWW-Authenticate": REALM + error})


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


_Scope = Annotated[str, Field(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]{1,128}$")]
"""RFC 6749, section 3.3."""


class _TokenEntry(StrictModel):
    token: str = ""
    scopes: list[_Scope] = Field(default_factory=list)


class _TokenFile(StrictModel):
    tokens: Annotated[dict[str, _TokenEntry], Field(min_length=1)]


def read_tokens(path: Path) -> tuple[ApiCaller, ...]:
    """Read a file of tokens.

    Raises:
        ConfigError: It cannot be read, has another form, holds a secret instead of a reference, or
            refers to a missing secret.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error
    file: _TokenFile = read_value(_TokenFile, table, where=repr(str(path)))
    callers = tuple(
        ApiCaller.from_secret(name, _read_secret(name, entry.token), entry.scopes)
        for name, entry in file.tokens.items()
    )
    if len({caller.digest for caller in callers}) < len(callers):
        raise ConfigError(f"{str(path)!r}: two tokens are the same: give each its own secret")
    return callers


def _read_secret(name: str, reference: str) -> str:
    secret = read_secret(reference, owner=f"token {name!r}")
    if len(secret) < MIN_SECRET_CHARS:
        raise ConfigError(f"token {name!r}: take at least {MIN_SECRET_CHARS} random characters")
    return secret

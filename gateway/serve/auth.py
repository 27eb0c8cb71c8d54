"""Bearer tokens with scopes (RFC 6750), and the TOML file that lists them.

* A token is kept as its SHA-256 alone, and compared with every known one in constant time.
* Five scopes are rights: of the API, of metrics, to install, to call; all others are scopes of
  entities.
* `/mcp` and the API accept the same tokens. The SDK keeps a session to the token that began it.

[tokens.dashboard]
token = "${DASHBOARD_TOKEN}"
scopes = ["catalog:write", "billing"]
tenant = "acme"
user = "ada"
"""

from __future__ import annotations

import hashlib
import secrets
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from pydantic import Field

from gateway.errors import ConfigError
from gateway.manifests.secrets import read_secret
from gateway.runtime.json_models import StrictModel, read_value
from gateway.serve.api.problems import RefusedError
from gateway.types import ANYONE, Caller

REALM = 'Bearer realm="gateway"'
"""The challenge of a response that asks for a token."""
WRITE = "catalog:write"
"""Allows to add, change and remove entities."""
ADMIN = "catalog:admin"
"""Allows to rebuild the index, and to read why a build failed."""
METRICS = "metrics:read"
"""Allows to read the metrics, and the spans of all callers. They name tools and servers whoever may
see them."""
INSTALL = "catalog:install"
"""Allows to bring servers in, with `gateway serve --with install`."""
CALL = "catalog:call"
"""Allows to call tools from the console. A client of `/mcp` needs no right to call."""
OPERATOR = frozenset({WRITE, ADMIN, METRICS, INSTALL, CALL})
"""The rights of the server's own token, and of every caller where no token is needed."""
CALLER = "gateway.caller"
"""The key of a scope under which the guard notes the caller of a request."""
LIVENESS = "/api/health"
"""The one path of the API that needs no token."""
LIVEZ = "/livez"
READYZ = "/readyz"
PROBES = frozenset({LIVEZ, READYZ})
"""Answered without a token and whatever the Host: an orchestrator asks by the address of a
container."""
MIN_SECRET_CHARS = 16
"""A shorter secret can be guessed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerToken:
    """A bearer token that is accepted, and the party that bears it."""

    name: str
    caller: Caller
    digest: bytes = field(default=b"", repr=False)
    """SHA-256 of the secret, which itself is not kept; empty if requests need none."""

    @classmethod
    def from_secret(cls, name: str, secret: str, caller: Caller) -> BearerToken:
        """Return the token whose secret is *secret*."""
        return cls(name=name, caller=caller, digest=_digest(secret))

    def to_user(self) -> AuthenticatedUser:
        """Return its bearer as the SDK has it; `caller_of` reads that again."""
        access = AccessToken(
            token="",
            client_id=self.name,
            scopes=sorted(self.caller.scopes),
            subject=self.caller.user or None,
            claims={"tenant": self.caller.tenant},
        )
        return AuthenticatedUser(access)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConnectionContext:
    """What the requests of one connection share."""

    caller: Caller
    """The party that asks where no access token names one."""


def caller_of(context: ServerRequestContext[Any]) -> Caller:
    """Return the caller that the access token of a request names, or else its connection."""
    user = getattr(context.request, "scope", {}).get("user")
    if isinstance(user, AuthenticatedUser):
        return caller_of_token(user.access_token)
    connection = context.lifespan_context
    return connection.caller if isinstance(connection, ConnectionContext) else ANYONE


def caller_of_token(access: AccessToken) -> Caller:
    """Return the caller that *access* names: its scopes, its subject and the claim ``tenant``."""
    tenant = (access.claims or {}).get("tenant")
    return Caller(
        user=access.subject or "",
        tenant=tenant if isinstance(tenant, str) else "",
        scopes=frozenset(access.scopes),
    )


def check_right(caller: Caller, right: str) -> None:
    """Refuse a caller that lacks *right*; an empty right is granted to every caller.

    Raises:
        RefusedError: 403, naming the missing scope.
    """
    if right and not caller.holds({right}):
        detail = f"this needs a token with the scope {right!r}"
        error = f', error="insufficient_scope", scope="{right}"'
        raise _challenge(403, "scope_missing", detail, error)


def authenticate(tokens: Sequence[BearerToken], authorization: str) -> BearerToken:
    """Return the one of *tokens* that the header *authorization* names.

    Raises:
        RefusedError: 401, if a token is needed, and it is missing or unknown.
    """
    secret = bearer_secret(authorization)
    digest = _digest(secret)
    found = [each for each in tokens if secrets.compare_digest(each.digest or digest, digest)]
    if found:
        return found[-1]
    if not secret:
        raise _challenge(401, "token_missing", "send a bearer token: Authorization: Bearer …")
    detail, error = "this bearer token is not known here", ', error="invalid_token"'
    raise _challenge(401, "token_unknown", detail, error)


def bearer_secret(authorization: str) -> str:
    """Return the token of a header ``Authorization`` (RFC 6750); empty if it holds none."""
    scheme, _, secret = authorization.partition(" ")
    return secret.strip() if scheme.casefold() == "bearer" else ""


def _challenge(status: int, code: str, detail: str, error: str = "") -> RefusedError:
    return RefusedError(status, code, detail, headers={"WWW-Authenticate": REALM + error})


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


_Scope = Annotated[str, Field(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]{1,128}$")]
"""RFC 6749, section 3.3."""


class _TokenEntry(StrictModel):
    token: str = ""
    scopes: list[_Scope] = Field(default_factory=list)
    tenant: str = ""
    user: str = ""


class _TokenFile(StrictModel):
    tokens: Annotated[dict[str, _TokenEntry], Field(min_length=1)]


def read_tokens(path: Path) -> tuple[BearerToken, ...]:
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
    tokens = tuple(
        BearerToken.from_secret(
            name,
            _read_secret(name, entry.token),
            Caller(user=entry.user, tenant=entry.tenant, scopes=frozenset(entry.scopes)),
        )
        for name, entry in file.tokens.items()
    )
    if len({token.digest for token in tokens}) < len(tokens):
        raise ConfigError(f"{str(path)!r}: two tokens are the same: give each its own secret")
    return tokens


def _read_secret(name: str, reference: str) -> str:
    secret = read_secret(reference, owner=f"token {name!r}")
    if len(secret) < MIN_SECRET_CHARS:
        raise ConfigError(f"token {name!r}: take at least {MIN_SECRET_CHARS} random characters")
    return secret

"""Bearer tokens (RFC 6750), their callers, and the scopes that are rights of the server.

* Only the SHA-256 of a token is stored. Tokens are compared in constant time.
* The scopes in `OPERATOR` are rights. All other scopes are required scopes of entities.
* ``/mcp`` and the API accept the same tokens. The MCP SDK binds a session to its first caller.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from pydantic import Field

from gateway.serve.api.problems import RefusedError
from gateway.types import ANYONE, Caller
from gateway.types.caller import TOKEN

REALM = 'Bearer realm="gateway"'
WRITE = "catalog:write"
"""Right to add, change and remove entities."""
ADMIN = "catalog:admin"
"""Right to rebuild the index, and to read why a build failed."""
METRICS = "metrics:read"
"""Right to read metrics and spans, which name tools that the reader may not see."""
INSTALL = "catalog:install"
"""Right to install servers, with `gateway serve --with install`."""
CALL = "catalog:call"
"""Right to call tools from the console. Clients of ``/mcp`` need no right to call."""
AUDIT = "audit:read"
"""Right to read the audit log, which names users and their calls. Callers with a tenant see only
its rows."""
AUDIT_ALL = "audit:read:all"
"""Right of callers with a tenant and `AUDIT` to read the audit rows of all tenants."""
OPERATOR = frozenset({WRITE, ADMIN, METRICS, INSTALL, CALL, AUDIT, AUDIT_ALL})
"""Rights of the operator, and of all callers if the server requires no token."""
CALLER = "gateway.caller"
"""Key of the caller in the ASGI scope, set by the guard."""
CHALLENGE = "gateway.challenge"
"""Key of the `Challenge` in the ASGI scope, set by the guard."""
LIVENESS = "/api/health"
"""Path of the only API operation that needs no token."""
LIVEZ = "/livez"
READYZ = "/readyz"
PROBES = frozenset({LIVEZ, READYZ})
"""Paths of the probes, which need no token. They accept any Host header, because orchestrators use
a container's address."""
Scope = Annotated[str, Field(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]{1,128}$")]
"""Scope in the syntax of RFC 6749, section 3.3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """Information in a refusal on how to get a token with the missing scope."""

    metadata_url: str = ""
    """Address of the protected resource's metadata (RFC 9728). Empty without metadata."""
    granting: Mapping[str, str] | None = None
    """Scope to request from the identity provider, keyed by the gateway's scope that it grants.
    None if both have the same name."""

    def refusal(
        self, status: int, code: str, detail: str, *, error: str = "", scope: str = ""
    ) -> RefusedError:
        """Return a refusal with the header ``WWW-Authenticate`` (RFC 6750, section 3).

        *error* is an error code of RFC 6750. It is empty if the request had no token. *scope* names
        scopes to request from the identity provider.
        """
        named = {"error": error, "scope": scope, "resource_metadata": self.metadata_url}
        parts = [f'{name}="{value}"' for name, value in named.items() if value]
        header = ", ".join((REALM, *parts))
        return RefusedError(status, code, detail, headers={"WWW-Authenticate": header})


NO_PROVIDER = Challenge()


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerToken:
    """An accepted bearer token and its caller."""

    name: str
    caller: Caller
    digest: bytes = field(default=b"", repr=False)
    """SHA-256 of the token. Empty for tokens of identity providers, and if no token is required."""
    issuer: str = ""
    """Identity provider that issued the token. Empty for tokens of the token file."""
    expires_at: float = math.inf
    """Expiry as Unix time in seconds."""

    @classmethod
    def from_secret(cls, name: str, secret: str, caller: Caller) -> BearerToken:
        """Return a token that is identified by the hash of *secret*."""
        return cls(name=name, caller=caller, digest=_digest(secret))

    def with_audit_name(self) -> BearerToken:
        """Return the token with its issuer or name in its caller, for the audit log."""
        attributes = {**self.caller.attributes, TOKEN: self.issuer or self.name}
        return replace(self, caller=replace(self.caller, attributes=attributes))

    def to_user(self) -> AuthenticatedUser:
        """Convert the token to a user of the MCP SDK. `caller_of` converts it back."""
        # With the issuer, the SDK distinguishes users of the same name.
        issuer = {"iss": self.issuer} if self.issuer else {}
        access = AccessToken(
            token="",
            client_id=self.name,
            scopes=sorted(self.caller.scopes),
            subject=self.caller.user or None,
            claims={"tenant": self.caller.tenant, **issuer},
        )
        return AuthenticatedUser(access)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConnectionContext:
    """Data that all requests of one connection share."""

    caller: Caller
    """Caller of requests without an access token."""


def caller_of(context: ServerRequestContext[Any]) -> Caller:
    """Return the caller of a request's access token, or else of its connection."""
    scope = getattr(context.request, "scope", {})
    user, noted = scope.get("user"), scope.get(CALLER)
    if isinstance(user, AuthenticatedUser):
        # Only the guard's caller has the token, which upstream servers may need.
        return noted if isinstance(noted, Caller) else caller_of_token(user.access_token)
    connection = context.lifespan_context
    return connection.caller if isinstance(connection, ConnectionContext) else ANYONE


def caller_of_token(access: AccessToken) -> Caller:
    """Return the caller with the scopes, subject and claim ``tenant`` of an access token."""
    tenant = (access.claims or {}).get("tenant")
    return Caller(
        user=access.subject or "",
        tenant=tenant if isinstance(tenant, str) else "",
        scopes=frozenset(access.scopes),
    )


def check_right(caller: Caller, right: str, challenge: Challenge = NO_PROVIDER) -> None:
    """Check that *caller* has the scope *right*. An empty *right* permits all callers.

    Raises:
        RefusedError: 403 if the scope is missing. The response names it, and contains *challenge*.
    """
    if right and not caller.holds({right}):
        detail = f"this needs a token with the scope {right!r}"
        scope = right if challenge.granting is None else challenge.granting.get(right, "")
        raise challenge.refusal(
            403, "scope_missing", detail, error="insufficient_scope", scope=scope
        )


def find_token(tokens: Sequence[BearerToken], secret: str) -> BearerToken | None:
    """Return the last of *tokens* with this *secret*. None if it is unknown.

    A token without a digest accepts any secret.
    """
    digest = _digest(secret)
    matches = [token for token in tokens if secrets.compare_digest(token.digest or digest, digest)]
    return matches[-1] if matches else None


def bearer_secret(authorization: str) -> str:
    """Return the token in an ``Authorization`` header (RFC 6750). Empty for another scheme."""
    scheme, _, secret = authorization.partition(" ")
    return secret.strip() if scheme.casefold() == "bearer" else ""


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()

"""Bearer tokens with scopes (RFC 6750).

* A token is kept as its SHA-256 alone, and compared with every known one in constant time.
* Eight scopes are rights: of the API, of metrics, to install, to call, to search a part, two of the
  audit log; all others are scopes of entities.
* `/mcp` and the API accept the same tokens. The SDK keeps a session to the party that began it.
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
AUDIT = "audit:read"
"""Allows to read the audit log, which names users and what they called: those of the own tenant,
and without a tenant all."""
AUDIT_ALL = "audit:read:all"
"""Allows a caller of a tenant to read, with `AUDIT`, the rows of all tenants."""
OPERATOR = frozenset({WRITE, ADMIN, METRICS, INSTALL, CALL, AUDIT, AUDIT_ALL})
"""The rights of the server's own token, and of every caller where no token is needed."""
CALLER = "gateway.caller"
"""The key of a scope under which the guard notes the caller of a request."""
CHALLENGE = "gateway.challenge"
"""The key of a scope under which the guard notes what a refusal of the request says."""
LIVENESS = "/api/health"
"""The one path of the API that needs no token."""
LIVEZ = "/livez"
READYZ = "/readyz"
PROBES = frozenset({LIVEZ, READYZ})
"""Answered without a token and whatever the Host: an orchestrator asks by the address of a
container."""
Scope = Annotated[str, Field(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]{1,128}$")]
"""RFC 6749, section 3.3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """What refusals tell a client of how to come by a token that will do."""

    metadata_url: str = ""
    """Where the metadata of the protected resource is (RFC 9728); empty if there are none."""
    granting: Mapping[str, str] | None = None
    """Scopes of the identity provider, by the scope that each gives here; None if the names are the
    same."""

    def refusal(
        self, status: int, code: str, detail: str, *, error: str = "", scope: str = ""
    ) -> RefusedError:
        """Return a refusal with a header ``WWW-Authenticate`` (RFC 6750, section 3).

        Args:
            status: The HTTP status.
            code: The name of the problem.
            detail: What is wrong, and what to do.
            error: The code of RFC 6750; empty if the request had no token.
            scope: What the client should ask the identity provider for.
        """
        named = {"error": error, "scope": scope, "resource_metadata": self.metadata_url}
        parts = [f'{name}="{value}"' for name, value in named.items() if value]
        header = ", ".join((REALM, *parts))
        return RefusedError(status, code, detail, headers={"WWW-Authenticate": header})


NO_PROVIDER = Challenge()
"""That of a server that accepts no identity provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerToken:
    """A bearer token that is accepted, and the party that bears it."""

    name: str
    caller: Caller
    digest: bytes = field(default=b"", repr=False)
    """SHA-256 of the secret, which itself is not kept; empty if requests need none, and of a token
    of an identity provider."""
    issuer: str = ""
    """The identity provider that vouches for it; empty for a token of a file."""
    expires_at: float = math.inf
    """When it ends, in seconds since the epoch."""

    @classmethod
    def from_secret(cls, name: str, secret: str, caller: Caller) -> BearerToken:
        """Return the token whose secret is *secret*."""
        return cls(name=name, caller=caller, digest=_digest(secret))

    def named(self) -> BearerToken:
        """Return the same token; its caller says which one it bears, or of which provider, for the
        audit log.
        """
        attributes = {**self.caller.attributes, TOKEN: self.issuer or self.name}
        return replace(self, caller=replace(self.caller, attributes=attributes))

    def to_user(self) -> AuthenticatedUser:
        """Return its bearer as the SDK has it; `caller_of` reads that again."""
        # With the issuer, sessions of the SDK tell apart equal names of a file and of a provider.
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
    """What the requests of one connection share."""

    caller: Caller
    """The party that asks where no access token names one."""


def caller_of(context: ServerRequestContext[Any]) -> Caller:
    """Return the caller that the access token of a request names, or else its connection."""
    scope = getattr(context.request, "scope", {})
    user, noted = scope.get("user"), scope.get(CALLER)
    if isinstance(user, AuthenticatedUser):
        # The guard's caller has its token too, if a server may want that in exchange.
        return noted if isinstance(noted, Caller) else caller_of_token(user.access_token)
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


def check_right(caller: Caller, right: str, challenge: Challenge = NO_PROVIDER) -> None:
    """Refuse a caller that lacks *right*; an empty right is granted to every caller.

    Raises:
        RefusedError: 403, naming the missing scope.
    """
    if right and not caller.holds({right}):
        detail = f"this needs a token with the scope {right!r}"
        scope = right if challenge.granting is None else challenge.granting.get(right, "")
        raise challenge.refusal(
            403, "scope_missing", detail, error="insufficient_scope", scope=scope
        )


def find_token(tokens: Sequence[BearerToken], secret: str) -> BearerToken | None:
    """Return the one of *tokens* that has *secret*, or needs none; None if there is none."""
    digest = _digest(secret)
    found = [each for each in tokens if secrets.compare_digest(each.digest or digest, digest)]
    return found[-1] if found else None


def bearer_secret(authorization: str) -> str:
    """Return the token of a header ``Authorization`` (RFC 6750); empty if it holds none."""
    scheme, _, secret = authorization.partition(" ")
    return secret.strip() if scheme.casefold() == "bearer" else ""


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()

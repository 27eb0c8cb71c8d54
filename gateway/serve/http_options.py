"""Options of the HTTP server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, replace
from typing import Annotated

from gateway.options.validation import Meta, OptionObject, PositiveCount, Seconds, Timeout
from gateway.serve import auth
from gateway.serve.identity.issuers import Issuer, address_fault
from gateway.types import ANYONE, Caller

_DELAY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions(OptionObject):
    """Address of an HTTP server, the callers that it accepts, and its limits."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8930
    """TCP port. 0 selects a free port."""
    token: str = field(default="", repr=False)
    """Bearer token of the operator. Without any token or issuer, which is allowed only on loopback,
    requests need no token."""
    tokens: tuple[auth.BearerToken, ...] = ()
    """Additional bearer tokens."""
    issuers: tuple[Issuer, ...] = ()
    """Identity providers whose access tokens are accepted."""
    resource: str = ""
    """Public address of ``/mcp``, the audience of access tokens (RFC 8707)."""
    caller: Caller = ANYONE
    """Caller of requests with the operator's token, and of all requests if no token is needed. It
    has all rights in `OPERATOR`."""
    hosts: tuple[str, ...] = ()
    """Additional host names of the server, such as that of a reverse proxy."""
    origins: tuple[str, ...] = ()
    """Web origins whose pages may call the server, as ``https://host[:port]``."""
    max_connections: PositiveCount = 400
    """Maximum number of connections. Another connection closes the one that has waited longest for
    a request."""
    request_timeout_s: Timeout = 20.0
    """Maximum time to receive a complete request."""
    max_sessions: PositiveCount = 500
    """Maximum number of sessions of protocol versions before 2026-07-28; more are refused with 503.
    One caller can have half of them; another session ends the caller's least recently used one."""
    session_idle_s: Timeout = 900.0
    """Idle time after which a session ends."""
    drain_delay_s: Seconds | None = None
    """Time after SIGTERM in which requests are still answered, while `/readyz` answers 503. None is
    5 s, or 0 s on loopback."""
    drain_timeout_s: Seconds = 20.0
    """Maximum time that running calls have after the delay."""

    def _fault(self) -> str:
        if self.issuers and (fault := address_fault(self.resource)):
            return f"resource, the address of /mcp as clients know it, {fault}"
        if len({issuer.issuer for issuer in self.issuers}) < len(self.issuers):
            return "two issuers have the same address"
        if any(
            issuer.sign_in and issuer.sign_in.client_id in (issuer.audiences or (self.resource,))
            for issuer in self.issuers
        ):
            return "client_id is also an audience, so ID tokens would be accepted as access tokens"
        if self.needs_token or is_loopback(self.host):
            return ""
        return (
            f"{self.host} is reachable from other machines: set a token (--token-env NAME, "
            "--tokens FILE), or listen on 127.0.0.1"
        )

    @property
    def needs_token(self) -> bool:
        """True if requests need a token."""
        return bool(self.token or self.tokens or self.issuers)

    @property
    def delay_s(self) -> float:
        """`drain_delay_s`, or its default if it is None."""
        if self.drain_delay_s is None:
            return 0.0 if is_loopback(self.host) else _DELAY_S
        return self.drain_delay_s

    def accepted_tokens(self) -> tuple[auth.BearerToken, ...]:
        """Return the accepted tokens: without any, one token that needs no secret."""
        operator = replace(self.caller, scopes=self.caller.scopes | auth.OPERATOR)
        if not self.needs_token:
            return (auth.BearerToken(name="operator", caller=operator),)
        operator_tokens = (
            [auth.BearerToken.from_secret("operator", self.token, operator)] if self.token else []
        )
        return (*operator_tokens, *self.tokens)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach *host*."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_bare_ipv6(name: str) -> bool:
    """Return whether *name* is an IPv6 address without brackets."""
    return name.count(":") > 1 and not name.startswith("[")

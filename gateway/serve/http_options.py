"""The address of a server over HTTP, and the callers that may use it."""

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
    """The address of a server, and the callers that may use it."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8930
    """0 takes a free one."""
    token: str = field(default="", repr=False)
    """The operator's bearer token. Without any token no client needs one, which is allowed on
    loopback only."""
    tokens: tuple[auth.BearerToken, ...] = ()
    """More bearer tokens, each with its caller."""
    issuers: tuple[Issuer, ...] = ()
    """Identity providers whose access tokens are accepted."""
    resource: str = ""
    """The address of ``/mcp`` as clients know it: the audience of these tokens (RFC 8707)."""
    caller: Caller = ANYONE
    """The operator, which every client is where none needs a token. It may write and rebuild."""
    hosts: tuple[str, ...] = ()
    """More names by which requests may call it, such as that of a reverse proxy."""
    origins: tuple[str, ...] = ()
    """Web origins whose pages may speak to it, as ``https://host[:port]``."""
    max_connections: PositiveCount = 400
    """One more takes the place of the one that has waited for a request longest."""
    request_timeout_s: Timeout = 20.0
    """How long a request may take to come whole."""
    max_sessions: PositiveCount = 500
    """Sessions of the protocol of before 2026-07-28; one more is refused with status 503. A caller
    has half of them: with one more it loses the one that it has not used for longest."""
    session_idle_s: Timeout = 900.0
    """When a session ends that has no request under way."""
    drain_delay_s: Seconds | None = None
    """After SIGTERM, how long requests are still answered while `/readyz` says 503: until a load
    balancer sends no more. None is 5 s, and none on loopback."""
    drain_timeout_s: Seconds = 20.0
    """How long calls under way may take from then on."""

    def _fault(self) -> str:
        if self.issuers and (fault := address_fault(self.resource)):
            return f"resource, the address of /mcp as clients know it, {fault}"
        if len({each.issuer for each in self.issuers}) < len(self.issuers):
            return "two issuers are the same"
        if any(
            each.sign_in and each.sign_in.client_id in (each.audiences or (self.resource,))
            for each in self.issuers
        ):
            return "client_id is an audience too: ID tokens would be taken for access tokens"
        if self.needs_token or is_loopback(self.host):
            return ""
        return (
            f"{self.host} can be reached by others: give a token (--token-env NAME, --tokens FILE),"
            " or listen on 127.0.0.1"
        )

    @property
    def needs_token(self) -> bool:
        """Whether a request needs a token."""
        return bool(self.token or self.tokens or self.issuers)

    @property
    def delay_s(self) -> float:
        """See `drain_delay_s`."""
        if self.drain_delay_s is None:
            return 0.0 if is_loopback(self.host) else _DELAY_S
        return self.drain_delay_s

    def accepted_tokens(self) -> tuple[auth.BearerToken, ...]:
        """Return what `authenticate` accepts: the tokens, or one that needs no secret."""
        operator = replace(self.caller, scopes=self.caller.scopes | auth.OPERATOR)
        if not self.needs_token:
            return (auth.BearerToken(name="operator", caller=operator),)
        own = [auth.BearerToken.from_secret("operator", self.token, operator)] if self.token else []
        return (*own, *self.tokens)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches *host*."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_bare_ipv6(name: str) -> bool:
    """Return whether *name* is an IPv6 address without brackets."""
    return name.count(":") > 1 and not name.startswith("[")

"""An MCP server on HTTP: loopback by default, and guarded.

* Host and Origin of every request are checked, so that no web page can reach it by a name that
  points at this machine (DNS rebinding; CVE-2025-66416).
* An address that others can reach is served only with a bearer token (RFC 6750).
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

import uvicorn
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import ConfigError
from gateway.options.validation import Meta, OptionObject

PATH = "/mcp"
REALM = 'Bearer realm="gateway"'
"""The challenge of a response that asks for a token."""
WrapApp: TypeAlias = Callable[[ASGIApp], ASGIApp]
"""Puts another application beside one, on the same port."""
Transport: TypeAlias = Callable[[Server], Awaitable[None]]
"""Serves a server until it is told to stop."""
GRACE_S = 5
"""How long an unfinished answer may hold up the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions(OptionObject):
    """The address of a server, and the callers that may use it."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8930
    """0 takes a free one."""
    token: str = field(default="", repr=False)
    """The bearer token of clients; empty needs none, which is allowed on loopback only."""
    hosts: tuple[str, ...] = ()
    """More names by which requests may call it, such as that of a reverse proxy."""
    origins: tuple[str, ...] = ()
    """Web origins whose pages may speak to it, as ``https://host[:port]``."""

    def _fault(self) -> str:
        if self.token or is_loopback(self.host):
            return ""
        return (
            f"{self.host} can be reached by others: give a token (--token-env NAME), or listen "
            "on 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches *host*."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def http_app(server: Server, options: HttpOptions) -> ASGIApp:
    """Return the ASGI application that serves *server* under `PATH`."""
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=transport_security(options), host=options.host
    )
    return _guarded(app, options.token.encode()) if options.token else app


def transport_security(options: HttpOptions) -> TransportSecuritySettings:
    """Return the host names and origins that requests may have."""
    names = [options.host, *options.hosts]
    if is_loopback(options.host):
        names += ["127.0.0.1", "localhost", "[::1]"]
    names = list(dict.fromkeys(f"[{name}]" if _is_bare_ipv6(name) else name for name in names))
    hosts = [*names, *(f"{name}:*" for name in names if ":" not in name.rpartition("]")[2])]
    own = [f"http://{each}" for each in hosts] if is_loopback(options.host) else []
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[*own, *options.origins])


def _is_bare_ipv6(name: str) -> bool:
    return name.count(":") > 1 and not name.startswith("[")


def _guarded(app: ASGIApp, token: bytes) -> ASGIApp:
    """Refuse requests without the bearer token."""

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        answer = app
        if scope["type"] != "lifespan":
            secret = bearer_secret(Headers(scope=scope).get("authorization", ""))
            if not secrets.compare_digest(secret.encode(), token):
                headers = {"WWW-Authenticate": REALM}
                answer = PlainTextResponse("a bearer token is needed", 401, headers)
        await answer(scope, receive, send)

    return check


def bearer_secret(authorization: str) -> str:
    """Return the token of a header ``Authorization`` (RFC 6750); empty if it holds none."""
    scheme, _, secret = authorization.partition(" ")
    return secret.strip() if scheme.casefold() == "bearer" else ""


async def serve_http(
    server: Server,
    options: HttpOptions,
    *,
    beside: WrapApp = lambda app: app,
    on_listening: Callable[[str], None] = lambda _url: None,
) -> None:
    """Serve until the process is told to stop.

    Args:
        server: The served MCP server.
        options: The address, and the callers that may use it.
        beside: Puts another application beside it; see `gateway.serve.api.app.beside`.
        on_listening: Called with the address as soon as requests are accepted.

    Raises:
        ConfigError: If the address cannot be listened on.
    """
    shown = f"[{options.host}]" if _is_bare_ipv6(options.host) else options.host
    config = uvicorn.Config(
        beside(http_app(server, options)),
        ws="none",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=GRACE_S,
    )
    with _listener(options) as listener:
        on_listening(f"http://{shown}:{listener.getsockname()[1]}{PATH}")
        await uvicorn.Server(config).serve(sockets=[listener])


def _listener(options: HttpOptions) -> socket.socket:
    family = socket.AF_INET6 if _is_bare_ipv6(options.host) else socket.AF_INET
    try:
        listener = socket.create_server((options.host, options.port), family=family, backlog=128)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror}; choose another port"
        ) from error
    # Connections inherit it; without, each response waits some 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener

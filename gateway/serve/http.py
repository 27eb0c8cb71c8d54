"""An MCP server on HTTP: loopback by default, and guarded.

* Host and Origin of every request are checked, so that no web page can reach it by a name that
  points at this machine (DNS rebinding; CVE-2025-66416).
* An address that others can reach is served only with a bearer token (RFC 6750).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, TypeAlias

import uvicorn
from mcp.server import Server
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import ConfigError
from gateway.options.validation import Meta, OptionObject
from gateway.runtime.telemetry import Labels, Telemetry
from gateway.runtime.telemetry_names import OTHER
from gateway.serve.api.problems import RefusedError
from gateway.serve.auth import (
    METRICS,
    OPERATOR,
    BearerToken,
    authenticate,
    caller_of_token,
    check_right,
)
from gateway.types import ANYONE, Caller

PATH = "/mcp"
METRICS_PATH = "/metrics"
ROUTE = "gateway.route"
"""The key of a scope under which an application notes the route of a request, for metrics."""
WrapApp: TypeAlias = Callable[[ASGIApp], ASGIApp]
"""Puts another application beside one, on the same port."""
MetricsPage: TypeAlias = ASGIApp
"""Answers requests for metrics."""
Transport: TypeAlias = Callable[[Server], Awaitable[None]]
"""Serves a server until it is told to stop."""
_ROUTES = frozenset({PATH, METRICS_PATH})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_SERVER_ERROR = 500
"""From this status on, an answer is an error of the server."""
GRACE_S = 5
"""How long an unfinished answer may hold up the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions(OptionObject):
    """The address of a server, and the callers that may use it."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8930
    """0 takes a free one."""
    token: str = field(default="", repr=False)
    """The operator's bearer token. Without any token no client needs one, which is allowed on
    loopback only."""
    tokens: tuple[BearerToken, ...] = ()
    """More bearer tokens, each with its caller."""
    caller: Caller = ANYONE
    """The operator, which every client is where none needs a token. It may write and rebuild."""
    hosts: tuple[str, ...] = ()
    """More names by which requests may call it, such as that of a reverse proxy."""
    origins: tuple[str, ...] = ()
    """Web origins whose pages may speak to it, as ``https://host[:port]``."""

    def _fault(self) -> str:
        if self.needs_token or is_loopback(self.host):
            return ""
        return (
            f"{self.host} can be reached by others: give a token (--token-env NAME, --tokens FILE),"
            " or listen on 127.0.0.1"
        )

    @property
    def needs_token(self) -> bool:
        """Whether a request needs one of the tokens."""
        return bool(self.token or self.tokens)

    def accepted_tokens(self) -> tuple[BearerToken, ...]:
        """Return what `authenticate` accepts: the tokens, or one that needs no secret."""
        operator = replace(self.caller, scopes=self.caller.scopes | OPERATOR)
        if not self.needs_token:
            return (BearerToken(name="operator", caller=operator),)
        own = (BearerToken.from_secret("operator", self.token, operator),) if self.token else ()
        return (*own, *self.tokens)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches *host*."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def http_app(
    server: Server, options: HttpOptions, *, metrics: MetricsPage | None = None
) -> ASGIApp:
    """Return the ASGI application that serves *server* under `PATH`, and *metrics* beside it."""
    security = transport_security(options)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        host=options.host,
        custom_starlette_routes=[_metrics_route(metrics, security)] if metrics else [],
    )
    return _guarded(app, options.accepted_tokens()) if options.needs_token else app


def transport_security(options: HttpOptions) -> TransportSecuritySettings:
    """Return the host names and origins that requests may have."""
    names = [options.host, *options.hosts]
    if is_loopback(options.host):
        names += ["127.0.0.1", "localhost", "[::1]"]
    names = list(dict.fromkeys(f"[{name}]" if _is_bare_ipv6(name) else name for name in names))
    hosts = [*names, *(f"{name}:*" for name in names if ":" not in name.rpartition("]")[2])]
    own = [f"http://{each}" for each in hosts] if is_loopback(options.host) else []
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[*own, *options.origins])


def _metrics_route(metrics: MetricsPage, security: TransportSecuritySettings) -> Route:
    checks = TransportSecurityMiddleware(security)

    async def answer(request: Request) -> ASGIApp:
        if refused := await checks.validate_request(request):
            return refused
        if user := request.scope.get("user"):
            try:
                check_right(caller_of_token(user.access_token), METRICS)
            except RefusedError as error:
                return _refusal(error)
        return metrics

    return Route(METRICS_PATH, answer, methods=["GET"])


def _refusal(error: RefusedError) -> ASGIApp:
    return PlainTextResponse(str(error), error.status, error.headers)


def _is_bare_ipv6(name: str) -> bool:
    return name.count(":") > 1 and not name.startswith("[")


def _guarded(app: ASGIApp, tokens: Sequence[BearerToken]) -> ASGIApp:
    """Refuse requests without one of the *tokens*; note in the others whose it is."""
    admitted = AuthContextMiddleware(app)

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = admitted
        if scope["type"] != "lifespan":
            try:
                token = authenticate(tokens, Headers(scope=scope).get("authorization", ""))
            except RefusedError as error:
                answer = _refusal(error)
            else:
                scope["user"] = token.to_user()
        await answer(scope, receive, send)

    return check


def measured(app: ASGIApp, telemetry: Telemetry) -> ASGIApp:
    """Record how long each request of *app* takes, by method, route and status.

    A request for a path that nothing serves has no route: its path could be anything.
    """

    async def measure(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in _METHODS else OTHER
        labels: Labels = {"http.request.method": method, "url.scheme": scope["scheme"]}
        path = scope["path"]

        async def note_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                labels["http.response.status_code"] = message["status"]
                if message["status"] >= _SERVER_ERROR:
                    labels["error.type"] = str(message["status"])
            await send(message)

        started = time.perf_counter()
        try:
            await app(scope, receive, note_status)
        except BaseException as error:
            labels["error.type"] = type(error).__name__
            raise
        finally:
            if route := scope.get(ROUTE, path if path in _ROUTES else ""):
                labels["http.route"] = route
            telemetry.record("http.server.request.duration", time.perf_counter() - started, labels)

    return measure


async def serve_http(
    server: Server,
    options: HttpOptions,
    *,
    beside: WrapApp = lambda app: app,
    metrics: MetricsPage | None = None,
    telemetry: Telemetry | None = None,
    on_listening: Callable[[str], None] = lambda _url: None,
) -> None:
    """Serve until the process is told to stop.

    Args:
        server: The served MCP server.
        options: The address, and the callers that may use it.
        beside: Puts another application beside it; see `gateway.serve.api.app.beside`.
        metrics: Answers requests for `METRICS_PATH`; None serves no metrics.
        telemetry: Where requests are measured; None does not measure them.
        on_listening: Called with the address as soon as requests are accepted.

    Raises:
        ConfigError: If the address cannot be listened on.
    """
    shown = f"[{options.host}]" if _is_bare_ipv6(options.host) else options.host
    app = beside(http_app(server, options, metrics=metrics))
    config = uvicorn.Config(
        measured(app, telemetry) if telemetry else app,
        ws="none",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=GRACE_S,
    )
    with _listener(options) as listener:
        on_listening(f"http://{shown}:{listener.getsockname()[1]}{PATH}")
        web = uvicorn.Server(config)
        try:
            await web.serve(sockets=[listener])
        except asyncio.CancelledError:
            # It would leave its loop watching a closed listener, whose number the next one takes.
            if web.started:
                await web.shutdown(sockets=[listener])
            raise


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

"""An MCP server on HTTP: loopback by default, and guarded.

* One guard stands before every route: the protocol, the API, metrics, and whatever is added.
* It checks Host and Origin, so that no web page can reach the server by a name that points at this
  machine (DNS rebinding; CVE-2025-66416).
* An address that others can reach is served only with a bearer token (RFC 6750).
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Annotated, TypeAlias, cast

import uvicorn
from mcp.server import Server
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import ConfigError
from gateway.options.validation import Meta, OptionObject, PositiveCount, Timeout
from gateway.runtime.library_logs import quiet_libraries
from gateway.runtime.telemetry import Labels, Telemetry
from gateway.runtime.telemetry_names import OTHER
from gateway.serve import auth
from gateway.serve.api.operations import problem
from gateway.serve.api.problems import RefusedError
from gateway.serve.connections import ConnectionLimits
from gateway.serve.sessions import SessionShares
from gateway.types import ANYONE, Caller

PATH = "/mcp"
METRICS_PATH = "/metrics"
CONSOLE = "/console"
"""Pages below it sign in by themselves; see `gateway.serve.console.access`."""
ROUTE = "gateway.route"
"""The key of a scope under which an application notes the route of a request, for metrics."""
MetricsPage: TypeAlias = ASGIApp
"""Answers requests for metrics."""
ConsoleRoutes: TypeAlias = Sequence[BaseRoute]
"""Those of `gateway.serve.console.app.console_routes`; empty serves no console."""
Transport: TypeAlias = Callable[[Server], Awaitable[None]]
"""Serves a server until it is told to stop."""
_ROUTES = frozenset({PATH, METRICS_PATH})
_AUTHORITY = re.compile(
    r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", re.IGNORECASE | re.ASCII
)
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
_HTTP_ERRORS: Mapping[int, tuple[str, str]] = {
    404: ("unknown_path", "there is nothing here: /openapi.json describes the API, where it is on"),
    405: ("wrong_method", "this cannot be done here: see Allow"),
}
_SAFE = frozenset({"GET", "HEAD"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_SERVER_ERROR = 500
"""From this status on, an answer is an error of the server."""
_BACKLOG = 128
"""How many connections are accepted at once, before any of them is looked at."""
GRACE_S = 3
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
    tokens: tuple[auth.BearerToken, ...] = ()
    """More bearer tokens, each with its caller."""
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


def http_app(
    server: Server,
    options: HttpOptions,
    *,
    routes: Sequence[Route] = (),
    console: ConsoleRoutes = (),
    metrics: MetricsPage | None = None,
) -> Guard:
    """Return the ASGI application that serves *server* under `PATH`.

    Args:
        server: The served MCP server.
        options: The callers that may use it.
        routes: More routes, such as those of `gateway.serve.api.app.api_routes`.
        console: The routes of the console.
        metrics: Answers requests for `METRICS_PATH`; None serves no metrics.
    """
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        session_idle_timeout=options.session_idle_s,
        max_sessions=options.max_sessions,
        # The guard checks what the SDK would, and more exactly.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        custom_starlette_routes=[*routes, *([_metrics_route(metrics)] if metrics else [])],
    )
    app.router.routes.extend(console)
    app.add_middleware(SessionShares, max_sessions=options.max_sessions)
    return guarded(app, options, has_console=bool(console))


def guarded(app: Starlette, options: HttpOptions, *, has_console: bool = False) -> Guard:
    """Return *app* behind the guard, with problems for unknown paths and methods."""
    app.router.redirect_slashes = False
    for status in _HTTP_ERRORS:
        app.add_exception_handler(status, _http_error)
    return Guard(app, options, has_console=has_console)


async def _http_error(_request: Request, error: Exception) -> Response:
    # Starlette raises these two.
    status = getattr(error, "status_code", 404)
    headers = getattr(error, "headers", None)
    return problem(RefusedError(status, *_HTTP_ERRORS[status], headers=headers))


def _metrics_route(metrics: MetricsPage) -> Route:
    async def answer(request: Request) -> ASGIApp:
        try:
            auth.check_right(request.scope[auth.CALLER], auth.METRICS)
        except RefusedError as error:
            return problem(error)
        return metrics

    return Route(METRICS_PATH, answer, methods=["GET"])


def _is_bare_ipv6(name: str) -> bool:
    return name.count(":") > 1 and not name.startswith("[")


class Guard:
    """Stands before every route: refuses a foreign Host or Origin, then a missing token.

    * Host: one of the server's own names, with any port: another one may be mapped to ours.
    * Origin: one that `HttpOptions.origins` lists, or, on loopback, the server's own, port and all.
    * Token: needed for everything but `LIVENESS` and the console, if there are any. The caller that
      it names is in the scope then, under `CALLER`.

    Args:
        app: The application behind it.
        options: The names and origins of the server, and its tokens.
        has_console: Whether the paths below `CONSOLE` are passed on without a token.
    """

    def __init__(self, app: Starlette, options: HttpOptions, *, has_console: bool = False) -> None:
        self.app = app
        self._has_console = has_console
        own = [options.host, *_LOOPBACK_NAMES] if is_loopback(options.host) else []
        named = [options.host, *options.hosts, *own]
        self._hosts = {_split_authority(_bracketed(name)) for name in named}
        self._own = {_split_authority(_bracketed(name))[0] for name in own}
        self._origins = {origin.casefold() for origin in options.origins}
        self._tokens = options.accepted_tokens()
        self._needs_token = options.needs_token
        self._admitted = AuthContextMiddleware(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        answer: ASGIApp = self._admitted
        # The rest are the server's own, such as its start.
        if scope["type"] != "lifespan":
            try:
                self._admit(scope)
            except RefusedError as error:
                answer = problem(error)
        with quiet_libraries(""):
            await answer(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host, port = _split_authority(headers.get("host", ""))
        if not host or not {(host, None), (host, port)} & self._hosts:
            raise RefusedError(421, "foreign", "the Host of the request is not ours")
        if not all(self._is_ours(origin, scope) for origin in headers.getlist("origin")):
            raise RefusedError(403, "foreign", "the Origin of the request is not ours")
        if self._needs_no_token(scope):
            scope[auth.CALLER] = ANYONE
            return
        token = auth.authenticate(self._tokens, headers.get("authorization", ""))
        scope[auth.CALLER] = token.caller
        if self._needs_token:
            scope["user"] = token.to_user()

    def _needs_no_token(self, scope: Scope) -> bool:
        path = scope["path"]
        if path == auth.LIVENESS:
            return scope.get("method") in _SAFE
        return self._has_console and (path == CONSOLE or path.startswith(f"{CONSOLE}/"))

    def _is_ours(self, origin: str, scope: Scope) -> bool:
        if origin.casefold() in self._origins:
            return True
        scheme, _, authority = origin.partition("://")
        host, port = _split_authority(authority)
        _, own_port = scope.get("server") or (None, 0)
        is_own_port = (port or 80) == (80 if own_port is None else own_port)
        return scheme.casefold() == "http" and host in self._own and is_own_port


def _bracketed(name: str) -> str:
    return f"[{name}]" if _is_bare_ipv6(name) else name


def _split_authority(text: str) -> tuple[str, int | None]:
    """Return host, in small letters, and port of ``host[:port]``; an empty host if it is none."""
    found = _AUTHORITY.fullmatch(text)
    if not found:
        return "", None
    host, port = found.groups()
    return host.casefold(), int(port) if port else None


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


async def serve_http(  # noqa: PLR0913  (keyword-only, wired in one place)
    server: Server,
    options: HttpOptions,
    *,
    routes: Sequence[Route] = (),
    console: ConsoleRoutes = (),
    metrics: MetricsPage | None = None,
    telemetry: Telemetry | None = None,
    on_listening: Callable[[str], None] = lambda _url: None,
    on_stop: Callable[[int], None] = lambda _signal: None,
) -> None:
    """Serve until the process is told to stop.

    Args:
        server: The served MCP server.
        options: The address, and the callers that may use it.
        routes: As for `http_app`.
        console: As for `http_app`.
        metrics: Answers requests for `METRICS_PATH`; None serves no metrics.
        telemetry: Where requests are measured; None does not measure them.
        on_listening: Called with the address as soon as requests are accepted.
        on_stop: Called with the number of the signal that ends it.

    Raises:
        ConfigError: If the address cannot be listened on.
    """
    shown = f"[{options.host}]" if _is_bare_ipv6(options.host) else options.host
    limits = ConnectionLimits(options.max_connections, options.request_timeout_s)
    app = http_app(server, options, routes=routes, console=console, metrics=metrics)
    config = uvicorn.Config(
        measured(app, telemetry) if telemetry else app,
        http=cast("type[asyncio.Protocol]", limits),
        ws="none",
        backlog=_BACKLOG,
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=GRACE_S,
    )
    with _listener(options) as listener, quiet_libraries(""):
        on_listening(f"http://{shown}:{listener.getsockname()[1]}{PATH}")
        web = _Server(config, on_stop)
        try:
            await web.serve(sockets=[listener])
        except asyncio.CancelledError:
            # It would leave its loop watching a closed listener, whose number the next one takes.
            if web.started:
                await web.shutdown(sockets=[listener])
            raise


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_stop: Callable[[int], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._on_stop(sig)
        super().handle_exit(sig, frame)


def _listener(options: HttpOptions) -> socket.socket:
    family = socket.AF_INET6 if _is_bare_ipv6(options.host) else socket.AF_INET
    try:
        listener = socket.create_server(
            (options.host, options.port), family=family, backlog=_BACKLOG
        )
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror}; choose another port"
        ) from error
    # Connections inherit it; without, each response waits some 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener

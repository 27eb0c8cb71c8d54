"""HTTP server of the gateway, which by default listens on loopback only.

The guard (`gateway.serve.guard`) protects all routes. A server on any other address requires bearer
tokens (RFC 6750).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from types import FrameType
from typing import TypeAlias, cast

import uvicorn
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import ConfigError
from gateway.runtime.library_logs import quiet_libraries
from gateway.runtime.telemetry import Labels, Telemetry
from gateway.runtime.telemetry_names import OTHER
from gateway.serve import auth
from gateway.serve.api.problems import RefusedError, problem
from gateway.serve.authenticator import Authenticator
from gateway.serve.connections import ConnectionLimits, SessionShares
from gateway.serve.drain import Drain
from gateway.serve.guard import Guard, guarded
from gateway.serve.http_options import HttpOptions, is_bare_ipv6
from gateway.serve.mcp_server import GatewayServer

PATH = "/mcp"
METRICS_PATH = "/metrics"
log = logging.getLogger("gateway.serve")
ROUTE = "gateway.route"
"""Key of a request's route in the ASGI scope, set by mounted applications for metrics."""
MetricsPage: TypeAlias = ASGIApp
"""Application that answers requests for metrics."""
ConsoleRoutes: TypeAlias = Sequence[BaseRoute]
"""Routes from `gateway.serve.console.app.console_routes`. Empty serves no console."""
Transport: TypeAlias = Callable[[Server], Awaitable[None]]
"""Serves an MCP server until the process is told to stop."""
_ROUTES = frozenset({PATH, METRICS_PATH})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_SERVER_ERROR = 500
_BACKLOG = 128
"""Maximum number of connections that wait to be accepted."""
GRACE_S = 3
"""Maximum time for streams and late calls to end at shutdown, in seconds."""
_ALWAYS_ANSWERED = frozenset({auth.LIVENESS, auth.LIVEZ, METRICS_PATH})


def http_app(
    server: Server,
    options: HttpOptions,
    *,
    routes: Sequence[BaseRoute] = (),
    console: ConsoleRoutes = (),
    metrics: MetricsPage | None = None,
    authenticator: Authenticator | None = None,
) -> Guard:
    """Return the ASGI application that serves *server* under `PATH`, behind the guard.

    *routes* are added. Empty *console* serves no console, and None no *metrics*. Without
    *authenticator*, one is created from *options*.
    """
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        session_idle_timeout=options.session_idle_s,
        max_sessions=options.max_sessions,
        # The guard makes these checks.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.router.routes.extend(routes)
    app.router.routes.extend([_metrics_route(metrics)] if metrics else [])
    app.router.routes.extend(console)
    app.add_middleware(SessionShares, max_sessions=options.max_sessions)
    return guarded(app, options, has_console=bool(console), authenticator=authenticator)


def _metrics_route(metrics: MetricsPage) -> Route:
    async def answer(request: Request) -> ASGIApp:
        try:
            scope = request.scope
            auth.check_right(scope[auth.CALLER], auth.METRICS, scope[auth.CHALLENGE])
        except RefusedError as error:
            return problem(error)
        return metrics

    return Route(METRICS_PATH, answer, methods=["GET"])


def measured(app: ASGIApp, telemetry: Telemetry) -> ASGIApp:
    """Return *app*, wrapped to record the duration of requests by method, route and status.

    Requests for unknown paths have no route. Probes are not recorded, because their 503 is not an
    error.
    """

    async def measure(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in auth.PROBES:
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
    routes: Sequence[BaseRoute] = (),
    console: ConsoleRoutes = (),
    metrics: MetricsPage | None = None,
    authenticator: Authenticator | None = None,
    telemetry: Telemetry | None = None,
    on_listening: Callable[[str], None] = lambda _url: None,
    on_stop: Callable[[int], None] = lambda _signal: None,
) -> None:
    """Serve until the process is told to stop, and then shut down as in `gateway.serve.drain`.

    The first arguments are those of `http_app`. *telemetry* receives request durations.
    *on_listening* is called with the server's address when it accepts requests, and *on_stop* with
    the number of each signal to stop. The second signal ends the wait for running calls.

    Raises:
        ConfigError: If the server cannot listen on the address.
    """
    host = f"[{options.host}]" if is_bare_ipv6(options.host) else options.host
    app = http_app(
        server,
        options,
        routes=routes,
        console=console,
        metrics=metrics,
        authenticator=authenticator,
    )
    drain = Drain(
        measured(app, telemetry) if telemetry else app,
        delay_s=options.delay_s,
        timeout_s=options.drain_timeout_s,
        always=_ALWAYS_ANSWERED,
    )
    with _listener(options) as listener, quiet_libraries(""):
        on_listening(f"http://{host}:{listener.getsockname()[1]}{PATH}")
        web = _Server(_config(drain, options), server, drain, on_stop)
        try:
            await web.serve(sockets=[listener])
        except asyncio.CancelledError:
            # Otherwise the loop would watch the closed listener's file descriptor, which another
            # socket may reuse.
            if web.started:
                await web.shutdown(sockets=[listener])
            raise


def _config(app: ASGIApp, options: HttpOptions) -> uvicorn.Config:
    limits = ConnectionLimits(options.max_connections, options.request_timeout_s)
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", limits),
        ws="none",
        backlog=_BACKLOG,
        access_log=False,
        log_config=None,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_S,
    )


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, server: Server, drain: Drain, on_stop: Callable[[int], None]
    ) -> None:
        super().__init__(config)
        self._server = server
        self._drain = drain
        self._on_stop = on_stop

    def handle_exit(self, sig: int, _frame: FrameType | None) -> None:
        # uvicorn's own method would end streams at once.
        self._on_stop(sig)
        self.force_exit = self.should_exit = self._drain.has_begun
        self._drain.begin(delayed=sig != signal.SIGINT)

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._drain.is_over

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._drain.has_begun and self._drain.calls:
            log.warning("%d calls were still running when the time limit passed", self._drain.calls)
        # Lets uvicorn end streams.
        self.should_exit = True
        self._drain.ending.set()
        if isinstance(self._server, GatewayServer):
            self._server.end_streams()
        await super().shutdown(sockets)


def _listener(options: HttpOptions) -> socket.socket:
    family = socket.AF_INET6 if is_bare_ipv6(options.host) else socket.AF_INET
    try:
        listener = socket.create_server(
            (options.host, options.port), family=family, backlog=_BACKLOG
        )
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror}; choose another port"
        ) from error
    # Inherited by connections. Without it, each response waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener

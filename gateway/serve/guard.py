"""Guard in front of every route of the HTTP server: checks of Host, Origin and token.

They stop web pages whose host name resolves to this machine (DNS rebinding; CVE-2025-66416).
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.runtime.library_logs import quiet_libraries
from gateway.serve import auth
from gateway.serve.api.problems import RefusedError, problem
from gateway.serve.authenticator import Authenticator
from gateway.serve.http_options import HttpOptions, is_bare_ipv6, is_loopback
from gateway.servers.user_sign_ins import PATH as SIGN_IN
from gateway.types import ANYONE

CONSOLE = "/console"
"""Path of the console, whose pages have their own sign-in (`gateway.serve.console.access`)."""
ACCOUNT = "/account"
"""Path of the pages for sign-in at identity providers (`gateway.serve.account`)."""
_AUTHORITY = re.compile(
    r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", re.IGNORECASE | re.ASCII
)
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
_HTTP_ERRORS: Mapping[int, tuple[str, str]] = {
    404: ("unknown_path", "unknown path; /openapi.json describes the API if it is enabled"),
    405: ("wrong_method", "method not allowed; the Allow header lists the methods"),
}
_SAFE = frozenset({"GET", "HEAD"})
LISTEN = "subscriptions/listen"
"""MCP method whose response is a stream, since protocol version 2026-07-28."""


def guarded(
    app: Starlette,
    options: HttpOptions,
    *,
    has_console: bool = False,
    authenticator: Authenticator | None = None,
) -> Guard:
    """Return *app* behind the guard. Unknown paths and methods return problem documents."""
    app.router.redirect_slashes = False
    for status in _HTTP_ERRORS:
        app.add_exception_handler(status, _http_error)
    return Guard(app, options, has_console=has_console, authenticator=authenticator)


async def _http_error(_request: Request, error: Exception) -> Response:
    # Starlette raises only 404 and 405.
    status = getattr(error, "status_code", 404)
    headers = getattr(error, "headers", None)
    return problem(RefusedError(status, *_HTTP_ERRORS[status], headers=headers))


class Guard:
    """ASGI application that rejects a foreign Host or Origin, and then a missing token.

    * `PROBES` are answered for every Host, because they reveal nothing.
    * Host: must be one of the server's own names, with any port, because it may be mapped.
    * Origin: must be in `HttpOptions.origins`, or the server's own on loopback.
    * Token: required except for `LIVENESS`, the console, the pages below `SIGN_IN` and `ACCOUNT`,
      and the metadata of the protected resource (RFC 9728). The ASGI scope then contains the caller
      under `CALLER`.
    * Streams end when the token of their request expires. Running calls do not.

    Args:
        has_console: True to allow the paths below `CONSOLE` without a token.
        authenticator: Checks tokens. None creates one from *options*.
    """

    def __init__(
        self,
        app: Starlette,
        options: HttpOptions,
        *,
        has_console: bool = False,
        authenticator: Authenticator | None = None,
    ) -> None:
        self.app = app
        self._has_console = has_console
        own_names = [options.host, *_LOOPBACK_NAMES] if is_loopback(options.host) else []
        named = [options.host, *options.hosts, *own_names]
        self._hosts = {_split_authority(_with_brackets(name)) for name in named}
        self._own_hosts = {_split_authority(_with_brackets(name))[0] for name in own_names}
        self._origins = {origin.casefold() for origin in options.origins}
        self._authenticator = authenticator or Authenticator(options)
        self._admitted_app = AuthContextMiddleware(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and forward it to the application."""
        answer: ASGIApp = self._admitted_app
        # Lifespan events have no headers.
        if scope["type"] != "lifespan":
            try:
                answer = await self._admit(scope)
            except RefusedError as error:
                answer = problem(error)
        with quiet_libraries(""):
            await answer(scope, receive, send)

    async def _admit(self, scope: Scope) -> ASGIApp:
        """Set the caller of an accepted request in *scope*, and return the answering application.

        Raises:
            RefusedError: If the request is rejected.
        """
        if scope["path"] in auth.PROBES and scope.get("method") in _SAFE:
            scope.update({auth.CALLER: ANYONE, auth.CHALLENGE: auth.NO_PROVIDER})
            return self._admitted_app
        headers = Headers(scope=scope)
        host, port = _split_authority(headers.get("host", ""))
        if not host or not {(host, None), (host, port)} & self._hosts:
            raise RefusedError(421, "foreign", "the Host header is not a name of this server")
        if not all(self._is_own_origin(origin, scope) for origin in headers.getlist("origin")):
            raise RefusedError(403, "foreign", "the Origin header is not an origin of this server")
        if self._needs_no_token(scope):
            scope.update({auth.CALLER: ANYONE, auth.CHALLENGE: auth.NO_PROVIDER})
            return self._admitted_app
        metadata = self._authenticator.metadata(scope["path"])
        if metadata and scope.get("method") in _SAFE:
            return JSONResponse(metadata)
        query = scope.get("query_string", b"").decode("latin-1")
        bearer = await self._authenticator.authenticate(headers.getlist("authorization"), query)
        scope[auth.CALLER] = bearer.caller
        scope[auth.CHALLENGE] = self._authenticator.challenge_of(bearer)
        if self._authenticator.needs_token:
            scope["user"] = bearer.to_user()
        if not _is_stream(scope["method"], headers) or math.isinf(bearer.expires_at):
            return self._admitted_app
        return _end_after(self._admitted_app, bearer.expires_at - time.time())

    def _needs_no_token(self, scope: Scope) -> bool:
        path = scope["path"]
        if path.startswith((f"{SIGN_IN}/", f"{ACCOUNT}/")):
            return True
        if path == auth.LIVENESS:
            return scope.get("method") in _SAFE
        return self._has_console and (path == CONSOLE or path.startswith(f"{CONSOLE}/"))

    def _is_own_origin(self, origin: str, scope: Scope) -> bool:
        if origin.casefold() in self._origins:
            return True
        scheme, _, authority = origin.partition("://")
        host, port = _split_authority(authority)
        _, own_port = scope.get("server") or (None, 0)
        is_own_port = (port or 80) == (80 if own_port is None else own_port)
        return scheme.casefold() == "http" and host in self._own_hosts and is_own_port


def _is_stream(method: str, headers: Headers) -> bool:
    """Return whether a request opens a long stream instead of a call."""
    return method == "GET" or headers.get("mcp-method") == LISTEN


def _end_after(app: ASGIApp, seconds: float) -> ASGIApp:
    """Return *app*, wrapped to end even incomplete responses after *seconds*."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_open = False

        async def note(message: Message) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await app(scope, receive, note)
        if is_open:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return answer


def _with_brackets(name: str) -> str:
    return f"[{name}]" if is_bare_ipv6(name) else name


def _split_authority(text: str) -> tuple[str, int | None]:
    """Return the lower-case host, empty if invalid, and the port of ``host[:port]``."""
    match = _AUTHORITY.fullmatch(text)
    if not match:
        return "", None
    host, port = match.groups()
    return host.casefold(), int(port) if port else None

"""The guard before every route of the HTTP server: Host, Origin, then the token.

No web page can reach the server by a name that points at this machine (DNS rebinding;
CVE-2025-66416).
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
"""Pages below it sign in by themselves; see `gateway.serve.console.access`."""
ACCOUNT = "/account"
"""Below it browsers sign in at identity providers; see `gateway.serve.account`."""
_AUTHORITY = re.compile(
    r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", re.IGNORECASE | re.ASCII
)
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
_HTTP_ERRORS: Mapping[int, tuple[str, str]] = {
    404: ("unknown_path", "there is nothing here: /openapi.json describes the API, where it is on"),
    405: ("wrong_method", "this cannot be done here: see Allow"),
}
_SAFE = frozenset({"GET", "HEAD"})
LISTEN = "subscriptions/listen"
"""The method whose answer is a stream since 2026-07-28; a header names it."""


def guarded(
    app: Starlette,
    options: HttpOptions,
    *,
    has_console: bool = False,
    authenticator: Authenticator | None = None,
) -> Guard:
    """Return *app* behind the guard, with problems for unknown paths and methods."""
    app.router.redirect_slashes = False
    for status in _HTTP_ERRORS:
        app.add_exception_handler(status, _http_error)
    return Guard(app, options, has_console=has_console, authenticator=authenticator)


async def _http_error(_request: Request, error: Exception) -> Response:
    # Starlette raises these two.
    status = getattr(error, "status_code", 404)
    headers = getattr(error, "headers", None)
    return problem(RefusedError(status, *_HTTP_ERRORS[status], headers=headers))


class Guard:
    """Stands before every route: refuses a foreign Host or Origin, then a missing token.

    * `PROBES` are passed on, whatever they are called by: they tell nothing.
    * Host: one of the server's own names, with any port: another one may be mapped to ours.
    * Origin: one that `HttpOptions.origins` lists, or, on loopback, the server's own, port and all.
    * A stream ends with the token of its request. A call that runs does not.
    * Token: needed for everything but `LIVENESS`, the console, the pages below `SIGN_IN`, which ask
      for it by themselves, those below `ACCOUNT`, and the metadata of the protected resource (RFC
      9728), if there are any. The caller that it names is in the scope then, under `CALLER`.

    Args:
        app: The application behind it.
        options: The names and origins of the server, and its tokens.
        has_console: Whether the paths below `CONSOLE` are passed on without a token.
        authenticator: Names the party of a request; None makes one of *options*.
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
        own = [options.host, *_LOOPBACK_NAMES] if is_loopback(options.host) else []
        named = [options.host, *options.hosts, *own]
        self._hosts = {_split_authority(_bracketed(name)) for name in named}
        self._own = {_split_authority(_bracketed(name))[0] for name in own}
        self._origins = {origin.casefold() for origin in options.origins}
        self._authenticator = authenticator or Authenticator(options)
        self._admitted = AuthContextMiddleware(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        answer: ASGIApp = self._admitted
        # The rest are the server's own, such as its start.
        if scope["type"] != "lifespan":
            try:
                answer = await self._admit(scope)
            except RefusedError as error:
                answer = problem(error)
        with quiet_libraries(""):
            await answer(scope, receive, send)

    async def _admit(self, scope: Scope) -> ASGIApp:
        """Return what answers the request of *scope*, in which its caller is noted.

        Raises:
            RefusedError: It is not admitted.
        """
        if scope["path"] in auth.PROBES and scope.get("method") in _SAFE:
            scope.update({auth.CALLER: ANYONE, auth.CHALLENGE: auth.NO_PROVIDER})
            return self._admitted
        headers = Headers(scope=scope)
        host, port = _split_authority(headers.get("host", ""))
        if not host or not {(host, None), (host, port)} & self._hosts:
            raise RefusedError(421, "foreign", "the Host of the request is not ours")
        if not all(self._is_ours(origin, scope) for origin in headers.getlist("origin")):
            raise RefusedError(403, "foreign", "the Origin of the request is not ours")
        if self._needs_no_token(scope):
            scope.update({auth.CALLER: ANYONE, auth.CHALLENGE: auth.NO_PROVIDER})
            return self._admitted
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
            return self._admitted
        return _limited(self._admitted, bearer.expires_at - time.time())

    def _needs_no_token(self, scope: Scope) -> bool:
        path = scope["path"]
        if path.startswith((f"{SIGN_IN}/", f"{ACCOUNT}/")):
            return True
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


def _is_stream(method: str, headers: Headers) -> bool:
    """Return whether a request of the protocol opens a stream that lasts, and is no call."""
    return method == "GET" or headers.get("mcp-method") == LISTEN


def _limited(app: ASGIApp, seconds: float) -> ASGIApp:
    """Return *app* with responses that end after so many seconds, whatever is still to come."""

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


def _bracketed(name: str) -> str:
    return f"[{name}]" if is_bare_ipv6(name) else name


def _split_authority(text: str) -> tuple[str, int | None]:
    """Return host, in small letters, and port of ``host[:port]``; an empty host if it is none."""
    found = _AUTHORITY.fullmatch(text)
    if not found:
        return "", None
    host, port = found.groups()
    return host.casefold(), int(port) if port else None

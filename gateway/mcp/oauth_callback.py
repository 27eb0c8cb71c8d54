"""Signing in: a browser brings its answer to a loopback address, for one answer (RFC 8252)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

from gateway.errors import ConfigError, UpstreamError
from gateway.mcp.servers import AuthorizationResponse, HttpServer
from gateway.mcp.session import Session
from gateway.mcp.ssrf_guard import check_url, is_local
from gateway.options import UpstreamOptions
from gateway.types.listing import Listing

_PATH = "/callback"
_MAX_LINE_BYTES = 8192
_LINE_TIMEOUT_S = 10.0
_ERROR_CODE = re.compile(r"[a-z_]{1,40}")
_PAGE = (
    "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}"
)


class LoopbackSignIn:
    """A `SignIn` that listens on this machine.

    Args:
        server: For messages.
        port: Where it listens.
        on_address: Called with the address at which the person signs in.
    """

    def __init__(self, server: str, port: int, on_address: Callable[[str], None]) -> None:
        self._server = server
        self._on_address = on_address
        self._state = ""
        loop = asyncio.get_running_loop()
        self._response: asyncio.Future[AuthorizationResponse] = loop.create_future()
        self.address = f"http://127.0.0.1:{port}{_PATH}"

    async def show(self, url: str) -> None:
        """See `SignIn.show`."""
        self._state = _query_value(url, "state")
        self._on_address(url)

    async def wait(self) -> AuthorizationResponse:
        """See `SignIn.wait`."""
        return await self._response

    def receive(self, target: str) -> tuple[str, str]:
        """Take the request of a browser; return the status and the text of the page.

        Any page can send a browser here, so a request without the state that we made is ignored.
        """
        if urlsplit(target).path != _PATH:
            return "404 Not Found", "Nothing is here."
        state = _query_value(target, "state")
        if not self._state or state != self._state or self._response.done():
            return "400 Bad Request", "This is no answer to a sign-in that was asked for."
        fault, code = _query_value(target, "error"), _query_value(target, "code")
        if fault or not code:
            reason = fault if _ERROR_CODE.fullmatch(fault) else "no code"
            error = UpstreamError(
                self._server,
                f"the sign-in was refused ({reason})",
                kind="authorization",
                sent=False,
            )
            self._response.set_exception(error)
            return "200 OK", "The sign-in was refused. You may close this page."
        issuer = _query_value(target, "iss") or None
        self._response.set_result(AuthorizationResponse(code=code, state=state, issuer=issuer))
        return "200 OK", "You are signed in. You may close this page."


@asynccontextmanager
async def listen_for_sign_in(
    server: str, on_address: Callable[[str], None], *, port: int = 0
) -> AsyncIterator[LoopbackSignIn]:
    """Listen for one answer while the block lasts.

    Args:
        server: For messages.
        on_address: Called with the address at which the person signs in.
        port: 0 takes a free one.

    Raises:
        ConfigError: The port cannot be had.
    """
    sign_in: LoopbackSignIn

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_LINE_TIMEOUT_S):
                line = await reader.readline()
        except (TimeoutError, ValueError, ConnectionError):
            line = b""
        words = line.decode("latin-1").split()
        target = words[1] if len(words) > 1 and words[0] == "GET" else ""
        status, text = sign_in.receive(target)
        writer.write(_PAGE.format(status=status, length=len(text), text=text).encode())
        writer.close()

    try:
        listener = await asyncio.start_server(serve, "127.0.0.1", port, limit=_MAX_LINE_BYTES)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on 127.0.0.1:{port} for the sign-in: choose another callback_port"
        ) from error
    async with listener:
        sign_in = LoopbackSignIn(server, listener.sockets[0].getsockname()[1], on_address)
        yield sign_in


class _DraftTokens:
    """The tokens of a sign-in that is under way."""

    def __init__(self) -> None:
        self.text: str | None = None

    def read(self) -> str | None:
        return self.text

    def write(self, text: str) -> None:
        self.text = text

    def forget(self) -> None:
        self.text = None


async def sign_in(
    server: str, target: HttpServer, options: UpstreamOptions, on_address: Callable[[str], None]
) -> Listing:
    """Have a person sign in to *target*, keep the tokens, and return what it lists.

    Old tokens are replaced only once there are new ones: a sign-in that is given up loses nothing.

    Args:
        server: The host's name for it.
        target: Its ``auth`` says as whom, and where the tokens are kept.
        options: ``connect_timeout_s`` is how long the person may take.
        on_address: Called with the address at which the person signs in.

    Raises:
        ConfigError: It does not sign in, or the callback port cannot be had.
        UpstreamError: The sign-in failed, or the server could not be listed after it.
    """
    auth = target.auth
    if auth is None:
        raise ConfigError(
            f'server {server!r} does not sign in: add "auth": {{"type": "oauth"}} beside its url'
        )

    def show_checked(url: str) -> None:
        # A person's browser is sent there: that must be as safe as where we would go ourselves.
        check_url(url, options.private_hosts, local=is_local(target.url))
        on_address(url)

    draft = _DraftTokens()
    async with listen_for_sign_in(server, show_checked, port=auth.callback_port) as loopback:
        draft_auth = replace(auth, sign_in=loopback, tokens=draft)
        session = Session(server, target.with_auth(draft_auth), options)
        try:
            listing = await session.list_tools()
        finally:
            await session.close()
    if auth.tokens is not None and draft.text is not None:
        auth.tokens.write(draft.text)
    return listing


def _query_value(url: str, name: str) -> str:
    return parse_qs(urlsplit(url).query).get(name, [""])[0]

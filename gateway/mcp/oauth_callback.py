"""Where a browser brings the answer of a sign-in: a loopback address, for one answer (RFC 8252)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

from gateway.errors import ConfigError, UpstreamError
from gateway.mcp.oauth import Answer
from gateway.mcp.servers import HttpServer
from gateway.mcp.session import Session
from gateway.mcp.ssrf_guard import check_literal
from gateway.options import UpstreamOptions
from gateway.types.listing import Listing

PATH = "/callback"
_LINE_BYTES = 8192
_LINE_S = 10.0
_CODE = re.compile(r"[a-z_]{1,40}")
_PAGE = (
    "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}"
)


class Callback:
    """A `Consent` that listens on this machine.

    Args:
        server: For messages.
        port: Where it listens.
        tell: Told the address at which the person signs in.
    """

    def __init__(self, server: str, port: int, tell: Callable[[str], None]) -> None:
        self._server = server
        self._tell = tell
        self._state = ""
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.address = f"http://127.0.0.1:{port}{PATH}"

    async def show(self, url: str) -> None:
        """See `Consent.show`."""
        self._state = _first(url, "state")
        self._tell(url)

    async def answer(self) -> Answer:
        """See `Consent.answer`."""
        return await self._answer

    def take(self, target: str) -> tuple[str, str]:
        """Take what a browser asked for; give the status and the text of the page.

        Any page can send a browser here, so a request without the state that we made is ignored.
        """
        if urlsplit(target).path != PATH:
            return "404 Not Found", "Nothing is here."
        if not self._state or _first(target, "state") != self._state or self._answer.done():
            return "400 Bad Request", "This is no answer to a sign-in that was asked for."
        fault, code = _first(target, "error"), _first(target, "code")
        if fault or not code:
            told = fault if _CODE.fullmatch(fault) else "no code"
            error = UpstreamError(
                self._server, f"the sign-in was refused ({told})", kind="authorization", sent=False
            )
            self._answer.set_exception(error)
            return "200 OK", "The sign-in was refused. You may close this page."
        issuer = _first(target, "iss") or None
        self._answer.set_result(Answer(code=code, state=self._state, issuer=issuer))
        return "200 OK", "You are signed in. You may close this page."


@asynccontextmanager
async def listening(
    server: str, tell: Callable[[str], None], *, port: int = 0
) -> AsyncIterator[Callback]:
    """Listen for one answer while the block lasts.

    Args:
        server: For messages.
        tell: Told the address at which the person signs in.
        port: 0 takes a free one.

    Raises:
        ConfigError: The port cannot be had.
    """
    made: list[Callback] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_LINE_S):
                line = await reader.readline()
        except (TimeoutError, ValueError, ConnectionError):
            line = b""
        words = line.decode("latin-1").split()
        target = words[1] if len(words) > 1 and words[0] == "GET" else ""
        status, text = made[0].take(target)
        page = _PAGE.format(status=status, length=len(text), text=text)
        writer.write(page.encode())
        writer.close()

    try:
        listener = await asyncio.start_server(serve, "127.0.0.1", port, limit=_LINE_BYTES)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on 127.0.0.1:{port} for the sign-in: choose another callback_port"
        ) from error
    async with listener:
        made.append(Callback(server, listener.sockets[0].getsockname()[1], tell))
        yield made[0]


class _Draft:
    """Tokens of a sign-in that is under way."""

    def __init__(self) -> None:
        self.text: str | None = None

    def read(self) -> str | None:
        return self.text

    def write(self, text: str) -> None:
        self.text = text

    def forget(self) -> None:
        self.text = None


async def sign_in(
    server: str, target: HttpServer, options: UpstreamOptions, tell: Callable[[str], None]
) -> Listing:
    """Have a person sign in to *target*, keep the tokens, and give what it lists.

    Old tokens are replaced only once there are new ones: whoever gives up loses nothing.

    Args:
        server: The host's name for it.
        target: Its ``auth`` says as whom, and where the tokens are kept.
        options: ``connect_timeout_s`` is how long the person may take.
        tell: Told the address at which the person signs in.

    Raises:
        ConfigError: It does not sign in, or the callback port cannot be had.
        UpstreamError: The sign-in failed, or the server could not be listed after it.
    """
    auth = target.auth
    if auth is None:
        raise ConfigError(
            f'server {server!r} does not sign in: add "auth": {{"type": "oauth"}} beside its url'
        )

    def judged(url: str) -> None:
        # A person's browser is sent there: that must be as safe as where we would go ourselves.
        check_literal(url, target.url, options.private_hosts)
        tell(url)

    draft = _Draft()
    async with listening(server, judged, port=auth.callback_port) as consent:
        asking = replace(auth, consent=consent, tokens=draft)
        session = Session(server, target.signing_in(asking), options)
        try:
            listing = await session.list_tools()
        finally:
            await session.close()
    if auth.tokens is not None and draft.text is not None:
        auth.tokens.write(draft.text)
    return listing


def _first(url: str, name: str) -> str:
    return parse_qs(urlsplit(url).query).get(name, [""])[0]

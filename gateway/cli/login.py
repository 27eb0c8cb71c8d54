"""`gateway login`: sign in to a server by OAuth, once; its tokens are kept and refreshed."""

from __future__ import annotations

import asyncio
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

from gateway.cli.exits import OK
from gateway.cli.screen import emit, note, out, printable
from gateway.cli.settings import manifest_at
from gateway.errors import ConfigError, InvalidRequestError
from gateway.mcp.oauth_callback import sign_in
from gateway.mcp.servers import HttpServer
from gateway.options import Options, UpstreamOptions
from gateway.options.environment import tokens_path
from gateway.storage.oauth_tokens import signed

_PATIENT = UpstreamOptions(connect_timeout_s=600)
"""A person has to find a password."""

Browse = Callable[[str], object]


def login(
    name: str,
    *,
    config: Path | None,
    browser: bool,
    forget: bool,
    as_json: bool,
    browse: Browse = webbrowser.open,
) -> int:
    """Sign in to server *name* of a configuration, or forget its sign-in.

    Args:
        name: The server's name there.
        config: The file; None is ``./mcp.json``.
        browser: Whether to open one; the address is told in any case.
        forget: Forget the tokens, and the client that was registered, instead.
        as_json: Print JSON.
        browse: Opens a browser.

    Raises:
        InvalidRequestError: There is no such server.
        ConfigError: It does not sign in.
        UpstreamError: The sign-in failed.
    """
    target = _target(name, config)
    if forget:
        if target.auth is not None and target.auth.tokens is not None:
            target.auth.tokens.forget()
        told: dict[str, object] = {"server": name, "signed_in": False}
        text = f"signed out of {name}"
    else:
        listing = asyncio.run(sign_in(name, target, _PATIENT, _tell(browse if browser else None)))
        told = {"server": name, "signed_in": True, "tools": len(listing.tools)}
        text = f"signed in to {name}: {len(listing.tools)} tools"
    if as_json:
        emit(told)
    else:
        out().print(printable(text))
    return OK


def _target(name: str, config: Path | None) -> HttpServer:
    servers = manifest_at(config).servers
    target = servers.get(name)
    if target is None:
        known = ", ".join(servers) or "none"
        raise InvalidRequestError(f"no server {name!r} is configured: {known}")
    if not isinstance(target, HttpServer):
        raise ConfigError(f"server {name!r} is a program of this machine: nobody signs in to it")
    return signed(name, target, tokens_path(Options()))


def _tell(browse: Browse | None) -> Callable[[str], None]:
    def tell(url: str) -> None:
        note(f"sign in here: {url}")
        if browse is not None:
            # Some browsers return only when they are closed.
            threading.Thread(target=browse, args=(url,), daemon=True).start()

    return tell

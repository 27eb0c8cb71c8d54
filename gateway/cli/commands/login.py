"""`gateway login`: sign in to a server by OAuth; its tokens are stored and refreshed."""

from __future__ import annotations

import asyncio
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from gateway.cli import options
from gateway.cli.command import command, command_group
from gateway.cli.output import Output, note
from gateway.cli.session import read_config
from gateway.errors import ConfigError, InvalidRequestError
from gateway.mcp.oauth_callback import sign_in
from gateway.mcp.servers import HttpServer
from gateway.options import Options, UpstreamOptions
from gateway.options.environment import tokens_path
from gateway.storage.oauth_tokens import with_token_store

_OPTIONS = UpstreamOptions(connect_timeout_s=600)
"""A person has to find a password."""

app = command_group()


@command(app)
def login(
    server: Annotated[str, Argument(help="Its name in the configuration.")],
    *,
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Open one, or only print the address.")
    ] = True,
    forget: Annotated[bool, Option("--forget", help="Sign out instead.")] = False,
    config: options.Config = None,
) -> Output:
    """Sign in to a server that wants it (OAuth); its tokens are kept and refreshed."""
    target = _find_server(server, config)
    if forget:
        if target.auth is not None and target.auth.tokens is not None:
            target.auth.tokens.forget()
        data: dict[str, object] = {"server": server, "signed_in": False}
        return Output(data, f"signed out of {server}")
    on_address = show_address(webbrowser.open if browser else None)
    listing = asyncio.run(sign_in(server, target, _OPTIONS, on_address))
    return Output(
        {"server": server, "signed_in": True, "tools": len(listing.tools)},
        f"signed in to {server}: {len(listing.tools)} tools",
    )


def _find_server(name: str, config: Path | None) -> HttpServer:
    servers = read_config(config).servers
    target = servers.get(name)
    if target is None:
        choices = ", ".join(servers) or "none"
        raise InvalidRequestError(f"no server {name!r} is configured: {choices}")
    if not isinstance(target, HttpServer):
        raise ConfigError(f"server {name!r} is a program of this machine: it has no sign-in")
    return with_token_store(name, target, tokens_path(Options()))


def show_address(open_browser: Callable[[str], object] | None) -> Callable[[str], None]:
    """Return a callback that prints an address and opens it with *open_browser*, if any."""

    def on_address(url: str) -> None:
        note(f"sign in here: {url}")
        if open_browser is not None:
            # Some browsers return only when they are closed.
            threading.Thread(target=open_browser, args=(url,), daemon=True).start()

    return on_address

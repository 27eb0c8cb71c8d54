"""`gateway login`: sign in to a server by OAuth; its tokens are stored and refreshed."""

from __future__ import annotations

import asyncio
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.command import ConfigOption, JsonOption, command, command_group
from gateway.cli.exit_codes import OK
from gateway.cli.output import note, print_result
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
    server: Annotated[str, typer.Argument(help="Its name in the configuration.")],
    *,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open one, or only print the address.")
    ] = True,
    forget: Annotated[bool, typer.Option("--forget", help="Sign out instead.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Sign in to a server that wants it (OAuth); its tokens are kept and refreshed."""
    target = _find_server(server, config)
    if forget:
        if target.auth is not None and target.auth.tokens is not None:
            target.auth.tokens.forget()
        data: dict[str, object] = {"server": server, "signed_in": False}
        print_result(data, f"signed out of {server}", as_json=as_json)
        return OK
    on_address = show_address(webbrowser.open if browser else None)
    listing = asyncio.run(sign_in(server, target, _OPTIONS, on_address))
    print_result(
        {"server": server, "signed_in": True, "tools": len(listing.tools)},
        f"signed in to {server}: {len(listing.tools)} tools",
        as_json=as_json,
    )
    return OK


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
